// SPDX-License-Identifier: Apache-2.0

public import Bundles
import Linux
import WireText

/// The installed bundles: `FOLDER/NAME/VERSION`, with the symlinks `current` and `previous` in `FOLDER/NAME`.
///
/// A version is unpacked into a folder with a temporary name beside the others, and becomes the current one by a
/// single rename. So a kill at any moment leaves either the old version or the new one, and the next install removes
/// the rest.
public struct BundleStore: Sendable {
    /// The folder of all bundles.
    public let folder: String
    /// The uid that owns all files and folders of the store.
    public let owner: UInt32

    /// Creates a store in a folder, which need not exist yet.
    public init(_ folder: String) { (self.folder, owner) = (folder, Users.effectiveUID) }

    /// The folder that contains a bundle's versions.
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

    /// The version that was current before; nil if there is none.
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

    /// Compares the installed files of a version with its signed manifest.
    public func check(_ name: String, _ version: String, keys: [TrustedKey]) throws(BundleFault) -> BundleCheck.Result {
        try BundleCheck.run(place(name, version), keys: keys, owner: owner, cache: nil, now: 0)
    }

    // MARK: Installing

    /// The result of an install.
    public struct Installed: Sendable {
        /// The bundle's name.
        public let name: String
        /// The version that is current now.
        public let version: String
        /// The version that was current before; nil if the bundle is new.
        public let before: String?
        /// The key that signed the bundle.
        public let signer: TrustedKey
        /// The trusted comment of the signature.
        public let comment: String
        /// Whether the kernel verifies each block of every file when it is read (fs-verity).
        public let isByKernel: Bool
        /// Whether the version was installed before this install, and how.
        public let presence: Presence
        /// Whether this version was the current one already, so that nothing changed.
        public var wasThere: Bool { presence == .whole }
    }

    /// How a version was installed before an install of the same version.
    public enum Presence: Sendable {
        /// The version was installed, but was not the current one.
        case other
        /// The version was the current one, with a different signature, which was replaced.
        case signedOtherwise
        /// The version was the current one already, unchanged.
        case whole
    }

    /// Unpacks a bundle, checks it, and makes it the current version.
    ///
    /// - Parameters:
    ///   - keys: the keys whose bundles may be installed.
    ///   - force: whether the version may be lower than the installed one.
    ///   - inspect: parses the author's part of the manifest; returns the bundle's name and version.
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
        // The version may still exist: as the previous one, or because an app was last launched from it.
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
            // A folder of this version exists, but its content was changed: replace it.
            if try File.kind(path) != nil { try File.removeTree(path) }
            try File.rename(draft, path)
            try File.synchroniseFolder(place(name))
        }
        try becomeCurrent(name, before, version)
        return result(isByKernel)
    }

    private func becomeCurrent(_ name: String, _ before: String?, _ version: String) throws(BundleFault) {
        // Start counting the version's failed launches from 0.
        try? File.remove(failures(name, version))
        if let before {
            try point("previous", of: name, to: before)
        } else {
            // An interrupted uninstall may have left the link `previous`: rolling back must not bring back the version
            // to which it points.
            try? File.remove("\(place(name))/previous")
        }
        try point("current", of: name, to: version)
        try? sweep(name)
    }

    /// Whether a version is installed already. Throws if it has a different manifest: two contents need two versions.
    private func isThere(_ name: String, _ version: String, _ head: BundleHead) throws(BundleFault) -> Bool {
        guard (try? File.kind(place(name, version))) == .directory else { return false }
        let installed = try? File.read(place(name, version) + "/manifest.toml", limit: BundleLimit.manifest)
        guard installed == head.manifest else {
            throw BundleFault("\(name) \(version) is installed with other content: give the new one another version")
        }
        return true
    }

    /// Checks that the version may replace the installed one: it is not lower, and its signer may sign this bundle.
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
        // `installed` is when the version was installed, because its manifest never changes. `sealed` is when the
        // version was last signed, because a new signature replaces the signature's file.
        guard let text = try? self.signature(of: name, before), let signature = try? MinisignSignature(text: text),
            let installed = try? File.status(path + "/manifest.toml").changedNanoseconds,
            let sealed = try? File.status(path + "/manifest.toml.minisig").changedNanoseconds
        else {
            throw BundleFault("the signature of \(name) \(before), which is installed, cannot be read: uninstall it")
        }
        // Compare the keys, not their ids: anyone can make a key with a given id. `earlier` is the key that signed
        // the installed version; nil if it is no longer trusted.
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

    /// Makes a folder that only its owner may change, and that all users may enter.
    private func make(_ path: String) throws(BundleFault) {
        try kernel("the folder \(path) cannot be made") { () throws(Errno) in try Self.makeOpen(path) }
        try inspect(path)
    }

    private static func makeOpen(_ path: String) throws(Errno) {
        if File.exists(path) { return }
        if let parent = File.parent(of: path) { try makeOpen(parent) }
        try File.makeDirectory(path)
        // Set the mode again, because the umask may have removed bits when the folder was created.
        try File.setMode(path, 0o755)
    }

    /// Checks a folder of the store: only the owner may write to it, since its content is executed.
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

    /// Checks that no other user can change the folders of a bundle.
    public func inspectFolders(of name: String) throws(BundleFault) {
        try inspect(folder)
        try inspect(place(name))
    }

    /// Locks a bundle, so that two commands do not change it at the same time. The kernel releases the lock when the
    /// process ends.
    func lock(_ name: String) throws(BundleFault) -> Descriptor {
        let file = try kernel("\(place(name))/.lock cannot be opened") { () throws(Errno) in
            try File.open("\(place(name))/.lock", [.readWrite, .create, .noFollow], mode: 0o600)
        }
        // An uninstall may have removed the file since it was opened: then the lock protects nothing.
        guard (try? Locks.tryLock(file.raw)) == true,
            let (held, there) = try? (File.status(descriptor: file.raw), File.status("\(place(name))/.lock")),
            held.inode == there.inode, held.device == there.device
        else {
            throw BundleFault("another command is changing the bundle \(name): try it again when that is done")
        }
        return file
    }

    /// Removes files that killed commands left, and versions that are neither current nor previous and that no app was
    /// last launched from.
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

    /// Points a symlink at another version atomically.
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
        // If the filesystem refuses fs-verity for one file, do not try it for the other files.
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
            // `tree` needs whole blocks.
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

    /// Enables fs-verity for a file. False if the filesystem does not support it or the kernel computes another
    /// digest.
    private func protect(_ name: FileName, in folder: Folder, _ digest: [UInt8]) -> Bool {
        guard let file = try? folder.openFile(name), (try? Verity.enable(file.raw)) != nil else { return false }
        return Verity.digest(file.raw) == digest
    }
}

/// The open folders on the path of the file that is unpacked. Files are sorted by path, so those of a folder come one
/// after another.
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
