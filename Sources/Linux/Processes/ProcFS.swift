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
    /// The name of the process, at most 15 bytes.
    public var comm: String

    /// Whether the process has ended (zombie or dead).
    public var hasEnded: Bool { state == "Z" || state == "X" }

    /// Whether the thread is ending or has ended (PF_EXITING): it no longer runs code of its program.
    public var isExiting: Bool { flags & 0x4 != 0 }

    /// Parses the content of a stat file. The process's name is in parentheses and may itself contain parentheses, so
    /// the name ends at the last `)`.
    public init?(parsing bytes: UnsafeRawBufferPointer) {
        // A loop of its own, since `lastIndex(of:)` takes a third of the time of the whole parsing.
        var close = bytes.count - 1
        while close > 0, bytes[close] != UInt8(ascii: ")") { close -= 1 }
        guard let open = bytes.firstIndex(of: UInt8(ascii: "(")), open < close, close + 4 < bytes.count else {
            return nil
        }
        state = Character(UnicodeScalar(bytes[close + 2]))
        var numbers: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) =
            (0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        var flags: UInt64 = 0
        var field = 4
        var index = close + 4
        // The field numbers are those of proc_pid_stat(5).
        while index < bytes.count, field <= 24 {
            var value: UInt64 = 0
            while index < bytes.count, bytes[index] != UInt8(ascii: " ") {
                let digit = bytes[index] &- UInt8(ascii: "0")
                if digit < 10 { value = value &* 10 &+ UInt64(digit) }
                index += 1
            }
            index += 1
            switch field {
            case 4: numbers.0 = value
            case 5: numbers.1 = value
            case 6: numbers.2 = value
            case 9: flags = value
            case 14: numbers.3 = value
            case 15: numbers.4 = value
            case 16: numbers.5 = value
            case 17: numbers.6 = value
            case 20: numbers.7 = value
            case 22: numbers.8 = value
            case 24: numbers.9 = value
            default: break
            }
            field += 1
        }
        guard field > 24, let pid = Int32(String(wire: bytes[..<open].dropLast())) else {
            return nil
        }
        self.pid = pid
        self.flags = UInt32(truncatingIfNeeded: flags)
        parent = Int32(truncatingIfNeeded: numbers.0)
        group = Int32(truncatingIfNeeded: numbers.1)
        session = Int32(truncatingIfNeeded: numbers.2)
        userTicks = numbers.3
        systemTicks = numbers.4
        childUserTicks = numbers.5
        childSystemTicks = numbers.6
        threads = Int32(truncatingIfNeeded: numbers.7)
        startTime = numbers.8
        residentPages = numbers.9
        comm = String(wire: bytes[(open + 1)..<close])
    }
}

/// Reads properties of processes from /proc. Throws ESRCH or ENOENT (`isGone`) if the process does not exist.
public enum ProcFS {
    /// The stat file of a process.
    public static func stat(_ pid: Int32) throws(Errno) -> ProcessStat { try statFile("/proc/\(pid)/stat") }

    /// The stat file of one thread.
    public static func taskStat(_ pid: Int32, _ task: Int32) throws(Errno) -> ProcessStat {
        try statFile("/proc/\(pid)/task/\(task)/stat")
    }

    private static func statFile(_ path: String) throws(Errno) -> ProcessStat {
        let fd = try call { Glibc.open(path, O_RDONLY | O_CLOEXEC) }
        defer { Glibc.close(fd) }
        var failure: Errno?
        let result = withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 8) { buffer -> ProcessStat? in
            do throws(Errno) {
                let count = try call { Glibc.read(fd, buffer.baseAddress, buffer.count) }
                return ProcessStat(parsing: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            } catch {
                failure = error
                return nil
            }
        }
        if let failure { throw failure }
        guard let result else { throw .noSuchProcess }
        return result
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
                if !listsChildren { throw error }
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
        var result: UInt64 = 0
        for name in ["SigPnd", "ShdPnd"] {
            result |= try statusField(pid, name, task: task).flatMap { UInt64($0, radix: 16) } ?? 0
        }
        return result
    }

    /// Whether a signal has its default action in a process: the process has no handler for the signal, and its main
    /// thread neither blocks nor ignores the signal. Throws ESRCH or ENOENT if the process has ended.
    public static func leavesToDefault(_ number: Int32, _ pid: Int32) throws(Errno) -> Bool {
        for name in ["SigCgt", "SigBlk", "SigIgn"] {
            let mask = try statusField(pid, name).flatMap { UInt64($0, radix: 16) } ?? 0
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
        // By bytes, since text takes longer than the kernel.
        try File.withKernelFile("/proc/\(pid)/cgroup") { bytes in
            bytes.split(separator: UInt8(ascii: "\n")).first { $0.starts(with: "0::".utf8) }.map {
                String(wire: $0.dropFirst(3))
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
