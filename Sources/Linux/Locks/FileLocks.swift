// SPDX-License-Identifier: Apache-2.0

import Glibc
import WireText

/// A lock on a file, or a request for one, as the kernel describes it in `/proc/locks` and `/proc/PID/fdinfo`
/// (proc_locks(5), proc_pid_fdinfo(5)).
public struct FileLock: Hashable, Sendable {
    /// By which call it was taken.
    public enum Kind: String, Hashable, Sendable {
        /// flock(2): it belongs to the open file, and to every process that has inherited that.
        case flock
        /// fcntl(2), F_SETLK: it belongs to the process.
        case posix
        /// fcntl(2), F_OFD_SETLK: it belongs to the open file.
        case ofd
        /// fcntl(2), F_SETLEASE: whoever opens the file waits until it is given up.
        case lease
    }

    /// A file, by what the kernel's own tables call it: device numbers differ from those of stat(2) on some filesystems.
    public struct File: Hashable, Sendable {
        /// Major number in the upper half, minor in the lower.
        public let device: UInt64
        /// The inode.
        public let inode: UInt64

        /// A file by its numbers.
        public init(device: UInt64, inode: UInt64) {
            self.device = device
            self.inode = inode
        }
    }

    /// By which call it was taken.
    public let kind: Kind
    /// Whether it shuts out all others, and not only those that want to write.
    public let isExclusive: Bool
    /// nil for whoever waits for a lease: there the kernel does not say.
    public let file: File?
    /// The first byte, and the last; `UInt64.max` for the end of the file.
    public let range: ClosedRange<UInt64>
    /// Who took it, or wants it. Of an OFD lock nobody says; a flock names the process that took it although that may
    /// have ended; nil also where it is not of this pid namespace.
    public let pid: Int32?

    /// Makes one from its parts.
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

    /// The same request, by a process that was found out.
    public func by(_ pid: Int32) -> FileLock {
        FileLock(kind: kind, isExclusive: isExclusive, file: file, range: range, pid: pid)
    }

    /// Whether a request for another lock on the same file has to wait for this one.
    public func blocks(_ request: FileLock) -> Bool {
        switch (kind, request.kind) {
        // Opening the file is what waits; which lease is broken in what way does not matter.
        case (.lease, .lease): true
        case (.flock, .flock): isExclusive || request.isExclusive
        case (.posix, .posix), (.posix, .ofd), (.ofd, .posix), (.ofd, .ofd):
            (isExclusive || request.isExclusive) && range.overlaps(request.range)
        default: false
        }
    }

    /// Reads what stands behind the number of a line: `POSIX  ADVISORY  WRITE 8339 fe:00:16237567 0 EOF`. nil for kinds
    /// of locks that no program takes.
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

/// One line of `/proc/locks`, or of a `lock:` of fdinfo.
struct LockLine {
    /// Locks and those that wait for them have the same.
    let number: Int
    /// Whether it waits for the lock before it.
    let waits: Bool
    let lock: FileLock

    /// `4: -> FLOCK  ADVISORY  WRITE 8336 fe:00:16237563 0 EOF`; nil for anything else.
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

/// All locks of the machine, as far as somebody asked for them (`/proc/locks`).
///
/// Reading the file takes the kernel microseconds when it was read just before, and else, since every processor must
/// have taken notice first, some 10 ms: that is for a thread which may wait.
public struct LockTable: Hashable, Sendable {
    /// What is to be taken from it.
    public struct Question: Hashable, Sendable {
        /// Whose waiters are wanted; nil for all.
        public var files: Set<FileLock.File>? = []
        /// Whose locks are wanted.
        public var holders: Set<Int32> = []

        /// Asks for what the two say.
        public init(files: Set<FileLock.File>? = [], holders: Set<Int32> = []) {
            self.files = files
            self.holders = holders
        }

        /// Asks for what either asks.
        public mutating func formUnion(_ other: Question) {
            if let mine = files, let others = other.files { files = mine.union(others) } else { files = nil }
            holders.formUnion(other.holders)
        }
    }

    /// Somebody who waits for a lock.
    public struct Waiter: Hashable, Sendable {
        /// The file whose lock is in the way.
        public let file: FileLock.File
        /// What is wanted; the process is in it.
        public var request: FileLock
    }

    /// Those that wait, in the table's order.
    public var waiters: [Waiter] = []
    /// The locks of the processes that were asked for.
    public private(set) var locks: [FileLock] = []

    /// A table in which nothing is locked.
    public init() {}

    /// Reads it now. ENOENT for a kernel without file locks. It may wait: not for the loop's thread.
    public static func read(_ question: Question, path: String = "/proc/locks") throws(Errno) -> LockTable {
        let bytes = try Linux.File.read(path, limit: 1 << 28)
        var table = bytes.withUnsafeBytes { LockTable(parsing: $0, question) }
        if table.waiters.contains(where: \.isUnknown) { table.findWaiters() }
        return table
    }

    /// Reads a table from its text; lines that are not understood are left out.
    init(parsing bytes: UnsafeRawBufferPointer, _ question: Question) {
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
    /// The kernel does not say who it is.
    var isUnknown: Bool { request.kind == .ofd && request.pid == nil }
}
