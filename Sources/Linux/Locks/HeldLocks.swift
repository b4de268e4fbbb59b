// SPDX-License-Identifier: Apache-2.0

import Glibc
import WireText

/// A file lock that a process has.
public struct HeldLock: Hashable, Sendable {
    /// What the kernel says of it.
    public let lock: FileLock
    /// The file's path as the process has it, ` (deleted)` behind it when it is there no more; nil where only the kernel's
    /// table told of the lock.
    public let path: String?
    /// Who has it; of processes that share it, the first that was looked at.
    public let holder: Int32

    /// Makes one from its parts.
    public init(_ lock: FileLock, path: String?, holder: Int32) {
        self.lock = lock
        self.path = path
        self.holder = holder
    }
}

/// A reading of the file locks that processes have, by their descriptors (`lock:` in `/proc/PID/fdinfo`), that goes on
/// piece by piece: each that is open takes the kernel some 8 µs.
///
/// Unlike `/proc/locks` this tells who really has a lock: an flock whose process has ended, and the locks of open files,
/// belong to whoever has the file open.
public final class HeldLockReading {
    /// What was found so far, each lock once.
    public private(set) var locks: [HeldLock] = []
    /// Processes that may not be looked into.
    public private(set) var unreadable: [Int32] = []
    /// How many descriptors were looked at.
    public private(set) var count = 0

    private var rest: ArraySlice<Int32>
    private var current: Walk?
    private var seen: Set<FileLock> = []

    /// The descriptors of a process, or of a thread, as two directories that are read side by side.
    private final class Walk {
        let pid: Int32
        let links: OpaquePointer
        let details: Descriptor
        var found = 0

        init(_ pid: Int32, _ place: String) throws(Errno) {
            details = try File.open(place + "/fdinfo", .directory)
            guard let links = opendir(place + "/fd") else { throw Errno(rawValue: errno) }
            self.pid = pid
            self.links = links
        }

        deinit { closedir(links) }
    }

    /// Begins with the first process.
    public init(_ pids: [Int32]) { rest = pids[...] }

    /// Reads on, at most until the time (CLOCK_MONOTONIC) is come; whether all were read.
    public func read(until deadline: Duration? = nil) -> Bool {
        while true {
            if current == nil {
                guard let pid = rest.popFirst() else { return true }
                current = walk(pid, "/proc/\(pid)")
            }
            guard let walk = current else { continue }
            if !read(walk, until: deadline) { return false }
            current = nil
            // A process whose first thread has ended shows its descriptors with the others only.
            if walk.found == 0, let stat = try? ProcFS.stat(walk.pid), stat.hasEnded, stat.threads > 1,
                let task = (try? ProcFS.tasks(walk.pid))?.first(where: { $0 != walk.pid })
            {
                current = self.walk(walk.pid, "/proc/\(walk.pid)/task/\(task)")
                if let current { current.found = 1 }
            }
        }
    }

    private func walk(_ pid: Int32, _ place: String) -> Walk? {
        do throws(Errno) {
            return try Walk(pid, place)
        } catch {
            if error.isRefusal { unreadable.append(pid) }
            return nil
        }
    }

    private func read(_ walk: Walk, until deadline: Duration?) -> Bool {
        let folder = dirfd(walk.links)
        while let entry = readdir(walk.links) {
            withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { name in
                    if name[0] == CChar(UInt8(ascii: ".")) { return }
                    walk.found += 1
                    count += 1
                    if Self.mayBeLocked(folder, name) { look(walk, folder, name) }
                }
            }
            if let deadline, count % 16 == 0, Clock.monotonic() >= deadline { return false }
        }
        return true
    }

    /// Whether it is no socket, pipe or such, of which a server may have thousands.
    private static func mayBeLocked(_ folder: Int32, _ name: UnsafePointer<CChar>) -> Bool {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 8) { buffer in
            let count = buffer.withMemoryRebound(to: CChar.self) {
                readlinkat(folder, name, $0.baseAddress!, $0.count)
            }
            guard count > 0 else { return false }
            let start = buffer[..<count]
            return
                !(start.starts(with: "socket:".utf8) || start.starts(with: "pipe:".utf8)
                || start.starts(with: "anon_ino".utf8))
        }
    }

    private func look(_ walk: Walk, _ folder: Int32, _ name: UnsafePointer<CChar>) {
        let found = Self.locks(walk.details.raw, name)
        guard !found.isEmpty else { return }
        var path: String?
        for lock in found {
            // Whoever has opened a file twice, or shares it with others of the app, has its lock once.
            let key = FileLock(kind: lock.kind, isExclusive: lock.isExclusive, file: lock.file, range: lock.range)
            guard seen.insert(key).inserted else { continue }
            path = path ?? Self.path(folder, name)
            locks.append(HeldLock(lock, path: path, holder: walk.pid))
        }
    }

    private static func path(_ folder: Int32, _ name: UnsafePointer<CChar>) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            let count = readlinkat(folder, name, buffer.baseAddress!, buffer.count)
            guard count > 0 else { return nil }
            return buffer.prefix(count).withMemoryRebound(to: UInt8.self) { String(wire: $0) }
        }
    }

    /// The locks of one descriptor, by the lines of its file of fdinfo.
    private static func locks(_ folder: Int32, _ name: UnsafePointer<CChar>) -> [FileLock] {
        let fd = openat(folder, name, O_RDONLY | O_CLOEXEC)
        guard fd >= 0 else { return [] }
        defer { close(fd) }
        guard let first = Self.first(fd) else { return [] }
        // With a lock it is a matter of microseconds more.
        let all = first + ((try? File.read(descriptor: fd, limit: 1 << 22)) ?? [])
        return all.withUnsafeBytes { locks(in: $0) }
    }

    /// The first piece of a file, nil where no line of it can be a lock.
    private static func first(_ fd: Int32) -> [UInt8]? {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
            guard let count = try? Descriptor.read(fd, into: buffer), count > 0 else { return nil }
            let piece = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            // More than that is of something that lists much else, or of very many locks.
            return count > 2048 || hasLock(piece) ? Array(piece) : nil
        }
    }

    private static func hasLock(_ piece: UnsafeRawBufferPointer) -> Bool {
        var rest = piece[...]
        while !rest.starts(with: "lock:".utf8) {
            guard let end = UnsafeRawBufferPointer(rebasing: rest).firstNewline else { return false }
            rest = rest.dropFirst(end + 1)
        }
        return true
    }

    static func locks(in bytes: UnsafeRawBufferPointer) -> [FileLock] {
        bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
            guard line.starts(with: "lock:".utf8) else { return nil }
            return LockLine(line.dropFirst(5))?.lock
        }
    }
}

extension ProcFS {
    /// Whether this process is in the machine's first pid namespace; in another, an flock whose process has ended is
    /// missing in `/proc/locks`.
    public static let isInFirstPidNamespace =
        // PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h.
        (try? File.status("/proc/self/ns/pid").inode) == 0xEFFF_FFFC
}
