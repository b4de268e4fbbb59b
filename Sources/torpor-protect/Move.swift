// SPDX-License-Identifier: Apache-2.0

import DataProtection
import Linux
import Varlink

/// Moves the files of a protected folder into an encrypted one, or out of it.
///
/// A copy is made beside the folder and compared with it, byte for byte. Then the two exchange their names in one step,
/// and the original is removed. So whenever this process is killed, ``Door/files`` is complete, and ``Door/draft`` is
/// not needed: the next move removes it, and begins again unless the exchange was done.
struct Move {
    let door: Door
    let root: DoorRoot
    /// Whether the move encrypts the files; otherwise it decrypts them.
    let encrypts: Bool

    /// Why the files were not moved, or the move is incomplete, as a sentence.
    struct Failure: Error {
        let sentence: String
        init(_ sentence: String) { self.sentence = sentence }
    }

    /// How long to wait for a process that holds the door's lock only to find out whether a move is in progress.
    private static let patience = Duration.seconds(2)
    /// How long processes may be searched for open files.
    private static let longestSearch = Duration.seconds(30)

    /// Moves the files. Returns what was done.
    func run() throws -> JSON {
        guard try File.kind(door.path) == .directory else {
            throw Failure("\(door.order.app) has no protected folder yet: its first launch makes it")
        }
        if !Users.isRoot { try File.setMode(door.path, 0o700, followLinks: false) }
        guard try File.kind(door.files) == .directory else {
            throw Failure("\(door.order.app) has no protected folder yet: its first launch makes it")
        }
        let lock = try File.open(door.path, [.read, .directory, .noFollow])
        try takeLock(lock)
        // From here on no launch opens the door: torpor-protect sees the lock, and the launch waits. If this process
        // does not run as root, leave the door open: a closed door would keep this process out too.
        if Users.isRoot { try File.setMode(door.path, Door.closedMode, followLinks: false) }
        root.letGo()
        let result = try move()
        lock.close()
        return result
    }

    private func takeLock(_ lock: Descriptor) throws {
        let end = Clock.monotonic() + Self.patience
        while !(try lock.withRaw { raw throws(Errno) in try Locks.tryLock(raw) }) {
            guard Clock.monotonic() < end else {
                throw Failure("another ‘torpor protect move \(door.order.app)’ is under way: wait for its end")
            }
            ThisProcess.sleep(.milliseconds(5))
        }
    }

    private func move() throws -> JSON {
        let source = try Folder(door.files)
        let key: Encryption.Identifier?
        switch try Encryption.standing(of: source) {
        case .unsupported: throw Failure(door.unsupported.sentence)
        case .encrypted(let found):
            guard !encrypts else { return try isDone() }
            key = found
        case .plain:
            guard encrypts else { return try isDone() }
            guard let found = root.key(of: door.order.app) else { throw Failure(door.withoutKey.sentence) }
            key = found
        }
        if let key { try need(key) }
        try refuseHolders(source)
        try removeDraft()
        var replica = try copy(source, key)
        do throws(ReplicaError) {
            try replica.compare()
        } catch {
            throw giveUp("the copy is not like the original: \(error)", error)
        }
        // If data was locked while the files were copied, the kernel no longer has the key: fail, and leave the
        // original in place.
        if let key { try need(key) }
        try File.exchange(door.draft, door.files)
        try File.synchroniseFolder(door.path)
        do {
            try removeDraft()
        } catch {
            let why = (error as? Failure)?.sentence ?? "\(error)"
            throw Failure("all files are moved, but not all of their originals are removed: \(why)")
        }
        return json(replica.files, replica.bytes)
    }

    private func json(_ files: Int, _ bytes: UInt64) -> JSON {
        [
            "app": .string(door.order.app), "encrypted": .bool(encrypts), "files": .int(Int64(files)),
            "bytes": .int(Int64(clamping: bytes)),
        ]
    }

    /// Returns the result if the files are in the wanted form already. Removes the originals that an earlier move may
    /// have left.
    private func isDone() throws -> JSON {
        try removeDraft()
        return json(0, 0)
    }

    private func need(_ key: Encryption.Identifier) throws {
        let status = try Encryption.status(of: key, on: root.folder)
        guard status == .present else { throw Failure(door.withoutKey.sentence) }
    }

    /// Throws if a process has files of the folder open, because that process would write to files that are then
    /// removed.
    private func refuseHolders(_ source: Folder) throws {
        var search = HolderSearch()
        let end = Clock.monotonic() + Self.longestSearch
        search.add(door.order.app, door.files, source.identities(atMost: HolderSearch.mostFiles, until: end))
        let found = Monitor([JSON]())
        let isWhole = search.search(until: end) { line in found.withLock { $0.append(line) } }
        let holders = found.withLock { $0 }.compactMap { $0["holder"].flatMap { try? FileHolder(json: $0) } }
        if let holder = holders.first {
            throw Failure(
                "process \(holder.pid) (\(holder.name)) has files of \(door.files) open: end it; nothing is changed"
            )
        }
        guard isWhole else {
            throw Failure("the search for processes that have files open did not end: try again; nothing is changed")
        }
    }

    private func copy(_ source: Folder, _ key: Encryption.Identifier?) throws -> FolderReplica {
        try File.makeDirectory(door.draft, mode: 0o700)
        let target = try Folder(door.draft)
        if encrypts, let key { try Encryption.protect(target, with: key) }
        var replica = FolderReplica(of: source, in: target)
        do throws(ReplicaError) {
            try replica.make()
        } catch {
            throw giveUp("the files cannot be copied: \(error)", error)
        }
        return replica
    }

    /// Removes the copy. Returns why the move has failed.
    private func giveUp(_ sentence: String, _ error: ReplicaError) -> Failure {
        try? removeDraft()
        if error.isWithoutKey {
            return Failure("data was locked during the move: unlock it and try again; nothing is changed")
        }
        guard error.isFull else { return Failure(sentence + "; nothing is changed") }
        let free = (try? root.folder.space().free) ?? 0
        return Failure(
            "\(sentence): the filesystem of \(root.path) needs space for a second copy, and has \(free >> 20) MiB; "
                + "nothing is changed"
        )
    }

    private func removeDraft() throws {
        guard try File.kind(door.draft) != nil else { return }
        let removed = try Folder(door.path).removeTree(FileName(ProtectedPlace.draft), TreeWork())
        if let error = removed.first {
            throw Failure("\(door.path)/\(error.path) cannot be removed: \(error.errno)")
        }
        try File.synchroniseFolder(door.path)
    }
}
