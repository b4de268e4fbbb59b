// SPDX-License-Identifier: Apache-2.0

public import Bundles
import Linux
import WireText

/// The installed bundles: `FOLDER/NAME/VERSION`, with the links `current` and `previous` in `FOLDER/NAME`.
///
/// A version is unpacked beside the others under a name of its own, and becomes the current one by one rename. A kill at
/// any instant leaves the old version or the new one; the next install removes what it left.
public struct BundleStore: Sendable {
    /// The folder of all bundles.
    public let folder: String
    /// Who owns all of it.
    public let owner: UInt32

    /// A store in a folder, which need not exist yet.
    public init(_ folder: String) { (self.folder, owner) = (folder, Users.effectiveUID) }

    /// The folder of a bundle's versions.
    public func place(_ name: String) -> String { folder + "/" + name }

    /// The folder of a version.
    public func place(_ name: String, _ version: String) -> String { "\(folder)/\(name)/\(version)" }

    /// The names of the installed bundles, sorted.
    public var names: [String] {
        ((try? File.list(folder)) ?? []).filter { (try? BundleWord.checkName($0)) != nil && current($0) != nil }
            .sorted()
    }

    /// The version that apps are launched from; nil if the bundle is not installed.
    public func current(_ name: String) -> String? { version(name, "current") }

    /// The version before that, if there is one.
    public func previous(_ name: String) -> String? {
        version(name, "previous").flatMap { $0 == current(name) ? nil : $0 }
    }

    private func version(_ name: String, _ link: String) -> String? {
        guard let target = try? File.readLink("\(place(name))/\(link)"),
            (try? BundleWord.checkVersion(target)) != nil,
            (try? File.kind(place(name, target))) == .directory
        else { return nil }
        return target
    }

    /// Compares the installed files with what was signed.
    public func check(_ name: String, _ version: String, keys: [TrustedKey]) throws(BundleFault) -> BundleCheck.Result {
        try BundleCheck.run(place(name, version), keys: keys, owner: owner, cache: nil, now: 0)
    }

    // MARK: Installing

    /// What an install did.
    public struct Installed: Sendable {
        /// The name.
        public let name: String
        /// The version that is current now.
        public let version: String
        /// The version that was current before.
        public let before: String?
        /// The key that signed it.
        public let signer: TrustedKey
        /// The trusted comment of its signature.
        public let comment: String
        /// Whether the kernel checks each block of every file.
        public let isByKernel: Bool
        /// What was there before.
        public let presence: Presence
        /// Whether nothing had to be done.
        public var wasThere: Bool { presence == .whole }
    }

    /// What an install finds of the same version.
    public enum Presence: Sendable {
        /// It was not the current one.
        case other
        /// It was the current one, with another signature, which was replaced.
        case signedOtherwise
        /// It was the current one.
        case whole
    }

    /// Unpacks a bundle, checks it, and makes it the current version.
    ///
    /// - Parameters:
    ///   - keys: whose bundles may be installed.
    ///   - force: whether the version may be lower than the installed one.
    ///   - inspect: reads what the manifest's author wrote, and returns the bundle's name and version.
    public func install(
        _ source: @escaping ArchiveReader.Source,
        keys: [TrustedKey],
        force: Bool,
        inspect: (BundleHead) throws(BundleFault) -> (name: String, version: String)
    ) throws(BundleFault) -> Installed {
        var sealed: (signature: MinisignSignature, signer: TrustedKey)?
        var archive = try BundleArchive(source) { manifest, text throws(BundleFault) in
            guard let text else { throw BundleFault("it is not signed: torpor bundle sign does that") }
            let signature = try MinisignSignature(text: text)
            sealed = (signature, try Seal.signer(of: manifest, signature, among: keys))
        }
        guard let (signature, signer) = sealed else { throw BundleFault("it is not signed") }
        let (name, version) = try inspect(archive.head)
        try BundleWord.checkName(name)
        try BundleWord.checkVersion(version)
        try make(folder)
        try make(place(name))
        let held = try lock(name)
        defer { withExtendedLifetime(held) {} }
        let before = current(name)
        try mayFollow(name, before, version, archive.head, signer, keys: keys, force: force)
        func result(_ isByKernel: Bool, _ presence: Presence = .other) -> Installed {
            Installed(
                name: name,
                version: version,
                before: before,
                signer: signer,
                comment: signature.comment,
                isByKernel: isByKernel,
                presence: presence
            )
        }
        sweepRemoved()
        if before == version {
            let isSame = try self.signature(of: name, version) == archive.head.signature
            if !isSame { try sign(name, version, archive.head.signature ?? []) }
            let found = try check(name, version, keys: keys)
            return result(found.isByKernel, isSame ? .whole : .signedOtherwise)
        }
        try sweep(name)
        // The version before, or one that an app still runs from.
        if try isThere(name, version, archive.head), let found = try? check(name, version, keys: keys) {
            try becomeCurrent(name, before, version)
            return result(found.isByKernel)
        }
        let draft = "\(place(name))/.new-\(version)"
        let isByKernel: Bool
        do throws(BundleFault) {
            isByKernel = try unpack(&archive, to: draft)
        } catch {
            try? File.removeTree(draft)
            throw error
        }
        try kernel("the bundle cannot be put in place") { () throws(Errno) in
            let path = place(name, version)
            // One with the same manifest, in which something was changed.
            if try File.kind(path) != nil { try File.removeTree(path) }
            try File.rename(draft, path)
            try File.synchroniseFolder(place(name))
        }
        try becomeCurrent(name, before, version)
        return result(isByKernel)
    }

    private func becomeCurrent(_ name: String, _ before: String?, _ version: String) throws(BundleFault) {
        // Its launches are counted anew.
        try? File.remove(failures(name, version))
        if let before {
            try point("previous", of: name, to: before)
        } else {
            // Left by an uninstallation that was interrupted: that version must not come back.
            try? File.remove("\(place(name))/previous")
        }
        try point("current", of: name, to: version)
        try? sweep(name)
    }

    /// Whether a version is installed with this manifest. One version has one content.
    private func isThere(_ name: String, _ version: String, _ head: BundleHead) throws(BundleFault) -> Bool {
        guard (try? File.kind(place(name, version))) == .directory else { return false }
        let installed = try? File.read(place(name, version) + "/manifest.toml", limit: BundleLimit.manifest)
        guard installed == head.manifest else {
            throw BundleFault("\(name) \(version) is installed with other content: give the new one another version")
        }
        return true
    }

    /// Whether the version may replace the installed one.
    private func mayFollow(
        _ name: String,
        _ before: String?,
        _ version: String,
        _ head: BundleHead,
        _ signer: TrustedKey,
        keys: [TrustedKey],
        force: Bool
    ) throws(BundleFault) {
        guard let before else { return }
        let path = place(name, before)
        if before == version { _ = try isThere(name, version, head) }
        if BundleWord.isLower(version, than: before), !force {
            throw BundleFault("\(name) \(before) is installed, and \(version) is lower: --force installs it")
        }
        // The manifest's status changes only when it is installed, that of its signature also when another one replaces it.
        guard let text = try? self.signature(of: name, before), let signature = try? MinisignSignature(text: text),
            let installed = try? File.status(path + "/manifest.toml").changedNanoseconds,
            let sealed = try? File.status(path + "/manifest.toml.minisig").changedNanoseconds
        else {
            throw BundleFault("the signature of \(name) \(before), which is installed, cannot be read: uninstall it")
        }
        // Anybody can make a key with a given number, so the keys themselves are compared: the one that made the
        // installed signature, if it is still trusted.
        let manifest = (try? File.read(path + "/manifest.toml", limit: BundleLimit.manifest)) ?? []
        let earlier = try? Seal.signer(of: manifest, signature, among: keys)
        guard earlier?.key.key != signer.key.key, signer.changed <= max(installed, sealed) else { return }
        throw BundleFault(
            "\(name) \(before) is signed by the key \(MinisignKey.name(signature.key)), and \(version) by "
                + "\(signer.key.name), which was trusted before that: if it may sign \(name), copy its file \(signer.path) "
                + "into place again"
        )
    }

    func kernel<T>(_ what: String, _ body: () throws(Errno) -> T) throws(BundleFault) -> T {
        do throws(Errno) { return try body() } catch { throw BundleFault("\(what): \(error)") }
    }

    /// Makes a folder that only its owner may change, and that the users of apps may go through.
    private func make(_ path: String) throws(BundleFault) {
        try kernel("the folder \(path) cannot be made") { () throws(Errno) in try Self.makeOpen(path) }
        try inspect(path)
    }

    private static func makeOpen(_ path: String) throws(Errno) {
        if File.exists(path) { return }
        if let parent = File.parent(of: path) { try makeOpen(parent) }
        try File.makeDirectory(path)
        // Whatever the umask is.
        try File.setMode(path, 0o755)
    }

    /// Who can write to a folder of bundles decides what runs.
    private func inspect(_ path: String) throws(BundleFault) {
        let status = try kernel("the folder \(path) cannot be read") { () throws(Errno) in
            try File.status(path, followLinks: false)
        }
        guard status.kind == .directory else { throw BundleFault("\(path) is not a folder") }
        guard status.uid == owner else {
            throw BundleFault("the folder \(path) belongs to another user (\(status.uid)): chown it")
        }
        guard status.mode & 0o022 == 0 else {
            throw BundleFault("the folder \(path) may be written to by others: chmod go-w it")
        }
    }

    /// Whether nobody else can change the folders of a bundle.
    public func inspectFolders(of name: String) throws(BundleFault) {
        try inspect(folder)
        try inspect(place(name))
    }

    /// Two commands do not change one bundle at the same time. The kernel gives the lock back when the process ends.
    func lock(_ name: String) throws(BundleFault) -> Descriptor {
        let file = try kernel("\(place(name))/.lock cannot be opened") { () throws(Errno) in
            try File.open("\(place(name))/.lock", [.readWrite, .create, .noFollow], mode: 0o600)
        }
        // An uninstall may have removed the file while it was opened: then the lock means nothing.
        guard (try? Locks.tryLock(file.raw)) == true,
            let (held, there) = try? (File.status(descriptor: file.raw), File.status("\(place(name))/.lock")),
            held.inode == there.inode, held.device == there.device
        else {
            throw BundleFault("another command is changing the bundle \(name): try it again when that is done")
        }
        return file
    }

    /// Removes what killed commands left, and versions that are neither the current one nor the one before, and that no
    /// app was last launched from.
    private func sweep(_ name: String) throws(BundleFault) {
        let entries = try kernel("the folder \(place(name)) cannot be read") { () throws(Errno) in
            try File.list(place(name))
        }
        let launched = entries.filter { $0.hasPrefix(Self.launchMark) }.compactMap { mark -> String? in
            launchedVersion(name, app: String(mark.dropFirst(Self.launchMark.count)))?.version
        }
        let versions = Set([current(name), previous(name)].compactMap { $0 } + launched)
        let ofVersions = versions.flatMap { version in
            [version, ".\(version).verified", ".ready-\(version)", ".failures-\(version)"]
        }
        let keep = Set(["current", "previous", ".lock"] + ofVersions)
        try kernel("the folder \(place(name)) cannot be tidied up") { () throws(Errno) in
            for entry in entries where !keep.contains(entry) && !entry.hasPrefix(Self.launchMark) {
                try File.removeTree("\(place(name))/\(entry)")
            }
        }
    }

    /// Moves a link in one step.
    func point(_ link: String, of name: String, to version: String) throws(BundleFault) {
        try kernel("the link \(place(name))/\(link) cannot be set") { () throws(Errno) in
            let draft = "\(place(name))/.\(link)"
            if try File.kind(draft) != nil { try File.remove(draft) }
            try File.link(draft, to: version)
            try File.rename(draft, "\(place(name))/\(link)")
            try File.synchroniseFolder(place(name))
        }
    }

    // MARK: Unpacking

    private func unpack(_ archive: inout BundleArchive, to draft: String) throws(BundleFault) -> Bool {
        let root = try kernel("the folder \(draft) cannot be made") { () throws(Errno) in
            if try File.kind(draft) != nil { try File.removeTree(draft) }
            try File.makeDirectory(draft)
            return try Folder(draft)
        }
        var folders = Folders(root)
        try write(.manifest, archive.head.manifest, in: root)
        try write(.signature, archive.head.signature ?? [], in: root)
        // Only where the filesystem has it: the first file says so.
        var isByKernel = !archive.head.files.entries.isEmpty
        while let entry = try archive.next() {
            let names = entry.path.names
            let (folder, name) = (try folders.open(names.dropLast()), FileName(bytes: names[names.count - 1]))
            switch entry.kind {
            case .link(let target):
                try kernel("\(entry.path) cannot be made") { () throws(Errno) in try folder.makeLink(name, to: target) }
            case .file(let mode, _, let digest):
                try file(&archive, entry.path, name, in: folder, mode: mode, digest: digest)
                if isByKernel { isByKernel = protect(name, in: folder, digest) }
            }
        }
        try folders.close()
        return isByKernel
    }

    private func write(_ path: BundlePath, _ bytes: [UInt8], in root: Folder) throws(BundleFault) {
        try kernel("\(path) cannot be written") { () throws(Errno) in
            let file = try root.openOrMakeFile(FileName(bytes: path.bytes), mode: 0o644, isNew: true)
            try Descriptor.writeAll(file.raw, bytes)
            try File.setMode(descriptor: file.raw, 0o644)
            try File.synchroniseAll(file.raw)
        }
    }

    private func file(
        _ archive: inout BundleArchive,
        _ path: BundlePath,
        _ name: FileName,
        in folder: Folder,
        mode: UInt32,
        digest: [UInt8]
    ) throws(BundleFault) {
        let file = try kernel("\(path) cannot be made") { () throws(Errno) in
            try folder.openOrMakeFile(name, mode: 0o600, isNew: true)
        }
        var tree = Digest.tree
        while true {
            var part = try archive.content(atMost: Digest.step)
            // The tree takes whole blocks.
            while part.count < Digest.step {
                let more = try archive.content(atMost: Digest.step - part.count)
                guard !more.isEmpty else { break }
                part += more
            }
            guard !part.isEmpty else { break }
            part.withUnsafeBytes { tree.append($0) }
            try kernel("\(path) cannot be written") { () throws(Errno) in try Descriptor.writeAll(file.raw, part) }
            if part.count < Digest.step { break }
        }
        guard tree.digest() == digest else { throw BundleFault("\(path) is not what was signed") }
        try kernel("\(path) cannot be written") { () throws(Errno) in
            try File.setMode(descriptor: file.raw, mode)
            try File.synchroniseAll(file.raw)
        }
    }

    /// Gives a file to fs-verity. False where the filesystem has none.
    private func protect(_ name: FileName, in folder: Folder, _ digest: [UInt8]) -> Bool {
        guard let file = try? folder.openFile(name), (try? Verity.enable(file.raw)) != nil else { return false }
        return Verity.digest(file.raw) == digest
    }
}

/// The folders on the way to the file that is unpacked, open. Files come in the order of their paths, in which those of a
/// folder follow each other.
private struct Folders {
    private let root: Folder
    private var open: [(name: [UInt8], folder: Folder)] = []

    init(_ root: Folder) { self.root = root }

    mutating func open(_ names: ArraySlice<[UInt8]>) throws(BundleFault) -> Folder {
        let names = Array(names)
        var common = 0
        while common < min(names.count, open.count), names[common] == open[common].name { common += 1 }
        try leave(downTo: common)
        for name in names[common...] {
            let folder = open.last?.folder ?? root
            let inner: Folder
            do throws(Errno) {
                try folder.makeFolder(FileName(bytes: name), mode: 0o755)
                inner = try folder.folder(FileName(bytes: name))
                try inner.setMode(0o755)
            } catch {
                throw BundleFault("the folder \(String(wire: name)) cannot be made: \(error)")
            }
            open.append((name, inner))
        }
        return open.last?.folder ?? root
    }

    private mutating func leave(downTo count: Int) throws(BundleFault) {
        while open.count > count { try sync(open.removeLast().folder) }
    }

    mutating func close() throws(BundleFault) {
        try leave(downTo: 0)
        do throws(Errno) { try root.setMode(0o755) } catch { throw BundleFault("the bundle's folder: \(error)") }
        try sync(root)
    }

    private func sync(_ folder: Folder) throws(BundleFault) {
        do throws(Errno) { try folder.synchronise() } catch {
            throw BundleFault("a folder cannot be written: \(error)")
        }
    }
}
