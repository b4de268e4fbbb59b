// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Folders, programs and limits that all measurements of a run share.
final class Bench {
    /// The repository's root.
    let root: String
    /// The folder of torpord and torpor.
    let binaries: String
    /// The same of an earlier build, which is measured beside this one; nil for none.
    let before: String?
    /// A folder on a tmpfs.
    let memory: String
    /// A folder on the disk.
    let disk: String
    let quick: Bool
    /// The numbers of apps for `scale`; empty for the default.
    let apps: [Int]
    /// The size of the swap file that `density` uses beside zram, in MiB; 0 for none.
    let swapFile: Int
    /// The chosen peers; empty for all.
    let chosen: [String]
    private var serial = 0

    init(
        binaries: String?,
        before: String? = nil,
        quick: Bool,
        apps: [Int] = [],
        swapFile: Int = 0,
        chosen: [String] = []
    ) throws {
        // Benchmarks/Sources/bench/Bench.swift
        root =
            URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().path
        self.binaries = binaries ?? root + "/.build/release"
        self.before = before
        self.quick = quick
        self.apps = apps
        self.swapFile = swapFile
        self.chosen = chosen
        memory = "/dev/shm/torpor-bench-\(getpid())"
        disk = root + "/.build/bench/run-\(getpid())"
        for folder in [memory, disk] {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        Self.raiseLimits()
        do {
            for program in ["worker", "floor", "hello", "connect"] {
                _ = try Child.output([
                    "cc", "-O2", "-o", self.program(program), root + "/Benchmarks/Programs/\(program).c",
                ])
            }
        } catch {
            removeAll()
            throw error
        }
    }

    /// A C program of Benchmarks/Programs, compiled for this run.
    func program(_ name: String) -> String { disk + "/" + name }
    var worker: String { program("worker") }

    /// A name unique among the run's sessions.
    func uniqueName(_ peer: String) -> String {
        serial += 1
        return "\(peer)-\(serial)"
    }

    func removeAll() {
        try? FileManager.default.removeItem(atPath: memory)
        try? FileManager.default.removeItem(atPath: disk)
    }

    /// Which limit of the machine is too low for so many apps of a peer; nil if none is.
    func missing(_ peer: any Peer, apps: Int) -> String? {
        let number = { (path: String) in
            Processes.read(path).flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
        }
        let processes = apps * (1 + peer.needs.processes) + 1_000
        let descriptors = apps * peer.needs.descriptors + 100
        if let most = number("/proc/sys/kernel/pid_max"), most < processes {
            return "\(grouped(apps)) apps need kernel.pid_max of at least \(processes), it is \(most): "
                + "sysctl kernel.pid_max=\(processes * 2)"
        }
        if let most = number("/proc/sys/kernel/threads-max"), most < processes {
            return "\(grouped(apps)) apps need kernel.threads-max of at least \(processes), it is \(most)"
        }
        if let most = Self.limit("Max processes"), most < processes {
            return "\(grouped(apps)) apps need ulimit -u of at least \(processes), it is \(most)"
        }
        if let most = Self.limit("Max open files"), most < descriptors {
            return "\(grouped(apps)) apps need ulimit -n of at least \(descriptors), it is \(most) and cannot be "
                + "raised here: that needs CAP_SYS_RESOURCE"
        }
        return nil
    }

    /// A soft limit of this process; nil if unlimited.
    private static func limit(_ name: String) -> Int? {
        let line = (Processes.read("/proc/self/limits") ?? "").split(separator: "\n").first { $0.hasPrefix(name) }
        return line.flatMap { Int($0.dropFirst(name.count).split(separator: " ").first ?? "") }
    }

    /// Raises the limit of descriptors as far as possible; root may exceed the hard limit.
    private static func raiseLimits() {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit(rlim_cur: 131_072, rlim_max: 131_072)
        var old = rlimit()
        getrlimit(resource, &old)
        if old.rlim_max >= limit.rlim_max { limit.rlim_max = old.rlim_max }
        if setrlimit(resource, &limit) != 0 {
            old.rlim_cur = old.rlim_max
            setrlimit(resource, &old)
        }
    }
}
