import Foundation

/// What all measurements of a run share: folders, programs and limits.
final class Bench {
    /// The repository.
    let root: String
    /// Where torpord and torpor are.
    let binaries: String
    /// On a tmpfs.
    let memory: String
    /// On the disk.
    let disk: String
    let quick: Bool
    private var serial = 0

    init(binaries: String?, quick: Bool) throws {
        // Benchmarks/Sources/bench/Bench.swift
        root =
            URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().path
        self.binaries = binaries ?? root + "/.build/release"
        self.quick = quick
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

    /// A name that no other session of this run has.
    func uniqueName(_ peer: String) -> String {
        serial += 1
        return "\(peer)-\(serial)"
    }

    func removeAll() {
        try? FileManager.default.removeItem(atPath: memory)
        try? FileManager.default.removeItem(atPath: disk)
    }

    /// What is missing on this machine to run so many apps; nil when nothing is.
    func missing(for apps: Int) -> String? {
        let number = { (path: String) in
            Processes.read(path).flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
        }
        // The most is one process of the supervisor's beside each app (s6, runit), while nothing else is running.
        let processes = apps * 2 + 1_000
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
        if let most = Self.limit("Max open files"), most < apps * 6 + 100 {
            return "\(grouped(apps)) apps need ulimit -n of at least \(apps * 6 + 100), it is \(most): "
                + "run as root, or raise the hard limit"
        }
        return nil
    }

    /// A soft limit of this process; nil when there is none.
    private static func limit(_ name: String) -> Int? {
        let line = (Processes.read("/proc/self/limits") ?? "").split(separator: "\n").first { $0.hasPrefix(name) }
        return line.flatMap { Int($0.dropFirst(name.count).split(separator: " ").first ?? "") }
    }

    /// As many descriptors as there may be; root may go beyond the hard limit.
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
