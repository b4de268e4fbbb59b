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
        guard let value = try number(in: "/oom_score_adj", of: pid).flatMap({ Int32(exactly: $0) }) else {
            throw .invalidArgument
        }
        return value
    }

    /// Sets the OOM score adjustment. Throws EACCES if a user without privileges sets it lower than root last set it.
    public static func setOOMScoreAdjust(_ pid: Int32, _ value: Int32) throws(Errno) {
        try ProcPath.with(pid, "/oom_score_adj") { path throws(Errno) in
            try File.writeControl(at: path, "\(value)\n")
        }
    }

    /// The timer slack of a thread in nanoseconds: how late its timers may fire. Throws EPERM for other threads without
    /// CAP_SYS_NICE.
    public static func timerSlack(_ thread: Int32) throws(Errno) -> UInt64 {
        guard let value = try number(in: "/timerslack_ns", of: thread).flatMap({ UInt64(exactly: $0) }) else {
            throw .invalidArgument
        }
        return value
    }

    /// Sets the timer slack of a thread in nanoseconds; 0 means the thread's initial value. Throws EPERM for other
    /// threads without CAP_SYS_NICE.
    public static func setTimerSlack(_ thread: Int32, _ nanoseconds: UInt64) throws(Errno) {
        try ProcPath.with(thread, "/timerslack_ns") { path throws(Errno) in
            try File.writeControl(at: path, "\(nanoseconds)\n")
        }
    }

    /// The nice value of the autogroup that a process's session forms (sched(7)); nil for a process without an
    /// autogroup.
    public static func autogroupNice(_ pid: Int32) throws(Errno) -> Int32? {
        // The file's content looks like this: /autogroup-4711 nice 5
        try number(in: "/autogroup", of: pid).flatMap { Int32(exactly: $0) }
    }

    /// Sets the nice value of the autogroup, which applies to the process's whole session. Throws EPERM for a negative
    /// value without CAP_SYS_NICE. Without privileges, throws EAGAIN if any process changed the nice value of an
    /// autogroup within the last 100 ms.
    public static func setAutogroupNice(_ pid: Int32, _ nice: Int32) throws(Errno) {
        try ProcPath.with(pid, "/autogroup") { path throws(Errno) in try File.writeControl(at: path, "\(nice)\n") }
    }

    /// The number that is the last word of the first line of a process's file; nil if the word is no number.
    private static func number(in file: StaticString, of pid: Int32) throws(Errno) -> Int128? {
        try ProcPath.with(pid, file) { path throws(Errno) in
            try File.withKernelFile(at: path, buffer: File.shortFile) { number(atEndOf: $0) }
        }
    }

    /// The number that is the last word of the first line; nil if the word is no number.
    static func number(atEndOf text: UnsafeRawBufferPointer) -> Int128? {
        var value: Int128?
        var isNegative = false
        var isNumber = true
        for byte in text {
            if byte == UInt8(ascii: "\n") { break }
            let digit = byte &- UInt8(ascii: "0")
            if byte == UInt8(ascii: " ") {
                (value, isNegative, isNumber) = (nil, false, true)
            } else if digit < 10 {
                // A number of the kernel has at most 20 digits.
                value = (value ?? 0) &* 10 &+ Int128(digit)
            } else if byte == UInt8(ascii: "-"), value == nil, !isNegative {
                isNegative = true
            } else {
                isNumber = false
            }
        }
        return isNumber ? value.map { isNegative ? 0 - $0 : $0 } : nil
    }

    /// Why the nice value of a process's autogroup has no effect, as the rest of a sentence; nil if it has an effect.
    /// It has an effect if autogroups are enabled and the process is in no cgroup of the cpu controller.
    ///
    /// - Parameter root: a prefix for paths below `/proc`; empty except in tests.
    public static func autogroupObstacle(_ pid: Int32, root: String = "", mount: String? = Cgroup.mount) -> String? {
        let newline = UInt8(ascii: "\n")
        let obstacle = try? File.withKernelFile(root + "/proc/sys/kernel/sched_autogroup_enabled") { bytes -> String in
            let value = bytes.prefix { $0 != newline }
            if value.elementsEqual(CollectionOfOne(UInt8(ascii: "1"))) { return "" }
            return "kernel.sched_autogroup_enabled is \(String(wire: value))"
        }
        guard let obstacle else { return "the kernel has no autogroups" }
        if !obstacle.isEmpty { return obstacle }
        // By bytes: torpord reads this for each change of an app's profile.
        let place = try? File.withKernelFile(root + "/proc/\(pid)/cgroup") { bytes -> String? in
            var start = 0
            while start < bytes.count {
                let end = bytes[start...].firstIndex(of: newline) ?? bytes.count
                let line = bytes[start..<end]
                start = end + 1
                if let obstacle = cpuController(of: line, mount) { return obstacle }
            }
            return nil
        }
        return place ?? nil
    }

    /// Why a process is in a cgroup of the cpu controller, according to a line of its cgroup file; nil if it is not.
    private static func cpuController(of line: Slice<UnsafeRawBufferPointer>, _ mount: String?) -> String? {
        // A line looks like this: 0::/user.slice/… for cgroup v2, or 3:cpu,cpuacct:/… for v1.
        let (colon, slash) = (UInt8(ascii: ":"), UInt8(ascii: "/"))
        guard let first = line.firstIndex(of: colon), let second = line[(first + 1)...].firstIndex(of: colon) else {
            return nil
        }
        let (controllers, place) = (line[(first + 1)..<second], line[(second + 1)...])
        guard !place.elementsEqual(CollectionOfOne(slash)) else { return nil }
        guard controllers.isEmpty else {
            let isCPU = controllers.split(separator: UInt8(ascii: ",")).contains { $0.elementsEqual("cpu".utf8) }
            return isCPU ? "the cpu controller has put it in \(String(wire: place))" : nil
        }
        guard let mount else { return nil }
        var path = mount
        var rest = place
        while let begin = rest.firstIndex(where: { $0 != slash }) {
            let end = rest[begin...].firstIndex(of: slash) ?? rest.endIndex
            path += "/" + String(wire: rest[begin..<end])
            rest = rest[end...]
            if File.exists(path + "/cpu.weight") { return "the cpu controller has put it in \(path)" }
        }
        return nil
    }
}
