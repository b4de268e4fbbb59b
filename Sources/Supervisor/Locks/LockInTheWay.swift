// SPDX-License-Identifier: Apache-2.0

import Engine
package import Linux
package import TorporAPI

/// A file lock because of which an app must not stay suspended (docs/lifecycle.md, "Background time", Locks).
struct LockInTheWay: Hashable {
    let held: HeldLock
    /// Whether a process outside the app waits for the lock. `waiter` is the pid of that process; nil if it is not
    /// known.
    var isAwaited: Bool
    var waiter: Int32?

    /// The lock, as reports show it.
    var info: LockInfo {
        LockInfo(file: held.shownPath, kind: held.lock.kind.rawValue, holder: held.holder, waiter: waiter)
    }

    /// An example: `process 12 holds a lock on /var/lib/x (flock), for which process 34 (psql) waits`.
    var sentence: String {
        let lease = held.lock.kind == .lease
        var text = "process \(Self.shown(held.holder)) holds a \(lease ? "lease" : "lock") on \(held.shownPath)"
        if !lease { text += " (\(held.lock.kind.rawValue))" }
        if isAwaited {
            text += ", for which " + (waiter.map { "process \(Self.shown($0)) waits" } ?? "another process waits")
        } else {
            text += ", one of its shared_resources"
        }
        return text
    }

    private static func shown(_ pid: Int32) -> String {
        guard let name = (try? ProcFS.stat(pid))?.comm else { return "\(pid)" }
        return "\(pid) (\(Readable.line(name)))"
    }
}

extension HeldLock {
    /// The path of the locked file, made fit for one line; if the path is not known, the file's device and inode.
    var shownPath: String {
        if let path { return Readable.line(path) }
        guard let file = lock.file else { return "a file" }
        return "inode \(file.inode) of device \(file.device >> 32):\(file.device & 0xFFFF_FFFF)"
    }

    /// The lock, as reports show it.
    package var info: LockInfo { LockInfo(file: shownPath, kind: lock.kind.rawValue, holder: holder) }

    /// Whether the lock is on one of these files or below one of these folders (`shared_resources`), and is more than
    /// the lock of an idle SQLite connection. If so, the app must not stay suspended while it holds the lock, even if
    /// no process waits for the lock. `others`: the app's other locks.
    func isOn(_ resources: [String], others: [HeldLock]) -> Bool {
        guard !resources.isEmpty, let path, !path.hasSuffix(" (deleted)"), !isOfMereConnection(others) else {
            return false
        }
        return resources.contains { resource in
            Self.isWithin(path, resource) || SharedPaths.resolved(resource).map { Self.isWithin(path, $0) } ?? false
        }
    }

    private static func isWithin(_ path: String, _ resource: String) -> Bool {
        // Compare bytes: Swift's string comparison considers some names equal (Unicode equivalence) that name different
        // files.
        guard path.utf8.starts(with: resource.utf8) else { return false }
        return resource.hasSuffix("/") || path.utf8.count == resource.utf8.count
            || path.utf8.dropFirst(resource.utf8.count).first == UInt8(ascii: "/")
    }

    /// Whether the lock belongs to an idle connection to an SQLite database. In WAL mode, a connection holds two read
    /// locks as long as it is open: on byte 128 of its -shm file (https://sqlite.org/walformat.html, "WAL Locks"),
    /// and on the database itself (which, without WAL, would mean that it reads). Neither lock blocks other
    /// processes.
    private func isOfMereConnection(_ others: [HeldLock]) -> Bool {
        guard !lock.isExclusive, let path else { return false }
        if isOfSharedMemory { return true }
        return lock.kind == .posix && lock.range == Self.readersRange
            && others.contains { $0.isOfSharedMemory && $0.holder == holder && $0.path == path + "-shm" }
    }

    private var isOfSharedMemory: Bool {
        lock.kind == .posix && !lock.isExclusive && lock.range == 128...128 && path?.hasSuffix("-shm") ?? false
    }

    /// The range of bytes that SQLite locks for reading: SHARED_FIRST and SHARED_SIZE of its os.h.
    private static let readersRange: ClosedRange<UInt64> = 0x4000_0002...(0x4000_0002 + 509)
}

/// Resolves symbolic links in paths of the configuration.
enum SharedPaths {
    /// The path without symbolic links; nil if no file is there, or if the kernel does not have the whole path in
    /// memory. Because of this condition, the function never waits for a disk.
    static func resolved(_ path: String) -> String? { try? File.realPathInMemory(path) }
}

extension Incarnation {
    /// The locks because of which the app must not stay suspended.
    var locksInTheWay: [LockInTheWay]? {
        get { slots[LocksInTheWaySlot.self] }
        set { slots[LocksInTheWaySlot.self] = newValue }
    }
}

private enum LocksInTheWaySlot: Slot { typealias Value = [LockInTheWay] }
