// SPDX-License-Identifier: Apache-2.0

import Glibc
import WireText

/// A lock on a file, or a request for one, as the kernel describes it in `/proc/locks` and `/proc/PID/fdinfo`
/// (proc_locks(5), proc_pid_fdinfo(5)).
public struct FileLock: Hashable, Sendable {
    /// The system call that takes the lock.
    public enum Kind: String, Hashable, Sendable {
        /// flock(2): the lock belongs to the open file, and so to every process that has inherited it.
        case flock
        /// fcntl(2), F_SETLK: the lock belongs to the process.
        case posix
        /// fcntl(2), F_OFD_SETLK: the lock belongs to the open file.
        case ofd
        /// fcntl(2), F_SETLEASE: a process that opens the file waits until the lease is released.
        case lease
    }

    /// A file as the kernel's lock tables identify it. On some filesystems the device number in these tables differs
    /// from the one of stat(2).
    public struct File: Hashable, Sendable {
        /// The device number: the major number in the upper half, the minor in the lower.
        public let device: UInt64
        /// The file's inode number.
        public let inode: UInt64

        /// Creates an identity from the numbers in the kernel's lock tables.
        public init(device: UInt64, inode: UInt64) {
            self.device = device
            self.inode = inode
        }
    }

    /// The system call that took the lock, or waits for it.
    public let kind: Kind
    /// Whether the lock is exclusive (write), as opposed to shared (read).
    public let isExclusive: Bool
    /// The locked file. Nil for a process that waits for a lease, because the kernel does not name that file.
    public let file: File?
    /// The first and the last byte of the locked range; `UInt64.max` stands for the end of the file.
    public let range: ClosedRange<UInt64>
    /// The process that holds the lock or waits for it. For flock(2), the process that took the lock, even if that
    /// process has ended. Nil for an OFD lock, because the kernel names no process, and for a process outside this pid
    /// namespace.
    public let pid: Int32?

    /// Creates a lock or a request from its parts.
    public init(
        kind: Kind,
        isExclusive: Bool,
        file: File?,
        range: ClosedRange<UInt64> = 0...UInt64.max,
        pid: Int32? = nil
    ) {
        self.kind = kind
        self.isExclusive = isExclusive
        self.file = file
        self.range = range
        self.pid = pid
    }

    /// A copy of this request with the pid of its process. Used for a request that the kernel's table lists without a
    /// pid.
    public func by(_ pid: Int32) -> FileLock {
        FileLock(kind: kind, isExclusive: isExclusive, file: file, range: range, pid: pid)
    }

    /// Whether `request`, for a lock on the same file, has to wait for this lock.
    public func blocks(_ request: FileLock) -> Bool {
        switch (kind, request.kind) {
        // A process that opens the file has to wait for the lease, whether it opens the file for reading or writing.
        case (.lease, .lease): true
        case (.flock, .flock): isExclusive || request.isExclusive
        case (.posix, .posix), (.posix, .ofd), (.ofd, .posix), (.ofd, .ofd):
            (isExclusive || request.isExclusive) && range.overlaps(request.range)
        default: false
        }
    }

    /// Parses the fields that follow the number in a line of `/proc/locks`, such as `POSIX  ADVISORY  WRITE 8339
    /// fe:00:16237567 0 EOF`. Nil for kinds of locks that programs cannot take.
    init?(words: ArraySlice<Slice<UnsafeRawBufferPointer>>) {
        guard words.count >= 7 else { return nil }
        let words = Array(words.prefix(7)).map { String(wire: $0) }
        switch words[0] {
        case "FLOCK": kind = .flock
        case "POSIX": kind = .posix
        case "OFDLCK": kind = .ofd
        case "LEASE": kind = .lease
        default: return nil
        }
        isExclusive = words[2] == "WRITE" || words[2] == "RW"
        guard let pid = Int32(words[3]) else { return nil }
        self.pid = pid > 0 ? pid : nil
        let parts = words[4].split(separator: ":")
        if parts.count == 3, let major = UInt64(parts[0], radix: 16), let minor = UInt64(parts[1], radix: 16),
            major <= UInt64(UInt32.max), minor <= UInt64(UInt32.max), let inode = UInt64(parts[2])
        {
            file = File(device: major << 32 | minor, inode: inode)
        } else {
            file = nil
        }
        guard let first = UInt64(words[5]), let last = words[6] == "EOF" ? .max : UInt64(words[6]), first <= last else {
            return nil
        }
        range = first...last
    }
}

/// One line of `/proc/locks`, or one `lock:` line of a file in `/proc/PID/fdinfo`.
struct LockLine {
    /// The number that the kernel gives a lock. Requests that wait for the lock have the same number.
    let number: Int
    /// Whether the line is a request that waits for the lock of an earlier line with the same number.
    let waits: Bool
    let lock: FileLock

    /// Parses a line such as `4: -> FLOCK  ADVISORY  WRITE 8336 fe:00:16237563 0 EOF`; nil if the line does not
    /// describe a lock.
    init?(_ bytes: Slice<UnsafeRawBufferPointer>) {
        var words = bytes.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }[...]
        guard let first = words.popFirst(), first.last == UInt8(ascii: ":"),
            let number = Int(String(wire: first.dropLast()))
        else { return nil }
        waits = words.first?.elementsEqual("->".utf8) ?? false
        if waits { words.removeFirst() }
        guard let lock = FileLock(words: words) else { return nil }
        self.number = number
        self.lock = lock
    }
}

/// The machine's file locks (`/proc/locks`), limited to those that a ``Question`` selects.
///
/// Read the table on a thread that may block. A read takes the kernel only microseconds if another read came just
/// before it, but otherwise about 10 ms, because all processors must synchronise first.
public struct LockTable: Hashable, Sendable {
    /// Selects which locks, and which processes that wait for locks, are read from the table.
    public struct Question: Hashable, Sendable {
        /// Report the processes that wait for locks on these files; nil for all files.
        public var files: Set<FileLock.File>? = []
        /// Report the locks that these processes hold.
        public var holders: Set<Int32> = []

        /// Selects the processes that wait for locks on `files`, and the locks that `holders` hold.
        public init(files: Set<FileLock.File>? = [], holders: Set<Int32> = []) {
            self.files = files
            self.holders = holders
        }

        /// Merges two questions. The result selects everything that either of them selects.
        public mutating func formUnion(_ other: Question) {
            if let mine = files, let others = other.files { files = mine.union(others) } else { files = nil }
            holders.formUnion(other.holders)
        }
    }

    /// A process that waits for a lock.
    public struct Waiter: Hashable, Sendable {
        /// The file that is locked.
        public let file: FileLock.File
        /// The waiting process's request.
        public var request: FileLock
    }

    /// The waiting processes, in the table's order.
    public var waiters: [Waiter] = []
    /// The locks of the processes in `Question.holders`.
    public private(set) var locks: [FileLock] = []
    /// Whether the table is incomplete, because the machine has so many locks that reading them takes too long.
    public private(set) var isPartial = false

    /// Creates an empty table.
    public init() {}

    /// Reads the machine's lock table. It may block: do not call it on the event loop. Throws ENOENT if the kernel
    /// has no file locks.
    ///
    /// - Parameter longest: the maximum processor time. For each page of the table, the kernel walks through all locks
    ///   before it, so a table of 200,000 locks, which any user can take, needs seconds. After this time the table is
    ///   partial.
    public static func read(
        _ question: Question,
        path: String = "/proc/locks",
        longest: Duration = .milliseconds(250)
    ) throws(Errno) -> LockTable {
        let end = Clock.threadProcessorTime() + longest
        let file = try Linux.File.open(path)
        var bytes: [UInt8] = []
        var (isLate, isPartial) = (false, false)
        while !isPartial, let piece = try Descriptor.read(file.raw, maximum: 1 << 16), !piece.isEmpty {
            isPartial = isLate
            if !isPartial { bytes += piece }
            isLate = Clock.threadProcessorTime() >= end
        }
        var table = bytes.withUnsafeBytes { LockTable(parsing: $0, question) }
        table.isPartial = isPartial
        if table.waiters.contains(where: \.isUnknown) { table.findWaiters() }
        return table
    }

    /// Parses the table's text; lines that cannot be parsed are skipped.
    init(parsing bytes: UnsafeRawBufferPointer, _ question: Question) {
        guard let start = bytes.baseAddress else { return }
        // Usually no process waits for a lock, so no line has the arrow `->`: then only locks of holders are needed.
        if question.holders.isEmpty, memchr(start, Int32(UInt8(ascii: ">")), bytes.count) == nil { return }
        var current: (number: Int, file: FileLock.File?)?
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            guard let line = LockLine(line) else { continue }
            if !line.waits {
                current = (line.number, line.lock.file)
                if let pid = line.lock.pid, question.holders.contains(pid) { locks.append(line.lock) }
            } else if let current, current.number == line.number, let file = current.file,
                question.files?.contains(file) ?? true
            {
                waiters.append(Waiter(file: file, request: line.lock))
            }
        }
    }
}

extension LockTable.Waiter {
    /// Whether the waiting process is unknown: for an OFD lock, the kernel does not name it.
    var isUnknown: Bool { request.kind == .ofd && request.pid == nil }
}
