// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BundleSeals
import Bundles
import CommandLinePages
import Configuration
import EverydayVerbs
import Linux
import Varlink

/// Verbs that build and inspect bundles.
struct BundleVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bundle",
        abstract: "Makes, signs and verifies bundles of apps; lists the installed ones.",
        subcommands: [
            BundleBuild.self, BundleSign.self, BundleVerify.self, BundleList.self, BundleKeygen.self,
        ]
    )
    .examples(
        "torpor bundle keygen notes",
        "torpor bundle build ./notes",
        "torpor bundle sign notes-1.0.torpor --key notes.key"
    )
}

struct BundleBuild: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "build",
        abstract: "Makes NAME-VERSION.torpor of a directory with a manifest.toml.",
        discussion: """
            The manifest says name, version and [app]; all files below the directory become part of the bundle, with a \
            digest each. The same directory gives the same bytes again. Empty directories are left out.
            """
    )
    .examples("torpor bundle build ./notes")

    @Argument(help: "The app’s directory, with manifest.toml in it.", completion: .directory)
    var directory: String
    @Option(help: ArgumentHelp("Write to this file.", valueName: "file"), completion: .file())
    var output: String?
    @OptionGroup var options: OutputOptions

    func run() throws {
        let plan = try BundleFiles.complain { () throws(BundleFault) in try BundleBuilder.plan(directory) }
        let manifest = try BundleFiles.manifest(plan.text, plan.files, file: directory + "/manifest.toml")
        if let program = manifest.program, !plan.files.entries.contains(where: { $0.path.bytes == Array(program.utf8) })
        {
            Complaint.say("the bundle has no file \(program), which exec names: add it to \(directory)", .warning)
        }
        for need in BundleNeeds.unknown(manifest.needs) {
            Complaint.say("needs: this torpor does not know “\(need)”, and installs no bundle that has it", .warning)
        }
        let path = output ?? "\(manifest.name)-\(manifest.version).torpor"
        try BundleFiles.write(path) { descriptor throws(BundleFault) in
            try BundleBuilder.write(plan, from: directory, to: descriptor)
        }
        guard !options.json else {
            return Output.document([
                "file": .string(path), "name": .string(manifest.name), "version": .string(manifest.version),
                "files": .int(Int64(plan.files.entries.count)), "bytes": .int(Int64(plan.files.bytes)),
            ])
        }
        Output.write("\(path): \(manifest.name) \(manifest.version), \(BundleFiles.size(plan.files))\n")
    }
}

struct BundleSign: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign",
        abstract: "Puts a signature into a bundle, in place of one that is there.",
        discussion: """
            The signature is one of minisign, of the bundle's manifest.toml. --key is a secret key of torpor bundle \
            keygen or of minisign; the password of one that has a password is the first line of standard input. To sign \
            by minisign itself, sign a copy of the manifest (tar -xf FILE manifest.toml; minisign -S -m manifest.toml) \
            and name the result with --signature.
            """
    )
    .examples(
        "torpor bundle sign notes-1.0.torpor --key notes.key",
        "torpor bundle sign notes-1.0.torpor --signature manifest.toml.minisig"
    )

    @Argument(help: "A bundle’s file.", completion: .file(extensions: ["torpor"]))
    var file: String
    @Option(help: ArgumentHelp("Sign with this secret key.", valueName: "file"), completion: .file())
    var key: String?
    @Option(help: ArgumentHelp("Put this existing signature into the bundle.", valueName: "file"), completion: .file())
    var signature: String?
    @Option(help: ArgumentHelp("A line that the signature covers, and that users see.", valueName: "text"))
    var comment: String?
    @OptionGroup var options: OutputOptions

    func validate() throws {
        guard (key == nil) != (signature == nil) else {
            throw ValidationError("write --key with a secret key, or --signature with what minisign made")
        }
        guard comment?.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) ?? true, comment?.utf8.count ?? 0 <= 1024 else {
            throw ValidationError("--comment is one line of at most 1024 bytes")
        }
    }

    func run() throws {
        let source = try BundleFiles.open(file)
        var archive = try BundleFiles.complain(file) { () throws(BundleFault) in try BundleArchive(source.read) }
        let manifest = try BundleFiles.manifest(archive.head.text, archive.head.files, file: "manifest.toml")
        let made: MinisignSignature
        if let key {
            let secret = try BundleFiles.complain(key) { () throws(BundleFault) in
                try SigningKey(try MinisignSecret(text: try BundleFiles.small(key))) {
                    Array((readLine() ?? "").utf8)
                }
            }
            made = secret.sign(archive.head.manifest, comment: comment ?? "\(manifest.name) \(manifest.version)")
        } else {
            let path = signature ?? ""
            made = try BundleFiles.complain(path) { () throws(BundleFault) in
                try MinisignSignature(text: try BundleFiles.small(path))
            }
        }
        try BundleFiles.write(file) { descriptor throws(BundleFault) in
            try BundleBuilder.copy(&archive, signature: made, to: descriptor)
        }
        withExtendedLifetime(source) {}
        let id = MinisignKey.name(made.key)
        guard !options.json else {
            return Output.document(["file": .string(file), "key": .string(id), "comment": .string(made.comment)])
        }
        Output.write("\(file): signed by the key \(id)\n")
    }
}

struct BundleVerify: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Compares a bundle with its signature: every file of it is read.",
        discussion: "BUNDLE is a file (with . or / in its name), or the name of an installed bundle."
    )
    .examples("torpor bundle verify notes-1.0.torpor --keys .")

    @Argument(help: "A file, or the name of an installed bundle.", completion: .file(extensions: ["torpor"]))
    var bundle: String
    @OptionGroup var places: BundlePlaces
    @OptionGroup var options: OutputOptions

    func run() throws {
        let keys = places.trusted()
        let isFile = bundle.contains("/") || bundle.contains(".")
        let found: (name: String, version: String, signer: TrustedKey, comment: String, how: String)
        if isFile {
            let source = try BundleFiles.open(bundle)
            let (head, signer, comment) = try BundleFiles.complain(bundle) { () throws(BundleFault) in
                var sealed: (TrustedKey, String)?
                var archive = try BundleArchive(source.read) { manifest, text throws(BundleFault) in
                    guard let text else { throw BundleFault("it is not signed: torpor bundle sign does that") }
                    let signature = try MinisignSignature(text: text)
                    sealed = (try Seal.signer(of: manifest, signature, among: keys), signature.comment)
                }
                guard let (signer, comment) = sealed else { throw BundleFault("it is not signed") }
                while let entry = try archive.next() { try BundleFiles.compare(entry, &archive) }
                return (archive.head, signer, comment)
            }
            withExtendedLifetime(source) {}
            let manifest = try BundleFiles.manifest(head.text, head.files, file: "manifest.toml")
            found = (manifest.name, manifest.version, signer, comment, "by hash")
        } else {
            let store = places.store
            guard let version = store.current(bundle) else {
                throw Failure(
                    status: .failed,
                    message:
                        "there is no bundle \(bundle) in \(store.folder): torpor bundle list shows those that are there"
                )
            }
            let result = try BundleFiles.complain("\(bundle) \(version)") { () throws(BundleFault) in
                try store.inspectFolders(of: bundle)
                let result = try store.check(bundle, version, keys: keys)
                // The signature is valid, but check that the folder contains the bundle that its name says.
                let manifest = try BundleFiles.checked(result.text, result.files, file: "manifest.toml")
                guard manifest.name == bundle, manifest.version == version else {
                    throw BundleFault("its folder contains \(manifest.name) \(manifest.version)")
                }
                return result
            }
            found = (bundle, version, result.signer, result.comment, result.isByKernel ? "by the kernel" : "by hash")
        }
        guard !options.json else {
            return Output.document([
                "name": .string(found.name), "version": .string(found.version), "key": .string(found.signer.key.name),
                "key_file": .string(found.signer.path), "comment": .string(found.comment),
                "verified": .string(found.how),
            ])
        }
        Output.write(
            "\(found.name) \(found.version) is what \(found.signer.path) signed (\(Terminal.harmless(found.comment))); "
                + "verified \(found.how)\n"
        )
    }
}

struct BundleList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists the installed bundles."
    )
    .examples("torpor bundle list")

    @OptionGroup var places: BundlePlaces
    @OptionGroup var options: OutputOptions

    func run() throws {
        let store = places.store
        let all = store.names.map {
            (name: $0, version: store.current($0) ?? "", before: store.previous($0), failed: store.putBack($0))
        }
        guard !options.json else {
            return Output.document(
                .array(
                    all.map {
                        [
                            "name": .string($0.name), "version": .string($0.version), "previous": .optional($0.before),
                            "failed": .optional($0.failed),
                            "folder": .string(store.place($0.name, $0.version)),
                        ]
                    }
                )
            )
        }
        guard !all.isEmpty else { return Output.write("no bundle is installed\n") }
        var table = Table(["BUNDLE", "VERSION", "PREVIOUS", "FOLDER"], rightAligned: [], whole: [0])
        for bundle in all {
            table.append([
                .init(bundle.name), .init(bundle.version),
                .init(bundle.before.map { $0 + (bundle.failed == nil ? "" : " (failed)") } ?? "-"),
                .init(store.place(bundle.name, bundle.version)),
            ])
        }
        Output.page(table.text)
    }
}

struct BundleKeygen: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keygen",
        abstract: "Makes a pair of keys: NAME.key to sign with, NAME.pub for those who trust it.",
        discussion: """
            The secret key has no password; minisign -G makes one that has. Machines trust what is in \
            /etc/torpor/keys (a user's supervisor: ~/.config/torpor/keys).
            """
    )
    .examples("torpor bundle keygen notes")

    @Argument(help: "The name of both files.", completion: .file())
    var name: String
    @OptionGroup var options: OutputOptions

    func run() throws {
        let key = SigningKey()
        for (path, text, mode) in [(name + ".key", key.text, UInt32(0o600)), (name + ".pub", key.key.text, 0o644)] {
            do throws(Errno) {
                let file = try File.open(path, [.write, .create, .exclusive, .noFollow], mode: mode)
                try Descriptor.writeAll(file.raw, text)
            } catch {
                let what =
                    error == .fileExists ? "exists: remove it, or choose another name" : "cannot be written: \(error)"
                throw Failure(status: .failed, message: "\(path) \(what)")
            }
        }
        guard !options.json else {
            return Output.document([
                "secret": .string(name + ".key"), "public": .string(name + ".pub"), "key": .string(key.key.name),
            ])
        }
        Output.write("\(name).key signs, \(name).pub is for those who trust it: the key \(key.key.name)\n")
    }
}
