// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux
package import SystemPackage
import Varlink

/// The state archives of one app on the disk: `current`, which its next launch may get, and `set-aside`, which a launch
/// got that did not come up.
///
/// Most of this waits for the disk: it is for the threads of ``StateArchives``.
package struct ArchiveFolder: Sendable {
    /// The folder; its parents are the supervisor's.
    package let path: String
    package var current: String { path + "/current" }
    package var aside: String { path + "/set-aside" }

    private static let draft = ".new-"

    /// An archive as stat(2) has it.
    package struct Found: Hashable, Sendable {
        package let path: String
        package let bytes: UInt64
        /// Microseconds since 1970.
        let savedAt: Int64
    }

    /// The archive that a launch may get; reads the directory only, and does not wait for a disk that hangs.
    package var found: Found? { Self.found(current) }
    /// The archive that was set aside last.
    package var foundAside: Found? { Self.found(aside) }

    private static func found(_ path: String) -> Found? {
        guard let status = try? File.status(path, followLinks: false), status.kind == .regular else { return nil }
        return Found(path: path, bytes: status.size, savedAt: status.modifiedMicroseconds)
    }

    // MARK: What waits for the disk

    /// Keeps an archive in place of the one before, which stays whatever fails; durable when it returns. Returns its
    /// bytes.
    ///
    /// - Parameters:
    ///   - name: what it is called, where that is not ``current``.
    ///   - limit: bytes; nil for none.
    ///   - owner: who can read it, where that is not the supervisor's own user.
    func save(
        _ content: ArchiveContent,
        as name: String? = nil,
        limit: UInt64?,
        owner: ArchiveOwner?
    ) throws(ArchiveFailure) -> UInt64 {
        let source = try content.open(limit: limit)
        do throws(Errno) {
            try make()
        } catch {
            throw .failed("cannot make \(path): \(Self.sentence(error))")
        }
        removeDrafts()
        let draft = path + "/" + Self.draft + "\(ThisProcess.pid)"
        do {
            let bytes = try write(source, to: draft, limit: limit, owner: owner)
            try File.rename(draft, name.map { path + "/" + $0 } ?? current)
            try Self.synchronise(path)
            return bytes
        } catch {
            try? File.remove(draft)
            if let failure = error as? ArchiveFailure { throw failure }
            let problem = (error as? Errno).map(Self.sentence) ?? "\(error)"
            throw .failed("cannot save it in \(path): \(problem); the earlier one is unchanged")
        }
    }

    /// Forgets the archive; not an error when there is none.
    func discard() throws(Errno) {
        do throws(Errno) {
            try File.remove(current)
        } catch {
            if error == .noSuchFileOrDirectory || error == .notDirectory { return }
            throw error
        }
        try Self.synchronise(path)
    }

    /// Puts the archive where no launch gets it, in place of one that was put there before; not an error when there is
    /// none.
    package func setAside() throws(Errno) {
        do throws(Errno) {
            try File.rename(current, aside)
        } catch {
            if error == .noSuchFileOrDirectory || error == .notDirectory { return }
            throw error
        }
        try Self.synchronise(path)
    }

    /// Removes all that is kept of the app.
    package func remove() throws(Errno) { try File.removeTree(path) }

    private func write(
        _ source: ArchiveContent.Source,
        to draft: String,
        limit: UInt64?,
        owner: ArchiveOwner?
    ) throws -> UInt64 {
        // Nobody else may read it, nor write to it by mistake.
        let file = try File.open(draft, [.write, .create, .exclusive, .noFollow], mode: 0o400)
        let bytes = try source.copy(to: file.raw, limit: limit)
        if let owner { try File.setOwner(draft, uid: owner.uid, gid: owner.gid) }
        try File.synchronise(file.raw)
        return bytes
    }

    /// Makes the folder; that it is there must survive the machine's end as well as what is in it.
    private func make() throws(Errno) {
        if try File.kind(path) == .directory { return }
        var missing: [String] = []
        var directory = path
        while try File.kind(directory) == nil, let parent = File.parent(of: directory) {
            missing.append(directory)
            directory = parent
        }
        // Passed through by the app's user, and listed by nobody.
        try File.makeDirectories(path, mode: 0o711)
        for made in missing { if let parent = File.parent(of: made) { try Self.synchronise(parent) } }
    }

    /// What a torpord that was killed had begun.
    private func removeDrafts() {
        for name in (try? File.list(path)) ?? [] where name.hasPrefix(Self.draft) {
            try? File.remove(path + "/" + name)
        }
    }

    private static func synchronise(_ directory: String) throws(Errno) {
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

/// Whose archives are.
struct ArchiveOwner: Hashable, Sendable {
    let uid: UInt32
    let gid: UInt32
}

/// Why an archive is not kept.
package enum ArchiveFailure: Error, Hashable, Sendable {
    /// It has more bytes than that.
    case tooLarge(limit: UInt64)
    /// What the app asked for cannot be had; a sentence.
    case refused(String)
    /// The disk did not take it; a sentence.
    case failed(String)
}

/// What an app wants kept.
package enum ArchiveContent: Sendable {
    /// Base64.
    case data(String)
    /// What a command or a server gave.
    case bytes([UInt8])
    /// A file of the app's state directory, or another that it names. It must be one of these users'.
    case file(name: String, directory: String, owners: Set<UInt32>)

    /// The most that can come as data: a message is bounded.
    static let largestData = 512 << 10

    enum Source {
        case bytes([UInt8])
        case file(Descriptor)

        /// Writes all of it; returns how many bytes.
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
                        // It may grow while it is read.
                        if let limit, total > limit { throw ArchiveFailure.tooLarge(limit: limit) }
                        let part = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                        if let failure = Descriptor.writeAll(file, part).failure { throw failure }
                    }
                }
            }
        }
    }

    /// How much it takes while it waits.
    var waitingBytes: Int {
        switch self {
        case .data(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .file: 0
        }
    }

    /// All of it, for who has to look into it.
    package func read(limit: UInt64) throws(ArchiveFailure) -> [UInt8] {
        switch try open(limit: limit) {
        case .bytes(let bytes):
            return bytes
        case .file(let source):
            do throws(Errno) {
                return try File.read(descriptor: source.raw, limit: Int(clamping: limit))
            } catch {
                // It may have grown since it was opened.
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

    /// Opens what the app itself could have opened, whatever it makes of the name meanwhile.
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
            // Neither a FIFO nor a lease keeps whoever opens it waiting.
            let file = try File.open(name, in: folder.raw, [.noFollow, .nonBlocking])
            return (file, try File.status(descriptor: file.raw))
        } catch {
            let isLink = error == .tooManySymbolicLinkLevels
            let problem = isLink ? "it is a symlink, and symlinks are not followed" : "\(error)"
            throw .refused("cannot read \(directory)/\(name): \(problem)")
        }
    }
}
