// SPDX-License-Identifier: Apache-2.0

import Glibc
import WireText

/// A file lock and the process that holds it.
public struct HeldLock: Hashable, Sendable {
    /// The lock as the kernel describes it.
    public let lock: FileLock
    /// The file's path as the process sees it, with ` (deleted)` appended if the file was unlinked. Nil if the lock is
    /// known only from `/proc/locks`.
    public let path: String?
    /// The process that holds the lock. If several processes share the lock, this is the one that was inspected first.
    public let holder: Int32

    /// Creates a held lock from its parts.
    public init(_ lock: FileLock, path: String?, holder: Int32) {
        self.lock = lock
        self.path = path
        self.holder = holder
    }
}

/// Reads the file locks that processes hold, from their descriptors (`lock:` in `/proc/PID/fdinfo`). Reads in steps,
/// because each open descriptor takes the kernel about 8 µs.
///
/// Unlike `/proc/locks`, this shows all processes that hold a lock. An OFD lock, and a flock whose process has ended,
/// belong to every process that shares the open file.
public final class HeldLockReading {
    /// The locks found so far, each once.
    public private(set) var locks: [HeldLock] = []
    /// The processes whose descriptors this process may not inspect.
    public private(set) var unreadable: [Int32] = []
    /// How many descriptors were inspected so far.
    public private(set) var count = 0

    private var rest: ArraySlice<Int32>
    private var current: Walk?
    private var seen: Set<FileLock> = []

    /// The list of a process's or thread's descriptors. The directories `fd` and `fdinfo` are read in parallel.
    private final class Walk {
        let pid: Int32
        let links: OpaquePointer
        let details: Descriptor
        var found = 0

        init(_ pid: Int32, task: Int32? = nil) throws(Errno) {
            details = try ProcPath.with(pid, task: task, "/fdinfo") { path throws(Errno) in
                Descriptor(owning: try call { Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
            }
            links = try ProcPath.with(pid, task: task, "/fd") { path throws(Errno) in
                guard let links = opendir(path) else { throw Errno(rawValue: errno) }
                return links
            }
            self.pid = pid
        }

        deinit { closedir(links) }
    }

    /// Prepares to read the locks of these processes.
    public init(_ pids: [Int32]) { rest = pids[...] }

    /// Continues reading until `deadline` (CLOCK_MONOTONIC) at the latest. Returns true when all descriptors were
    /// read.
    public func read(until deadline: Duration? = nil) -> Bool {
        while true {
            if current == nil {
                guard let pid = rest.popFirst() else { return true }
                current = walk(pid)
            }
            guard let walk = current else { continue }
            if !read(walk, until: deadline) { return false }
            current = nil
            // If the main thread of a process has ended, /proc shows the process's descriptors only for its other
            // threads.
            if walk.found == 0, let stat = try? ProcFS.stat(walk.pid), stat.hasEnded, stat.threads > 1,
                let task = (try? ProcFS.tasks(walk.pid))?.first(where: { $0 != walk.pid })
            {
                current = self.walk(walk.pid, task: task)
                if let current { current.found = 1 }
            }
        }
    }

    private func walk(_ pid: Int32, task: Int32? = nil) -> Walk? {
        do throws(Errno) {
            return try Walk(pid, task: task)
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

    /// Whether the descriptor refers to a file, so that it may be locked. False for sockets, pipes and similar
    /// descriptors: a server may have thousands of them, and reading the fdinfo of each would waste time.
    private static func mayBeLocked(_ folder: Int32, _ name: UnsafePointer<CChar>) -> Bool {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 8) { buffer in
            let count = buffer.withMemoryRebound(to: CChar.self) {
                readlinkat(folder, name, $0.baseAddress!, $0.count)
            }
            guard count > 0 else { return false }
            // The name of a socket, a pipe and the like is no path.
            if buffer[0] == UInt8(ascii: "/") { return true }
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
            // Report a lock only once, even if several descriptors or processes share its file.
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

    /// The locks in one descriptor's fdinfo (`lock:` lines).
    private static func locks(_ folder: Int32, _ name: UnsafePointer<CChar>) -> [FileLock] {
        let fd = openat(folder, name, O_RDONLY | O_CLOEXEC)
        guard fd >= 0 else { return [] }
        defer { close(fd) }
        guard let first = Self.first(fd) else { return [] }
        // For most files, `first` has returned nil. Only files with locks, and files with a long fdinfo, are read to
        // the end, so this costs only microseconds.
        let all = first + ((try? File.read(descriptor: fd, limit: 1 << 22)) ?? [])
        return all.withUnsafeBytes { locks(in: $0) }
    }

    /// The first part of an fdinfo file. Nil if the file certainly contains no lock.
    private static func first(_ fd: Int32) -> [UInt8]? {
        withUnsafeTemporaryAllocation(byteCount: File.shortFile, alignment: 8) { buffer in
            guard let count = try? Descriptor.read(fd, into: buffer), count > 0 else { return nil }
            let piece = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            // If a read fills more than half of the buffer, more of the file may follow, and that part may contain
            // locks. So do not return nil.
            return count > buffer.count / 2 || hasLock(piece) ? Array(piece) : nil
        }
    }

    private static func hasLock(_ piece: UnsafeRawBufferPointer) -> Bool {
        // By pointer, since torpord reads such a file for each open file of an app that it suspends.
        var start = 0
        while start < piece.count {
            let rest = UnsafeRawBufferPointer(rebasing: piece[start...])
            if rest.first == UInt8(ascii: "l"), rest.starts(with: "lock:".utf8) { return true }
            guard let end = rest.firstNewline else { return false }
            start += end + 1
        }
        return false
    }

    static func locks(in bytes: UnsafeRawBufferPointer) -> [FileLock] {
        bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
            guard line.starts(with: "lock:".utf8) else { return nil }
            return LockLine(line.dropFirst(5))?.lock
        }
    }
}

extension ProcFS {
    /// Whether this process is in the machine's initial pid namespace. In any other pid namespace, `/proc/locks` omits
    /// a flock whose process has ended.
    public static let isInFirstPidNamespace =
        // PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h.
        (try? File.status("/proc/self/ns/pid").inode) == 0xEFFF_FFFC
}
