// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import Configuration
import EverydayVerbs
import Importing
import Linux
import Varlink
import WireText

struct Import: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Translates another supervisor's configuration.",
        discussion: """
            PATH is a Procfile, a supervisord configuration, a compose file (its containers, for podman), a PM2 ecosystem file, \
            systemd units, containers of Quadlet, or a folder of s6 or runit service directories; with --from docker-run \
            also a command line. What cannot be translated is reported on \
            standard error and left as comments in the file, which is always valid.
            """
    )
    .examples(
        "torpor import Procfile",
        "torpor import /etc/supervisor/supervisord.conf --output torpor.toml",
        "torpor import docker-compose.yml --json",
        "torpor import compose.yml compose.prod.yml --profile tools",
        "torpor import /etc/containers/systemd",
        "torpor import --from docker-run \"docker run -p 8080:80 nginx\""
    )

    @Argument(
        help: "The file or folder to translate; several compose files are merged, several units go together.",
        completion: .file()
    )
    package var path: [String]
    @Option(
        help: ArgumentHelp(
            "The kind of PATH: \(SourceKind.allCases.map(\.rawValue).joined(separator: ", ")).",
            valueName: "kind"
        ),
        completion: .list(SourceKind.allCases.map(\.rawValue))
    )
    var from: String?
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The file to write; else standard output.", valueName: "file"),
        completion: .file()
    )
    var output: String?
    @Option(help: ArgumentHelp("PM2: use the environment env_NAME.", valueName: "name"))
    var env: String?
    @Option(
        help: ArgumentHelp(
            "Compose: start the services of this profile with the others; \"*\" for all. Repeatable.",
            valueName: "name"
        )
    )
    var profile: [String] = []
    @Flag(help: "Compose: translate commands to programs of this machine, without containers.")
    var programs = false
    @Flag(help: "Overwrite an existing file.")
    var force = false
    @Flag(help: "One JSON document on standard output.")
    package var json = false

    package func run() throws {
        let kind = try from.map(Self.kind)
        let readers = SourceReaders()
        var tree = readers.tree
        tree.environmentName = env
        tree.hasPrograms = programs
        tree.profiles = profile
        let target = try output.map(ImportFiles.target)
        if let target, !force, ImportFiles.isTaken(target) {
            throw Failure(status: .usage, message: "\(target) exists: name another file, or overwrite it with --force")
        }
        var result: ImportedConfiguration
        do throws(ImportError) {
            result = try Self.read(path, kind, tree)
        } catch {
            throw Failure(status: .usage, message: Terminal.harmless(error.description))
        }
        let environment = ThisProcess.variables
        var system = ConfigurationSystem.live
        system.inspection = ConfigurationSystem.Inspection(searchPath: nil)
        system.inspection?.callerPath = environment["PATH"]
        let place = target ?? ThisProcess.directory + "/torpor.toml"
        result.validate(at: place, system: system, environment: environment)
        let toml = result.toml
        if let target { try ImportFiles.write(toml, to: target, readers) }
        if json {
            Output.document(Self.json(result, toml))
        } else {
            if output == nil { Output.write(toml) }
            Self.tell(result)
            if let output, result.translatedCount > 0 {
                for line in WrittenFile.text(output).split(separator: "\n") { Complaint.say(String(line), .remark) }
                Complaint.say(
                    "Connections wake an app that sleeps if it has sockets or wake_on_connect = true.",
                    .remark
                )
            }
        }
        // Fail if no program of the file could be translated.
        if result.translatedCount == 0 { throw Failure(status: .failed, message: nil) }
    }

    /// Imports the file. For `docker run`, PATH may be the docker command line itself, as one word or as several.
    private static func read(
        _ paths: [String],
        _ kind: SourceKind?,
        _ tree: SourceTree
    ) throws(ImportError) -> ImportedConfiguration {
        guard kind == .dockerRun, let first = paths.first, !File.exists(first),
            paths.count > 1 || first.utf8.contains(UInt8(ascii: " "))
        else {
            let sources = paths.map { ImportFiles.source($0, tree) }
            var result = try Importer.read(sources.map(\.path), as: kind, in: tree)
            for case let remark? in sources.map(\.remark) { result.add(remark: remark) }
            return result
        }
        return try Importer.read(command: paths, in: ThisProcess.directory, tree)
    }

    private static func kind(_ name: String) throws(Failure) -> SourceKind {
        if let kind = SourceKind(rawValue: name) { return kind }
        let names = SourceKind.allCases.map(\.rawValue)
        let hint = Nearest.name(to: name, among: names).map { ", did you mean \($0)?" } ?? ""
        throw Failure(
            status: .usage,
            message: "--from \(Terminal.harmless(name)) is none of \(names.joined(separator: ", "))\(hint)"
        )
    }

    /// Prints each remark on one line, and then a summary on the last line.
    private static func tell(_ result: ImportedConfiguration) {
        let file = result.source.split(separator: "/").last.map(String.init) ?? result.source
        func line(_ name: String?, _ remark: Remark) -> String {
            let place = remark.line.map { " (\(remark.file ?? file):\($0))" } ?? ""
            return (name.map { $0 + ": " } ?? "") + remark.text + place
        }
        for remark in result.remarks { Complaint.say(line(nil, remark), .remark) }
        for program in result.programs {
            for remark in program.remarks { Complaint.say(line(program.appName, remark), .remark) }
        }
        let (count, remarks) = (result.programs.count, result.remarkCount)
        Complaint.say(
            "\(result.translatedCount) of \(count) \(count == 1 ? "program" : "programs") translated; \(remarks) "
                + (remarks == 1 ? "remark" : "remarks"),
            .remark
        )
    }

    private static func json(_ result: ImportedConfiguration, _ toml: String) -> JSON {
        [
            "kind": .string(result.kind.rawValue),
            "programs": .array(
                result.programs.map { program in
                    [
                        "name": .string(program.appName), "translated": .bool(program.isTranslated),
                        "remarks": .strings(program.remarks.map(\.text)),
                    ]
                }
            ),
            "remarks": .strings(result.remarks.map(\.text)),
            "toml": .string(toml),
        ]
    }
}

/// Functions that `import` and `init` share.
enum ImportFiles {
    /// A source tree that reads the files of this machine.
    static var live: SourceTree {
        func bound(_ resource: String) -> SourceTree.Bound? {
            guard let number = ThisProcess.resources.first(where: { $0.name == resource })?.number,
                let limit = try? ThisProcess.limit(number)
            else { return nil }
            return SourceTree.Bound(soft: limit.soft, hard: limit.hard)
        }
        var tree = SourceTree(
            read: { path in
                // Read only regular files: reading a FIFO would block, and a device may never end.
                guard (try? File.status(path).kind) == .regular else { return nil }
                return try? File.read(path, limit: ConfigurationSystem.fileLimit)
            },
            names: { path in (try? File.list(path))?.sorted() },
            variables: ThisProcess.variables,
            processors: ThisProcess.processorCount,
            hostName: ThisProcess.hostName
        )
        tree.program = { path in File.isExecutable(path) ? try? File.realPath(path) : nil }
        if let limit = bound("nofile") { tree.openFiles = limit }
        if let limit = bound("nproc") { tree.processes = limit }
        return tree
    }

    /// The absolute path of a source. Symlinks to folders, such as /srv/shop/current, are kept, so that the result does
    /// not depend on one release. But if the source has relative paths that lead out of its folder, the symlinks are
    /// resolved, because such paths start at the folder to which a symlink leads. A remark then says so.
    static func source(_ path: String, _ tree: SourceTree) -> (path: String, remark: String?) {
        let real = absolute(path)
        let given = path.hasPrefix("/") ? path : workingDirectory + "/" + path
        let parts = given.split(separator: "/").filter { $0 != "." }
        let plain = "/" + parts.joined(separator: "/")
        guard plain != real, !parts.contains(".."), (try? File.readLink(plain)) == nil || tree.names(plain) != nil,
            (try? File.realPath(plain)) == real
        else { return (real, nil) }
        let files = tree.names(plain) == nil ? [plain] : Importer.files(in: plain, tree).map(\.path)
        guard !files.isEmpty else { return (real, nil) }
        let leads = files.contains { file in
            let text = String(wire: tree.read(file) ?? [])
            return ["../", "/..", "\"..\"", "'..'", ": ..\n"].contains { text.contains($0) }
        }
        guard leads else { return (plain, nil) }
        return (
            real,
            "\(plain) is a link to \(real), which the paths below name: the source has paths with .., which begin there. "
                + "After the next release, replace it by the link where a path should follow it."
        )
    }

    /// The working directory as the shell names it, with symlinks not resolved.
    private static var workingDirectory: String {
        let here = ThisProcess.directory
        guard let named = ThisProcess.environment("PWD"), named.hasPrefix("/"),
            !named.split(separator: "/").contains(".."),
            (try? File.realPath(named)) == (try? File.realPath(here))
        else { return here }
        return named
    }

    /// The absolute path, with symlinks in its folder resolved.
    static func absolute(_ path: String) -> String {
        if let real = try? File.realPath(path) { return real }
        var path = path
        while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path.hasPrefix("/") ? path : ThisProcess.directory + "/" + path
    }

    /// The absolute path of a file that is to be written, with symlinks resolved. A symlink that another user has made
    /// is refused: it may lead to a file of this user or of root.
    static func target(_ path: String) throws(Failure) -> String {
        if let link = try? File.status(path, followLinks: false), link.kind == .link,
            link.uid != 0, link.uid != Users.effectiveUID
        {
            let words = "\(path) is a link of another user: remove it, or write to another file"
            throw Failure(status: .usage, message: Terminal.harmless(words))
        }
        return absolute(path)
    }

    static func isTaken(_ path: String) -> Bool { File.exists(path) || (try? File.readLink(path)) != nil }

    /// Writes the file. It gets no more readers than its sources have, because it may contain passwords.
    static func write(_ text: String, to path: String, _ readers: SourceReaders) throws(Failure) {
        do throws(Errno) {
            guard let old = try? File.status(path) else {
                let isLink = (try? File.readLink(path)) != nil
                let folder = (try? File.realPath(File.parent(of: path) ?? "/")) ?? "/"
                // A file in a folder with the set-group-ID bit gets the group of the folder (inode(7)).
                let status = try? File.status(folder)
                let gid = status.flatMap { $0.mode & 0o2000 == 0 ? nil : $0.gid } ?? Users.effectiveGID
                do throws(Errno) {
                    return try File.write(path, text, mode: readers.mode(in: isLink ? "/" : folder, gid: gid))
                } catch {
                    // A part of the file would be taken for all of it, and the next try would be refused.
                    if !isLink { try? File.remove(path) }
                    throw error
                }
            }
            guard old.kind == .regular else { return try File.write(path, text) }
            let real = try File.realPath(path)
            let mode = readers.mode(in: File.parent(of: real) ?? "/", gid: old.gid)
            // The owner of a file can read it whatever its mode is: replace a file that another user owns, unless
            // everyone may read the sources.
            if old.uid != Users.effectiveUID, old.uid != 0, mode & 0o004 == 0 {
                return try File.replace(real, Array(text.utf8), mode: 0o600)
            }
            let kept = old.mode & 0o777 & ~mode != 0 ? old.mode & mode : old.mode
            try overwrite(real, old, Array(text.utf8), mode: kept)
        } catch {
            throw Failure(status: .failed, message: "\(path) cannot be written: \(error)")
        }
    }

    /// Replaces the content of a regular file, which keeps its owner. The new content is written beside it first, so
    /// that the old one is left if the disk is full.
    private static func overwrite(
        _ path: String,
        _ old: FileStatus,
        _ bytes: [UInt8],
        mode: UInt32
    ) throws(Errno) {
        func inPlace() throws(Errno) {
            if mode != old.mode { try File.setMode(path, mode) }
            try File.write(path, bytes)
        }
        // The other names of the file would keep the old content.
        guard old.links == 1 else { return try inPlace() }
        let draft = "\(path).tmp\(ThisProcess.pid)"
        var isOfOwner = false
        do throws(Errno) {
            try File.open(draft, [.write, .create, .exclusive], mode: 0o600).withRaw { raw throws(Errno) in
                try File.setOwner(descriptor: raw, uid: old.uid, gid: old.gid)
                isOfOwner = true
                try File.setMode(descriptor: raw, mode)
                try Descriptor.writeAll(raw, bytes)
            }
            try File.rename(draft, path)
        } catch {
            if error != .fileExists { try? File.remove(draft) }
            // This user may write the file, but may not create one in its folder, or none of its owner.
            guard !isOfOwner, error == .permissionDenied || error == .notPermitted else { throw error }
            try inPlace()
        }
    }
}
