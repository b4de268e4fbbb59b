// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Reads /proc.
enum Processes {
    /// One line of /proc/PID/stat.
    struct Entry {
        let pid: pid_t
        let name: String
        let state: Character
        let parent: pid_t
        /// CPU time in seconds.
        let cpu: Double
    }

    static func all() -> [Entry] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { pid_t($0) }.compactMap(entry)
    }

    static func entry(_ pid: pid_t) -> Entry? {
        guard let text = read("/proc/\(pid)/stat"), let open = text.firstIndex(of: "("),
            let close = text.lastIndex(of: ")")
        else { return nil }
        let fields = text[text.index(after: close)...].split(separator: " ")
        guard fields.count > 12, let parent = pid_t(fields[1]), let state = fields[0].first,
            let user = Double(fields[11]), let system = Double(fields[12])
        else { return nil }
        return Entry(
            pid: pid,
            name: String(text[text.index(after: open)..<close]),
            state: state,
            parent: parent,
            cpu: (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
        )
    }

    /// The letter of its state; nil if there is no such process.
    static func state(_ pid: pid_t) -> Character? { entry(pid)?.state }

    /// Whether the process exists and is not a zombie.
    static func isAlive(_ pid: pid_t) -> Bool {
        guard pid > 0, let state = state(pid) else { return false }
        return state != "Z" && state != "X"
    }

    /// The process and its children with one of these names.
    static func family(_ pid: pid_t, children names: Set<String>) -> [pid_t] {
        [pid] + all().filter { $0.parent == pid && names.contains($0.name) }.map(\.pid)
    }

    /// The proportional set size of all processes in MiB.
    static func memory(_ pids: [pid_t]) throws -> Double {
        var kibibytes = 0
        for pid in pids {
            guard let text = read("/proc/\(pid)/smaps_rollup") else {
                throw Trouble("/proc/\(pid)/smaps_rollup cannot be read: the process has gone, or run as root")
            }
            for line in text.split(separator: "\n") where line.hasPrefix("Pss:") {
                kibibytes += line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            }
        }
        return Double(kibibytes) / 1024
    }

    /// The number of their open descriptors.
    static func descriptors(_ pids: [pid_t]) -> Int {
        pids.reduce(0) { $0 + ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/\($1)/fd").count) ?? 0) }
    }

    /// Context switches of all their threads, voluntary or not: each wake-up ends in one.
    static func switches(_ pids: [pid_t]) -> Int {
        var sum = 0
        for pid in pids {
            let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task")) ?? []
            for task in tasks {
                for line in (read("/proc/\(pid)/task/\(task)/status") ?? "").split(separator: "\n")
                where line.contains("voluntary_ctxt_switches:") {
                    sum += line.split(separator: "\t").last.flatMap { Int($0) } ?? 0
                }
            }
        }
        return sum
    }

    /// CPU time of all processes in seconds.
    static func cpu(_ pids: [pid_t]) -> Double { pids.compactMap { entry($0)?.cpu }.reduce(0, +) }

    /// CPU time to the nanosecond, from the scheduler (/proc/PID/task/TID/schedstat).
    static func exactCPU(_ pids: [pid_t]) -> Double {
        var nanoseconds: UInt64 = 0
        for pid in pids {
            for task in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task")) ?? [] {
                let text = read("/proc/\(pid)/task/\(task)/schedstat") ?? ""
                nanoseconds += text.split(separator: " ").first.flatMap { UInt64($0) } ?? 0
            }
        }
        return nanoseconds > 0 ? Double(nanoseconds) / 1e9 : cpu(pids)
    }

    static func read(_ path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 8192)
        var length = 0
        while true {
            let count = bytes.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress! + length, $0.count - length) }
            guard count >= 0 else { return nil }
            if count == 0 { break }
            length += count
            if length == bytes.count { bytes += [UInt8](repeating: 0, count: bytes.count) }
        }
        return String(decoding: bytes[..<length], as: UTF8.self)
    }
}
