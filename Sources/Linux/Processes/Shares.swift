// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// A thread's disk I/O priority (ioprio_set(2)).
public struct IOPriority: Hashable, Sendable, CustomStringConvertible {
    /// Class and level as the kernel encodes them.
    public let rawValue: Int32
    /// Wraps the kernel's encoding of class and level.
    public init(rawValue: Int32) { self.rawValue = rawValue }

    /// No priority is set, so the I/O priority follows the thread's nice value.
    public static let none = IOPriority(rawValue: 0)
    /// The kernel serves the thread only while no other process uses the disk.
    public static let idle = IOPriority(rawValue: 3 << 13)
    /// The best-effort class. Level 0 is served first, level 7 last; 4 is a thread's default.
    public static func bestEffort(_ level: Int32) -> IOPriority {
        IOPriority(rawValue: 2 << 13 | max(0, min(level, 7)))
    }

    /// The class and level as text.
    public var description: String {
        switch rawValue >> 13 {
        case 0: "none"
        case 1: "real-time \(rawValue & 7)"
        case 2: "best-effort \(rawValue & 7)"
        default: "idle"
        }
    }

    /// The I/O priority of a thread. Kernels before 5.18 report `none` as class none with level 4; the level is
    /// ignored.
    public static func of(_ thread: Int32) throws(Errno) -> IOPriority {
        let raw = Int32(try call { tlx_io_priority(thread) })
        return raw >> 13 == 0 ? .none : IOPriority(rawValue: raw)
    }

    /// Sets a thread's disk I/O priority. Throws EPERM for other users' threads.
    public func set(_ thread: Int32) throws(Errno) { try call { tlx_set_io_priority(thread, rawValue) } }
}

/// Settings that control a process's share of processor time and memory without a cgroup.
extension ProcFS {
    /// The OOM score adjustment, −1000 (never killed) to 1000 (killed first): proc_pid_oom_score_adj(5).
    public static func oomScoreAdjust(_ pid: Int32) throws(Errno) -> Int32 {
        guard let value = Int32(try line("/proc/\(pid)/oom_score_adj")) else { throw .invalidArgument }
        return value
    }

    /// Sets the OOM score adjustment. Throws EACCES if a user without privileges sets it lower than root last set it.
    public static func setOOMScoreAdjust(_ pid: Int32, _ value: Int32) throws(Errno) {
        try File.writeControl("/proc/\(pid)/oom_score_adj", "\(value)\n")
    }

    /// The timer slack of a thread in nanoseconds: how late its timers may fire. Throws EPERM for other threads without
    /// CAP_SYS_NICE.
    public static func timerSlack(_ thread: Int32) throws(Errno) -> UInt64 {
        guard let value = UInt64(try line("/proc/\(thread)/timerslack_ns")) else { throw .invalidArgument }
        return value
    }

    /// Sets the timer slack of a thread in nanoseconds; 0 means the thread's initial value. Throws EPERM for other
    /// threads without CAP_SYS_NICE.
    public static func setTimerSlack(_ thread: Int32, _ nanoseconds: UInt64) throws(Errno) {
        try File.writeControl("/proc/\(thread)/timerslack_ns", "\(nanoseconds)\n")
    }

    /// The nice value of the autogroup that a process's session forms (sched(7)); nil for a process without an
    /// autogroup.
    public static func autogroupNice(_ pid: Int32) throws(Errno) -> Int32? {
        // The file's content looks like this: /autogroup-4711 nice 5
        let words = try line("/proc/\(pid)/autogroup").utf8.split(separator: UInt8(ascii: " "))
        return words.last.flatMap { Int32(Substring($0)) }
    }

    /// Sets the nice value of the autogroup, which applies to the process's whole session. Throws EPERM for a negative
    /// value without CAP_SYS_NICE. Without privileges, throws EAGAIN if any process changed the nice value of an
    /// autogroup within the last 100 ms.
    public static func setAutogroupNice(_ pid: Int32, _ nice: Int32) throws(Errno) {
        try File.writeControl("/proc/\(pid)/autogroup", "\(nice)\n")
    }

    /// Why the nice value of a process's autogroup has no effect, as the rest of a sentence; nil if it has an effect.
    /// It has an effect if autogroups are enabled and the process is in no cgroup of the cpu controller.
    ///
    /// - Parameter root: a prefix for paths below `/proc`; empty except in tests.
    public static func autogroupObstacle(_ pid: Int32, root: String = "", mount: String? = Cgroup.mount) -> String? {
        guard let isEnabled = try? line(root + "/proc/sys/kernel/sched_autogroup_enabled") else {
            return "the kernel has no autogroups"
        }
        if isEnabled != "1" { return "kernel.sched_autogroup_enabled is \(isEnabled)" }
        let (newline, colon) = (UInt8(ascii: "\n"), UInt8(ascii: ":"))
        for line in ((try? File.read(root + "/proc/\(pid)/cgroup")) ?? []).split(separator: newline) {
            // A line looks like this: 0::/user.slice/… for cgroup v2, or 3:cpu,cpuacct:/… for v1.
            guard let first = line.firstIndex(of: colon), let second = line[(first + 1)...].firstIndex(of: colon) else {
                continue
            }
            let (controllers, place) = (line[(first + 1)..<second], line[(second + 1)...])
            guard !place.elementsEqual("/".utf8) else { continue }
            if controllers.split(separator: UInt8(ascii: ",")).contains(where: { $0.elementsEqual("cpu".utf8) }) {
                return "the cpu controller has put it in \(String(wire: place))"
            }
            guard controllers.isEmpty, let mount else { continue }
            var path = mount
            for part in place.split(separator: UInt8(ascii: "/")) {
                path += "/" + String(wire: part)
                if File.exists(path + "/cpu.weight") { return "the cpu controller has put it in \(path)" }
            }
        }
        return nil
    }

    private static func line(_ path: String) throws(Errno) -> String {
        String(wire: try File.read(path).prefix { $0 != UInt8(ascii: "\n") })
    }
}
