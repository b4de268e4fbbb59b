// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux
package import SystemPackage
import TorporAPI
import Varlink

/// The state archives of one app on disk. The next launch gets `current`; `set-aside`, `set-aside.2` and so on are the
/// archives with which launches failed.
///
/// Most functions block on the disk: call them on the threads of ``StateArchives``.
package struct ArchiveFolder: Sendable {
    /// The path of the folder. Its parent folders belong to torpord.
    package let path: String
    /// A hard link to the current archive, for an app in a sandbox; nil for none. The sandbox's rules are made at
    /// launch and cover only folders that exist then. The folder of a scene that first saves its state in this run does
    /// not exist yet, but the link's folder does.
    var mirror: String?
    package var current: String { path + "/current" }

    private static let draft = ".new-"

    package init(path: String) { self.path = path }

    /// An archive on disk, as stat(2) describes it.
    package struct Found: Hashable, Sendable {
        package let path: String
        package let bytes: UInt64
        /// When the archive was saved, in microseconds since 1970.
        let savedAt: Int64
        /// The user that owns the file, who can change it at any time.
        let uid: UInt32
    }

    /// The archive for the next launch. Reads only the directory, so it does not block on a disk that hangs.
    package var found: Found? { Self.found(current) }

    static func found(_ path: String) -> Found? {
        guard let status = try? File.status(path, followLinks: false), status.kind == .regular else { return nil }
        return Found(path: path, bytes: status.size, savedAt: status.modifiedMicroseconds, uid: status.uid)
    }

    /// The same archive at the path of ``mirror``; nil if the link is missing, or leads to an earlier archive.
    var foundInMirror: Found? {
        guard let mirror, let found = Self.found(mirror), let link = try? File.status(mirror, followLinks: false),
            let status = try? File.status(current, followLinks: false), link.inode == status.inode,
            link.device == status.device
        else { return nil }
        return found
    }

    // MARK: What waits for the disk

    /// A part of the current archive, from the byte `offset` on.
    func part(at offset: UInt64) -> StatePart {
        // Try again if another archive has replaced the one that was found.
        for _ in 0..<4 {
            guard let found else { break }
            let part = StatePart(savedAt: found.savedAt, bytes: Int64(clamping: found.bytes))
            guard offset < found.bytes else { return part }
            guard let file = try? File.open(current, [.read, .noFollow, .nonBlocking]),
                let data = try? File.read(file.raw, at: offset, maximum: StatePart.mostBytes)
            else { continue }
            return StatePart(savedAt: part.savedAt, bytes: part.bytes, data: data)
        }
        return StatePart(savedAt: nil)
    }

    /// Saves an archive in place of the current one, which stays if anything fails. When this function returns, the
    /// archive is durable. Returns its size in bytes.
    ///
    /// - Parameters:
    ///   - name: the archive's file name, if not `current`.
    ///   - limit: the most bytes; nil for no limit.
    ///   - owner: the user that may read the archive; nil for torpord's own user.
    func save(
        _ content: ArchiveContent,
        as name: String? = nil,
        limit: UInt64?,
        owner: ArchiveOwner?
    ) throws(ArchiveFailure) -> UInt64 {
        try save(try content.open(limit: limit), as: name, limit: limit, owner: owner)
    }

    /// Replaces the current archive by a copy that belongs to another user, saved at the same time. The former owner
    /// may have the old file open, so changing its owner would not be enough. Returns the number of bytes.
    func give(to owner: ArchiveOwner, limit: UInt64?) throws(ArchiveFailure) -> UInt64 {
        let file: Descriptor
        let status: FileStatus
        do throws(Errno) {
            // With O_NONBLOCK, opening does not wait for a lease of the former owner.
            file = try File.open(current, [.read, .noFollow, .nonBlocking])
            status = try File.status(descriptor: file.raw)
        } catch {
            throw .failed("cannot read \(current): \(error)")
        }
        guard status.kind == .regular else { throw .failed("\(current) is not a regular file") }
        return try save(.file(file), as: nil, limit: limit, owner: owner, time: status.modifiedMicroseconds)
    }

    private func save(
        _ source: ArchiveContent.Source,
        as name: String?,
        limit: UInt64?,
        owner: ArchiveOwner?,
        time: Int64? = nil
    ) throws(ArchiveFailure) -> UInt64 {
        do throws(Errno) {
            try make()
        } catch {
            throw .failed("cannot make \(path): \(Self.sentence(error))")
        }
        removeDrafts()
        let draft = path + "/" + Self.draft + "\(ThisProcess.pid)"
        do {
            let bytes = try write(source, to: draft, limit: limit, owner: owner, time: time)
            try File.rename(draft, name.map { path + "/" + $0 } ?? current)
            try Self.synchronise(path)
            if name == nil { renewMirror() }
            return bytes
        } catch {
            try? File.remove(draft)
            if let failure = error as? ArchiveFailure { throw failure }
            let problem = (error as? Errno).map(Self.sentence) ?? "\(error)"
            throw .failed("cannot save it in \(path): \(problem); the earlier one is unchanged")
        }
    }

    /// Removes the current archive. It is no error if there is none.
    func discard() throws(Errno) {
        removeMirror()
        do throws(Errno) {
            try File.remove(current)
        } catch {
            if error == .noSuchFileOrDirectory || error == .notDirectory { return }
            throw error
        }
        try Self.synchronise(path)
    }

    /// Sets the current archive's modification time to now, durably. It is no error if there is no archive.
    func renew() throws(Errno) {
        do throws(Errno) {
            try File.markChanged(current)
            // The file must stay open until it is synchronised.
            try File.open(current, [.read, .noFollow, .nonBlocking]).withRaw { raw throws(Errno) in
                try File.synchronise(raw)
            }
        } catch {
            if error == .noSuchFileOrDirectory || error == .notDirectory { return }
            throw error
        }
    }

    /// Removes the folder with everything in it.
    package func remove() throws(Errno) {
        removeMirror()
        try File.removeTree(path)
    }

    func removeMirror() { if let mirror { try? File.remove(mirror) } }

    /// Links the current archive at ``mirror``, if the folder of the link exists. Nothing depends on the link's
    /// durability: from the next launch on, the app may read the archive itself.
    private func renewMirror() {
        guard let mirror else { return }
        try? File.remove(mirror)
        try? File.hardLink(current, at: mirror)
    }

    private func write(
        _ source: ArchiveContent.Source,
        to draft: String,
        limit: UInt64?,
        owner: ArchiveOwner?,
        time: Int64?
    ) throws -> UInt64 {
        // Only the owner may read the archive, and no program can write to it by mistake.
        let file = try File.open(draft, [.write, .create, .exclusive, .noFollow], mode: 0o400)
        let bytes = try source.copy(to: file.raw, limit: limit)
        if let owner { try File.setOwner(draft, uid: owner.uid, gid: owner.gid) }
        if let time { try File.setModified(file.raw, microseconds: time) }
        try File.synchronise(file.raw)
        return bytes
    }

    /// Creates the folder durably, so that the folder itself survives a power failure, not only its contents.
    package func make() throws(Errno) {
        if try File.kind(path) == .directory { return }
        var missing: [String] = []
        var directory = path
        while try File.kind(directory) == nil, let parent = File.parent(of: directory) {
            missing.append(directory)
            directory = parent
        }
        // The app's user may open files in the folder by name, but not list it.
        try File.makeDirectories(path, mode: 0o711)
        for made in missing { if let parent = File.parent(of: made) { try Self.synchronise(parent) } }
    }

    /// Removes unfinished files of a torpord that was killed.
    private func removeDrafts() {
        for name in (try? File.list(path)) ?? [] where name.hasPrefix(Self.draft) {
            try? File.remove(path + "/" + name)
        }
    }

    static func synchronise(_ directory: String) throws(Errno) {
        let opened = try File.open(directory, .directory)
        try File.synchronise(opened.raw)
    }

    private static func sentence(_ error: Errno) -> String {
        switch error {
        case .noSpace: "the disk is full"
        case .diskQuotaExceeded: "the quota is used up"
        case .readOnlyFileSystem: "the file system is read-only"
        default: "\(error)"
        }
    }
}

/// The user and group that own an app's archives.
struct ArchiveOwner: Hashable, Sendable {
    let uid: UInt32
    let gid: UInt32
}

/// Why an archive was not saved.
package enum ArchiveFailure: Error, Hashable, Sendable {
    /// The content is larger than the limit, in bytes.
    case tooLarge(limit: UInt64)
    /// The app's request cannot be granted. The text gives the reason, as a sentence.
    case refused(String)
    /// Writing to the disk failed; the text is a sentence.
    case failed(String)
}

/// What to save as an archive or snapshot.
package enum ArchiveContent: Sendable {
    /// Data from the app, as Base64 text.
    case data(String)
    /// The output of a command, or the answer of a server.
    case bytes([UInt8])
    /// A file in the app's state directory, or in another directory. One of `owners` must own the file.
    case file(name: String, directory: String, owners: Set<UInt32>)

    /// The most bytes of decoded data: larger data does not fit into one message to torpord.
    static let largestData = 512 << 10

    enum Source {
        case bytes([UInt8])
        case file(Descriptor)

        /// Writes the whole content to an open file; returns the number of bytes.
        func copy(to file: Int32, limit: UInt64?) throws -> UInt64 {
            switch self {
            case .bytes(let bytes):
                try Descriptor.writeAll(file, bytes)
                return UInt64(bytes.count)
            case .file(let source):
                return try withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
                    var total: UInt64 = 0
                    while true {
                        guard let count = try Descriptor.read(source.raw, into: buffer), count > 0 else { return total }
                        total += UInt64(count)
                        // Check the size again, because the file may grow while it is read.
                        if let limit, total > limit { throw ArchiveFailure.tooLarge(limit: limit) }
                        let part = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                        if let failure = Descriptor.writeAll(file, part).failure { throw failure }
                    }
                }
            }
        }
    }

    /// How many bytes of memory the content takes until it is written.
    var waitingBytes: Int {
        switch self {
        case .data(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .file: 0
        }
    }

    /// Reads the whole content into memory, to inspect it.
    package func read(limit: UInt64) throws(ArchiveFailure) -> [UInt8] {
        switch try open(limit: limit) {
        case .bytes(let bytes):
            return bytes
        case .file(let source):
            do throws(Errno) {
                return try File.read(descriptor: source.raw, limit: Int(clamping: limit))
            } catch {
                // The file may have grown since its size was checked.
                if error == .fileTooLarge { throw .tooLarge(limit: limit) }
                throw .refused("it cannot be read: \(error)")
            }
        }
    }

    fileprivate func open(limit: UInt64?) throws(ArchiveFailure) -> Source {
        switch self {
        case .data(let text):
            guard let bytes = Base64.decode(text) else {
                throw .refused("the data is not Base64: send it with padding, and without line breaks")
            }
            if let limit, UInt64(bytes.count) > limit { throw .tooLarge(limit: limit) }
            guard bytes.count <= Self.largestData else {
                throw .refused(
                    "\(bytes.count) bytes are more than a message may carry (\(Self.largestData)): write them into a "
                        + "file in TORPOR_STATE_DIRECTORY, and name that"
                )
            }
            return .bytes(bytes)
        case .bytes(let bytes):
            if let limit, UInt64(bytes.count) > limit { throw .tooLarge(limit: limit) }
            return .bytes(bytes)
        case .file(let name, let directory, let owners):
            return .file(try Self.open(name, in: directory, owners, limit))
        }
    }

    /// Opens a file that the app itself could have opened, safely even if the app changes the path at the same time.
    private static func open(
        _ name: String,
        in directory: String,
        _ owners: Set<UInt32>,
        _ limit: UInt64?
    ) throws(ArchiveFailure) -> Descriptor {
        guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(where: { $0 == 0x2f || $0 == 0 }) else {
            throw .refused("a file for the archive is a name in TORPOR_STATE_DIRECTORY, without directories")
        }
        let (file, status) = try found(name, in: directory)
        guard status.kind == .regular else { throw .refused("\(directory)/\(name) is not a regular file") }
        guard owners.contains(status.uid) else { throw .refused("\(directory)/\(name) is not owned by the app's user") }
        if let limit, status.size > limit { throw .tooLarge(limit: limit) }
        return file
    }

    private static func found(
        _ name: String,
        in directory: String
    ) throws(ArchiveFailure) -> (Descriptor, FileStatus) {
        do throws(Errno) {
            let folder = try File.open(directory, [.path, .directory, .noFollow])
            // With O_NONBLOCK, opening does not block on a FIFO or a lease.
            let file = try File.open(name, in: folder.raw, [.noFollow, .nonBlocking])
            return (file, try File.status(descriptor: file.raw))
        } catch {
            let isLink = error == .tooManySymbolicLinkLevels
            let problem = isLink ? "it is a symlink, and symlinks are not followed" : "\(error)"
            throw .refused("cannot read \(directory)/\(name): \(problem)")
        }
    }
}
