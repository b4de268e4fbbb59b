// SPDX-License-Identifier: Apache-2.0

import Glibc
import WireText

/// The fields of `/proc/PID/stat` that torpord needs.
public struct ProcessStat: Hashable, Sendable {
    /// The process's pid.
    public var pid: Int32
    /// The parent's pid; 0 for processes that the kernel started.
    public var parent: Int32
    /// The id of the process group.
    public var group: Int32
    /// The id of the session.
    public var session: Int32
    /// The state as a letter: R, S, D, T, t, Z, X or I (proc_pid_stat(5)).
    public var state: Character
    /// The kernel's flags of the task (`PF_…` in its `sched.h`).
    public var flags: UInt32
    /// The start time in clock ticks since boot. Together with the pid, it identifies the process even if the pid is
    /// reused.
    public var startTime: UInt64
    /// Processor time in user mode, in clock ticks.
    public var userTicks: UInt64
    /// Processor time in kernel mode, in clock ticks.
    public var systemTicks: UInt64
    /// Processor time of reaped children in user mode, in clock ticks.
    public var childUserTicks: UInt64
    /// Processor time of reaped children in kernel mode, in clock ticks.
    public var childSystemTicks: UInt64
    /// Resident memory in pages.
    public var residentPages: UInt64
    /// The number of threads.
    public var threads: Int32
    /// The processor on which the process runs or waits to run, or ran last; -1 if the file does not say it.
    public var processor: Int32
    /// The name of the process, at most 15 bytes.
    public var comm: String

    /// Whether the process has ended (zombie or dead).
    public var hasEnded: Bool { state == "Z" || state == "X" }

    /// Whether the thread is ending or has ended (PF_EXITING): it no longer runs code of its program.
    public var isExiting: Bool { flags & 0x4 != 0 }

    /// Parses the content of a stat file. The process's name is in parentheses and may itself contain parentheses, so
    /// the name ends at the last `)`.
    public init?(parsing bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return nil }
        // By pointer, since torpord reads no file more often: functions of collections take several times as long.
        let count = bytes.count
        var open = 0
        var pid: Int32 = 0
        while open < count, start[open] != UInt8(ascii: "(") {
            let digit = start[open] &- UInt8(ascii: "0")
            if digit < 10 {
                pid = pid &* 10 &+ Int32(digit)
            } else if start[open] != UInt8(ascii: " ") {
                return nil
            }
            open += 1
        }
        // The fields after the name have no parentheses.
        var close = min(count - 1, open + 1 + Self.longestName)
        while close > open, start[close] != UInt8(ascii: ")") { close -= 1 }
        guard pid > 0, open < close, close + 4 < count else { return nil }
        var index = close + 4
        var isShort = false
        func next() -> UInt64 {
            if index >= count { isShort = true }
            var value: UInt64 = 0
            while index < count, start[index] != UInt8(ascii: " ") {
                let digit = start[index] &- UInt8(ascii: "0")
                if digit < 10 { value = value &* 10 &+ UInt64(digit) }
                index += 1
            }
            index += 1
            return value
        }
        func skip(_ fields: Int) {
            for _ in 0..<fields {
                while index < count, start[index] != UInt8(ascii: " ") { index += 1 }
                index += 1
            }
        }
        self.pid = pid
        state = Character(UnicodeScalar(start[close + 2]))
        // Fields 4 to 24 of proc_pid_stat(5).
        parent = Int32(truncatingIfNeeded: next())
        group = Int32(truncatingIfNeeded: next())
        session = Int32(truncatingIfNeeded: next())
        skip(2)
        flags = UInt32(truncatingIfNeeded: next())
        skip(4)
        userTicks = next()
        systemTicks = next()
        childUserTicks = next()
        childSystemTicks = next()
        skip(2)
        threads = Int32(truncatingIfNeeded: next())
        skip(1)
        startTime = next()
        skip(1)
        residentPages = next()
        let hasAll = !isShort
        // Field 39. What has been cut off before it is still a process.
        skip(14)
        processor = index < count ? Int32(truncatingIfNeeded: next()) : -1
        comm = String(wire: bytes[(open + 1)..<close])
        if !hasAll { return nil }
    }

    /// The kernel's buffer for the name of a process, in bytes (`proc_task_name`). Names of the kernel's own threads
    /// may fill it.
    private static let longestName = 64
}

/// Reads properties of processes from /proc. Throws ESRCH or ENOENT (`isGone`) if the process does not exist.
public enum ProcFS {
    /// The stat file of a process.
    public static func stat(_ pid: Int32) throws(Errno) -> ProcessStat {
        try ProcPath.with(pid, "/stat") { path throws(Errno) in try statFile(path) }
    }

    /// The stat file of one thread.
    public static func taskStat(_ pid: Int32, _ task: Int32) throws(Errno) -> ProcessStat {
        try ProcPath.with(pid, task: task, "/stat") { path throws(Errno) in try statFile(path) }
    }

    private static func statFile(_ path: UnsafePointer<CChar>) throws(Errno) -> ProcessStat {
        let stat = try File.withKernelFile(at: path, buffer: File.shortFile) { ProcessStat(parsing: $0) }
        guard let stat else { throw .noSuchProcess }
        return stat
    }

    /// The stat file of a process, to be read again and again: opening it takes the kernel longer than reading it.
    public final class StatFile {
        private let descriptor: Int32

        /// Opens the file. Throws ENOENT if there is no such process.
        public init(_ pid: Int32) throws(Errno) {
            descriptor = try ProcPath.with(pid, "/stat") { path throws(Errno) in
                try call { Glibc.open(path, O_RDONLY | O_CLOEXEC) }
            }
        }

        deinit { Glibc.close(descriptor) }

        /// Reads the file. Throws ESRCH once the process was reaped, even if its pid was reused.
        public func read() throws(Errno) -> ProcessStat {
            let stat = try withUnsafeTemporaryAllocation(byteCount: File.shortFile, alignment: 8) {
                buffer throws(Errno) -> ProcessStat? in
                let count = try call { Glibc.pread(descriptor, buffer.baseAddress, buffer.count, 0) }
                return ProcessStat(parsing: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
            guard let stat else { throw .noSuchProcess }
            return stat
        }
    }

    /// The ids of a process's threads.
    public static func tasks(_ pid: Int32) throws(Errno) -> [Int32] { try numbers(in: "/proc/\(pid)/task") }

    /// The state letter of one thread.
    public static func taskState(_ pid: Int32, _ task: Int32) throws(Errno) -> Character {
        try taskStat(pid, task).state
    }

    /// Whether the kernel lists a process's children (CONFIG_PROC_CHILDREN).
    public static let listsChildren = File.exists("/proc/thread-self/children")

    /// The children of all threads of a process. Throws ENOENT if the kernel does not list children
    /// (`listsChildren`).
    public static func children(_ pid: Int32) throws(Errno) -> [Int32] {
        var result: [Int32] = []
        for task in try tasks(pid) {
            do throws(Errno) {
                let text = try File.readString("/proc/\(pid)/task/\(task)/children", limit: 1 << 22)
                result += text.split(separator: " ").compactMap { Int32($0) }
            } catch {
                // The thread has ended, or this kernel has no such file.
                guard error.isGone, listsChildren else { throw error }
            }
        }
        return result
    }

    /// How many descriptors a process has open; nil if this process may not inspect the other process.
    public static func descriptorCount(_ pid: Int32) -> Int? { (try? numbers(in: "/proc/\(pid)/fd"))?.count }

    /// The pids of all processes.
    public static func allPids() throws(Errno) -> [Int32] { try numbers(in: "/proc") }

    private static func numbers(in path: String) throws(Errno) -> [Int32] {
        guard let directory = opendir(path) else { throw Errno(rawValue: errno) }
        defer { closedir(directory) }
        var result: [Int32] = []
        while let entry = readdir(directory) {
            let number = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: UInt8.self, capacity: 256) { name -> Int32? in
                    var value: Int32 = 0
                    var index = 0
                    while name[index] != 0 {
                        let digit = name[index] &- UInt8(ascii: "0")
                        if digit > 9 || index > 9 { return nil }
                        value = value &* 10 &+ Int32(digit)
                        index += 1
                    }
                    return index > 0 ? value : nil
                }
            }
            if let number { result.append(number) }
        }
        return result
    }

    /// The beginning of a process's command line, one string per argument.
    ///
    /// - Parameter limit: the maximum number of bytes. A command line may have megabytes.
    public static func cmdline(_ pid: Int32, limit: Int = 1 << 16) throws(Errno) -> [String] {
        let file = try File.open("/proc/\(pid)/cmdline")
        var parts = try (Descriptor.read(file.raw, maximum: limit) ?? []).split(
            separator: 0,
            omittingEmptySubsequences: false
        )
        if parts.last?.isEmpty == true { parts.removeLast() }
        return parts.map { String(wire: $0) }
    }

    /// The path of a process's executable, with ` (deleted)` appended if the file was removed. Throws EACCES for
    /// other users' processes.
    public static func exe(_ pid: Int32) throws(Errno) -> String { try File.readLink("/proc/\(pid)/exe") }

    /// A variable of a process's initial environment. Throws EACCES for other users' processes.
    public static func environment(_ pid: Int32, _ name: String) throws(Errno) -> String? {
        let prefix = Array((name + "=").utf8)
        for entry in try File.read("/proc/\(pid)/environ", limit: 1 << 22).split(separator: 0)
        where entry.starts(with: prefix) {
            return String(wire: entry.dropFirst(prefix.count))
        }
        return nil
    }

    /// The inode number that identifies a process's mount namespace. Throws EACCES for other users' processes.
    public static func mountNamespace(_ pid: Int32) throws(Errno) -> UInt64 {
        try File.status("/proc/\(pid)/ns/mnt").inode
    }

    /// The inode number that identifies a process's IPC namespace. Throws EACCES for other users' processes.
    public static func ipcNamespace(_ pid: Int32) throws(Errno) -> UInt64 {
        try File.status("/proc/\(pid)/ns/ipc").inode
    }

    /// A field of `/proc/PID/status`, without white space around it.
    public static func statusField(_ pid: Int32, _ name: String, task: Int32? = nil) throws(Errno) -> String? {
        let path = task.map { "/proc/\(pid)/task/\($0)/status" } ?? "/proc/\(pid)/status"
        return field(name, of: try File.read(path))
    }

    /// A field of a text that has one field in each line, as `NAME:` and a value. Splitting the text into strings would
    /// take a hundred times as long.
    package static func field(_ name: String, of text: [UInt8]) -> String? {
        let (newline, space, tab) = (UInt8(ascii: "\n"), UInt8(ascii: " "), UInt8(ascii: "\t"))
        let key = Array(name.utf8) + [UInt8(ascii: ":")]
        var start = 0
        while start < text.count {
            let end = text[start...].firstIndex(of: newline) ?? text.count
            var line = text[start..<end]
            start = end + 1
            guard line.starts(with: key) else { continue }
            line.removeFirst(key.count)
            while let first = line.first, first == space || first == tab { line.removeFirst() }
            while let last = line.last, last == space || last == tab { line.removeLast() }
            return String(wire: line)
        }
        return nil
    }

    /// The real uid of a process.
    public static func realUser(_ pid: Int32) throws(Errno) -> UInt32 {
        let field = try statusField(pid, "Uid")?.split(separator: "\t").first
        guard let uid = field.flatMap({ UInt32($0) }) else { throw .noSuchProcess }
        return uid
    }

    /// The pid of the process's tracer (a debugger); 0 if there is none.
    public static func tracerPid(_ pid: Int32) throws(Errno) -> Int32 {
        try statusField(pid, "TracerPid").flatMap { Int32($0) } ?? 0
    }

    /// The signals pending for a thread or its process: bit n−1 stands for signal n.
    public static func pendingSignals(_ pid: Int32, task: Int32? = nil) throws(Errno) -> UInt64 {
        let path = task.map { "/proc/\(pid)/task/\($0)/status" } ?? "/proc/\(pid)/status"
        let text = try File.read(path)
        return ["SigPnd", "ShdPnd"].reduce(0) { $0 | (field($1, of: text).flatMap { UInt64($0, radix: 16) } ?? 0) }
    }

    /// Whether a signal has its default action in a process: the process has no handler for the signal, and its main
    /// thread neither blocks nor ignores the signal. Throws ESRCH or ENOENT if the process has ended.
    public static func leavesToDefault(_ number: Int32, _ pid: Int32) throws(Errno) -> Bool {
        let text = try File.read("/proc/\(pid)/status")
        for name in ["SigCgt", "SigBlk", "SigIgn"] {
            let mask = field(name, of: text).flatMap { UInt64($0, radix: 16) } ?? 0
            if mask >> UInt64(number - 1) & 1 != 0 { return false }
        }
        return true
    }

    /// Whether a process is the first one (pid 1) of a PID namespace nested in this process's namespace.
    public static func isFirstOfNamespace(_ pid: Int32) throws(Errno) -> Bool {
        let ids = try statusField(pid, "NSpid")?.split { $0 == "\t" || $0 == " " } ?? []
        return ids.count > 1 && ids.last == "1"
    }

    /// The cgroup v2 path of a process, relative to the mount point (`/` for the root); nil if the process is in no
    /// v2 cgroup.
    public static func cgroup(_ pid: Int32) throws(Errno) -> String? {
        // By bytes: with a thousand apps, a torpord that takes over reads a thousand of these.
        try ProcPath.with(pid, "/cgroup") { path throws(Errno) in
            try File.withKernelFile(at: path) { bytes -> String? in
                var start = 0
                while start < bytes.count {
                    let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
                    let line = bytes[start..<end]
                    start = end + 1
                    if line.starts(with: "0::".utf8) { return String(wire: line.dropFirst(3)) }
                }
                return nil
            }
        }
    }
}

/// The scheduling statistics of a process's main thread (`/proc/PID/schedstat`).
public struct Scheduling: Hashable, Sendable {
    /// How long the thread has run.
    public let ran: Duration
    /// How long the thread was runnable, but waited for a processor.
    public let waited: Duration

    /// Creates a value from its parts.
    public init(ran: Duration, waited: Duration) {
        self.ran = ran
        self.waited = waited
    }

    /// The current values; nil if the process has ended, or the kernel does not keep these statistics
    /// (CONFIG_SCHED_INFO).
    public init?(_ pid: Int32) {
        guard let text = try? File.readString("/proc/\(pid)/schedstat") else { return nil }
        let numbers = text.split(whereSeparator: { $0 == " " || $0 == "\n" }).compactMap { Int64($0) }
        guard numbers.count >= 2 else { return nil }
        ran = .nanoseconds(numbers[0])
        waited = .nanoseconds(numbers[1])
    }
}
