// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BundleSeals
import Bundles
import CommandLinePages
import Configuration
import EverydayVerbs
import Linux
import WireText

/// The options that say where bundles are and which keys are trusted.
struct BundlePlaces: ParsableArguments {
    @Option(
        help: ArgumentHelp("The folder of the installed bundles, STATE/bundles.", valueName: "folder"),
        completion: .directory
    )
    var bundles: String?
    @Option(
        help: ArgumentHelp("The folder of the trusted keys, keys beside torpor.toml.", valueName: "folder"),
        completion: .directory
    )
    var keys: String?

    private var defaults: DefaultPaths {
        DefaultPaths(environment: ThisProcess.variables, userID: Users.effectiveUID)
    }

    var store: BundleStore { BundleStore(bundles ?? defaults.state + "/bundles") }

    /// The trusted keys. Warns about files that are not valid keys.
    func trusted() -> [TrustedKey] {
        let folder = keys ?? (File.parent(of: defaults.configuration) ?? "") + "/keys"
        let (found, problems) = TrustedKey.all(in: folder)
        for problem in problems { Complaint.say(problem, .warning) }
        if found.isEmpty { Complaint.say("no key is trusted here: \(folder) has no *.pub file", .warning) }
        return found
    }
}

/// Functions that the verbs for bundles share.
enum BundleFiles {
    /// A bundle's archive that was opened for reading.
    struct Source {
        fileprivate let descriptor: Descriptor

        func read(_ most: Int) throws(BundleFault) -> [UInt8] {
            do throws(Errno) { return try Descriptor.read(descriptor.raw, maximum: most) ?? [] } catch {
                throw BundleFault("it cannot be read: \(error)")
            }
        }
    }

    static func open(_ path: String) throws(Failure) -> Source {
        do throws(Errno) { return Source(descriptor: try File.open(path)) } catch {
            throw Failure(status: .failed, message: "\(path) cannot be opened: \(error)")
        }
    }

    static func small(_ path: String) throws(BundleFault) -> [UInt8] {
        do throws(Errno) { return try File.read(path, limit: BundleLimit.signature) } catch {
            throw BundleFault("it cannot be read: \(error)")
        }
    }

    /// Runs `body`, and converts a fault to the verb's failure.
    static func complain<T>(_ what: String? = nil, _ body: () throws(BundleFault) -> T) throws(Failure) -> T {
        do throws(BundleFault) { return try body() } catch {
            throw Failure(status: .failed, message: (what.map { "\($0): " } ?? "") + error.description)
        }
    }

    /// Writes a file under a temporary name, and renames it once it is complete.
    static func write(_ path: String, _ body: (Int32) throws(BundleFault) -> Void) throws(Failure) {
        let draft = path + ".part"
        do throws(BundleFault) {
            let file = try kernel(path) { () throws(Errno) in
                try File.open(draft, [.write, .create, .truncate, .noFollow])
            }
            try body(file.raw)
            try kernel(path) { () throws(Errno) in
                try File.synchroniseAll(file.raw)
                try File.rename(draft, path)
            }
        } catch {
            try? File.remove(draft)
            throw Failure(status: .failed, message: error.description)
        }
    }

    private static func kernel<T>(_ path: String, _ body: () throws(Errno) -> T) throws(BundleFault) -> T {
        do throws(Errno) { return try body() } catch { throw BundleFault("\(path) cannot be written: \(error)") }
    }

    /// Parses and checks a manifest. Reports all mistakes in it.
    static func manifest(_ text: [UInt8], _ files: FileTable, file: String) throws(Failure) -> BundleManifest {
        try complain { () throws(BundleFault) in try checked(text, files, file: file) }
    }

    static func checked(_ text: [UInt8], _ files: FileTable, file: String) throws(BundleFault) -> BundleManifest {
        let hasFirstLaunch = files.folders.contains(Array("first-launch".utf8))
        switch BundleManifest.check(text, hasFirstLaunch: hasFirstLaunch, file: file) {
        case .success(let manifest): return manifest
        case .failure(let list):
            for diagnostic in list.diagnostics { Complaint.say(diagnostic.description, .remark) }
            throw BundleFault("the manifest of the bundle is not valid")
        }
    }

    /// The manifest of a bundle. Fails if this machine cannot run the bundle.
    static func runnable(_ text: [UInt8], _ files: FileTable) throws(BundleFault) -> BundleManifest {
        let manifest = try checked(text, files, file: "manifest.toml")
        let missing = BundleNeeds.missing(manifest.needs)
        guard missing.isEmpty else { throw BundleFault("this machine lacks " + missing.joined(separator: ", ")) }
        return manifest
    }

    /// Reads the content of an archive's entry, and compares it with the entry's digest.
    static func compare(_ entry: BundleEntry, _ archive: inout BundleArchive) throws(BundleFault) {
        guard case .file(_, _, let digest) = entry.kind else { return }
        var tree = Digest.tree
        var rest: [UInt8] = []
        while case let part = try archive.content(atMost: Digest.step), !part.isEmpty {
            rest += part
            let whole = rest.count - rest.count % MerkleTree.block
            rest[..<whole].withUnsafeBytes { tree.append($0) }
            rest.removeFirst(whole)
        }
        if !rest.isEmpty { rest.withUnsafeBytes { tree.append($0) } }
        guard tree.digest() == digest else { throw BundleFault("\(entry.path) is not what was signed") }
    }

    static func size(_ files: FileTable) -> String {
        let count = files.entries.count
        return "\(count == 1 ? "1 file" : "\(count) files") of \(Times.memory(bytes: Int64(files.bytes)))"
    }
}

/// Checks what a bundle requires of the machine (`needs` in its manifest).
enum BundleNeeds {
    private enum Lack {
        /// The machine does not meet the requirement. The text says what is missing.
        case missing(String)
        /// This torpor does not know the requirement.
        case unknown
    }

    /// The requirements that this machine does not meet, as texts for the user.
    static func missing(_ needs: [String]) -> [String] {
        needs.compactMap { need in
            switch lack(need) {
            case nil: nil
            case .missing(let words): words
            case .unknown: "“\(need)”, which this torpor does not know"
            }
        }
    }

    /// The requirements that this torpor does not know.
    static func unknown(_ needs: [String]) -> [String] {
        needs.filter { if case .unknown = lack($0) { true } else { false } }
    }

    /// What the machine lacks to meet a requirement; nil if it meets the requirement.
    private static func lack(_ need: String) -> Lack? {
        let words = need.split(whereSeparator: { $0 == " " }).map(String.init)
        guard let kind = words.first else { return nil }
        if words.count == 3, words[1] == ">=" {
            switch kind {
            case "kernel":
                return BundleWord.isLower(KernelRelease.version, than: words[2]) ? .missing("Linux \(words[2])") : nil
            case "landlock":
                return Int(words[2]).map { KernelRelease.landlock >= $0 } ?? false
                    ? nil : .missing("Landlock \(words[2])")
            default: break
            }
        }
        if words.count == 1 {
            switch kind {
            case "memory-controller":
                let controllers = try? File.readString("/sys/fs/cgroup/cgroup.controllers")
                return controllers?.split(whereSeparator: { $0 == " " || $0 == "\n" }).contains("memory") ?? false
                    ? nil : .missing("the memory controller of cgroups")
            case "gpu":
                return has("/dev/dri", "renderD") || File.exists("/dev/nvidiactl")
                    ? nil : .missing("a GPU (/dev/dri/renderD*)")
            case "audio": return has("/dev/snd", "pcm") ? nil : .missing("audio (/dev/snd/pcm*)")
            case "swap":
                let swaps = (try? File.readString("/proc/swaps"))?.split(separator: "\n").count ?? 0
                return swaps > 1 ? nil : .missing("swap")
            case "x86_64", "aarch64", "riscv64", "armv7l":
                return KernelRelease.architecture == kind ? nil : .missing("a processor of \(kind)")
            default: break
            }
        }
        return .unknown
    }

    private static func has(_ folder: String, _ prefix: String) -> Bool {
        ((try? File.list(folder)) ?? []).contains { $0.hasPrefix(prefix) }
    }
}
