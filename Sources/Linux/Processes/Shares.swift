// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// A thread's place among those that wait for a disk, as ioprio_set(2) has it.
public struct IOPriority: Hashable, Sendable, CustomStringConvertible {
    /// Class and level as one number.
    public let rawValue: Int32
    /// Class and level as one number.
    public init(rawValue: Int32) { self.rawValue = rawValue }

    /// None of its own: it goes by the thread's nice value.
    public static let none = IOPriority(rawValue: 0)
    /// Only when nobody else wants the disk.
    public static let idle = IOPriority(rawValue: 3 << 13)
    /// In turn, 0 first and 7 last; 4 is what an ordinary thread has.
    public static func bestEffort(_ level: Int32) -> IOPriority {
        IOPriority(rawValue: 2 << 13 | max(0, min(level, 7)))
    }

    /// In words.
    public var description: String {
        switch rawValue >> 13 {
        case 0: "none"
        case 1: "real-time \(rawValue & 7)"
        case 2: "best-effort \(rawValue & 7)"
        default: "idle"
        }
    }

    /// That of a thread; `none` as the kernel before 5.18 says it (class none, level 4) is `none` too.
    public static func of(_ thread: Int32) throws(Errno) -> IOPriority {
        let raw = Int32(try call { tlx_io_priority(thread) })
        return raw >> 13 == 0 ? .none : IOPriority(rawValue: raw)
    }

    /// Sets that of a thread. EPERM for others' threads.
    public func set(_ thread: Int32) throws(Errno) { try call { tlx_set_io_priority(thread, rawValue) } }
}

/// How a process's share of the machine is weighed, where it has no cgroup for that.
extension ProcFS {
    /// What makes a process the first to be ended when memory runs out: −1000 to 1000 (proc_pid_oom_score_adj(5)).
    public static func oomScoreAdjust(_ pid: Int32) throws(Errno) -> Int32 {
        guard let value = Int32(try line("/proc/\(pid)/oom_score_adj")) else { throw .invalidArgument }
        return value
    }

    /// Sets it. EACCES for an ordinary user who would set it lower than root has set it last.
    public static func setOOMScoreAdjust(_ pid: Int32, _ value: Int32) throws(Errno) {
        try File.writeControl("/proc/\(pid)/oom_score_adj", "\(value)\n")
    }

    /// How much later than asked for a thread's timers may fire, ns. EPERM without CAP_SYS_NICE but for oneself.
    public static func timerSlack(_ thread: Int32) throws(Errno) -> UInt64 {
        guard let value = UInt64(try line("/proc/\(thread)/timerslack_ns")) else { throw .invalidArgument }
        return value
    }

    /// Sets it; 0 means the one that the thread was born with. EPERM as above.
    public static func setTimerSlack(_ thread: Int32, _ nanoseconds: UInt64) throws(Errno) {
        try File.writeControl("/proc/\(thread)/timerslack_ns", "\(nanoseconds)\n")
    }

    /// The nice value of a session's group of processes (sched(7), autogroups); nil for a process without one.
    public static func autogroupNice(_ pid: Int32) throws(Errno) -> Int32? {
        // /autogroup-4711 nice 5
        try line("/proc/\(pid)/autogroup").split(separator: " ").last.flatMap { Int32($0) }
    }

    /// Sets it for the process's whole session. EPERM for less than 0 without CAP_SYS_NICE; EAGAIN for an ordinary user
    /// within 100 ms of another such change, whoever has made that.
    public static func setAutogroupNice(_ pid: Int32, _ nice: Int32) throws(Errno) {
        try File.writeControl("/proc/\(pid)/autogroup", "\(nice)\n")
    }

    /// Why autogroups mean nothing to a process, in half a sentence; nil where they count: they have to be switched on,
    /// and the process in no group of the cpu controller.
    ///
    /// - Parameter root: what stands before `/proc`.
    public static func autogroupObstacle(_ pid: Int32, root: String = "", mount: String? = Cgroup.mount) -> String? {
        guard let isEnabled = try? line(root + "/proc/sys/kernel/sched_autogroup_enabled") else {
            return "the kernel has no autogroups"
        }
        if isEnabled != "1" { return "kernel.sched_autogroup_enabled is \(isEnabled)" }
        for line in (try? File.readString(root + "/proc/\(pid)/cgroup"))?.split(separator: "\n") ?? [] {
            // 0::/user.slice/… or 3:cpu,cpuacct:/…
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3, fields[2] != "/" else { continue }
            if fields[1].split(separator: ",").contains("cpu") {
                return "the cpu controller has put it in \(fields[2])"
            }
            guard fields[1].isEmpty, let mount else { continue }
            var path = mount
            for part in fields[2].split(separator: "/") {
                path += "/" + part
                if File.exists(path + "/cpu.weight") { return "the cpu controller has put it in \(path)" }
            }
        }
        return nil
    }

    private static func line(_ path: String) throws(Errno) -> String {
        String(try File.readString(path).split(separator: "\n").first ?? "")
    }
}
