// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// Real launches by torpord and its keeper: torpord runs under callgrind, and the keeper is single-stepped
/// (`steps.c`), since valgrind does not support pidfd_open(2), which the keeper needs.
enum WholeLaunch {
    static let names: Set<String> = [
        "launch-torpord", "launch-keeper", "ready-torpord", "suspend-torpord", "connection-torpord", "restart-torpord",
    ]

    /// - Parameter names: measure only these; empty for all.
    static func measure(root: String, _ names: [String], into report: MicroReport) {
        func add(_ name: String, _ what: String, _ measure: () throws -> Double) {
            if names.isEmpty || names.contains(name) { report.add(name, what, measure) }
        }
        add("launch-torpord", "torpord launches an app, from the client's request to the word that it runs") {
            let supervisor = try CountedSupervisor(root: root, apps: 170, belowCallgrind: true)
            defer { supervisor.end() }
            _ = try supervisor.torpordInstructions { try supervisor.start(20) }
            return try supervisor.perOne { try supervisor.start($0) }
        }
        add("ready-torpord", "the same launch of an app that is waited for until it says READY=1") {
            let supervisor = try CountedSupervisor(root: root, apps: 170, belowCallgrind: true, .ready)
            defer { supervisor.end() }
            _ = try supervisor.torpordInstructions { try supervisor.start(20) }
            return try supervisor.perOne { try supervisor.start($0) }
        }
        add("suspend-torpord", "torpord suspends a running app, from the client's request to the word that it sleeps") {
            let supervisor = try CountedSupervisor(root: root, apps: 170, belowCallgrind: true)
            defer { supervisor.end() }
            try supervisor.start(170)
            _ = try supervisor.torpordInstructions { try supervisor.suspend(20) }
            return try supervisor.perOne { try supervisor.suspend($0) }
        }
        add("connection-torpord", "a connection to the socket of a suspended app resumes it") {
            let supervisor = try CountedSupervisor(root: root, apps: 170, belowCallgrind: true, .socket)
            defer { supervisor.end() }
            try supervisor.start(170)
            // In portions: the keeper treats a loop that is busy for too long as hung.
            for _ in 0..<17 { try supervisor.suspend(10) }
            _ = try supervisor.torpordInstructions { try supervisor.connect(20) }
            return try supervisor.perOne { try supervisor.connect($0) }
        }
        add("restart-torpord", "a running app dies, and is launched again") {
            let supervisor = try CountedSupervisor(root: root, apps: 170, belowCallgrind: true)
            defer { supervisor.end() }
            try supervisor.start(170)
            _ = try supervisor.torpordInstructions { try supervisor.kill(20) }
            return try supervisor.perOne { try supervisor.kill($0) }
        }
        add("launch-keeper", "torpor-keeper's part of the same launch, from the message to the word") {
            let supervisor = try CountedSupervisor(root: root, apps: 20, belowCallgrind: false)
            defer { supervisor.end() }
            // Few, since each takes 0.2 s this way.
            let few = try supervisor.keeperInstructions(launching: 5)
            let many = try supervisor.keeperInstructions(launching: 15)
            return Double(many - few) / 10
        }
    }
}

/// A supervisor with apps to launch; the instructions of one of its processes are counted.
private final class CountedSupervisor {
    private let process = Process()
    private let home: String
    private let managerSocket: String
    private let root: String
    private var next = 1
    private var nextSuspended = 1
    private var nextConnected = 1
    private var connections: [Int32] = []

    /// The kind of apps.
    enum Sort {
        case plain
        /// They send READY=1.
        case ready
        /// Each has a socket that wakes it on a connection.
        case socket
    }
    private var dumps = 0
    private var keeper: pid_t { process.processIdentifier }
    private var torpord: pid_t = 0

    init(root: String, apps: Int, belowCallgrind: Bool, _ sort: Sort = .plain) throws {
        self.root = URL(fileURLWithPath: root).path
        home = Scratch.path("torpor")
        try? FileManager.default.removeItem(atPath: home)
        try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: true)
        managerSocket = home + "/run/io.torpor"
        let programs = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Programs").path
        for name in ["steps", "worker"] {
            _ = try Tool.run(["cc", "-O2", "-o", "\(home)/\(name)", "\(programs)/\(name).c"])
        }
        _ = try Tool.run(["cc", "-O2", "-shared", "-fPIC", "-o", "\(home)/signals.so", "\(programs)/signals.c"])
        let configuration = """
            [supervisor]
            runtime_directory = "\(home)/run"
            state_directory = "\(home)/state"
            log_directory = "\(home)/log"

            [apps.worker]
            exec = ["\(home)/worker", "0", "\(sort == .ready ? "ready" : "wait")"]
            ready = "\(sort == .ready ? "notify" : "exec")"
            restart = "always"
            restart_backoff = { initial = "0s", limit = 100 }
            launch = "on-demand"
            # Single steps take their time.
            launch_deadline = "2min"
            suspend_deadline = "2min"
            instances = \(apps)
            """ + (sort == .socket ? "\n[[apps.worker.sockets]]\nname = \"s\"\nstream = \"\(home)/s%i\"\n" : "")
        try configuration.write(toFile: home + "/torpor.toml", atomically: true, encoding: .utf8)
        process.executableURL = URL(fileURLWithPath: self.root + "/torpor-keeper")
        let torpord = belowCallgrind ? try wrapper() : self.root + "/torpord"
        process.arguments = [torpord, "--config", home + "/torpor.toml"]
        // The same on every machine, since every launch copies each variable.
        process.environment = ["PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8"]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        do {
            for _ in 0..<400 where self.torpord == 0 {
                usleep(50_000)
                guard (try? control(["list"])) != nil else { continue }
                self.torpord = children(of: keeper).first ?? 0
            }
            guard self.torpord != 0 else { throw WentWrong("torpord did not come up") }
        } catch {
            end()
            throw error
        }
    }

    /// The script that the keeper starts instead of torpord.
    private func wrapper() throws -> String {
        // valgrind 3.19 cannot read Swift's debug information.
        _ = try Tool.run(["strip", "--strip-debug", "-o", home + "/torpord", root + "/torpord"])
        // torpord looks for its runtime libraries beside itself.
        for name in try FileManager.default.contentsOfDirectory(atPath: root) where name.hasPrefix("libtorpor-swift") {
            try FileManager.default.createSymbolicLink(
                atPath: "\(home)/\(name)",
                withDestinationPath: "\(root)/\(name)"
            )
        }
        let path = home + "/wrapper"
        let text = """
            #!/bin/sh
            export LD_PRELOAD=\(home)/signals.so
            exec valgrind --quiet --tool=callgrind --callgrind-out-file=\(home)/counts \(home)/torpord "$@"
            """
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        guard chmod(path, 0o755) == 0 else { throw WentWrong("\(path) cannot be made executable") }
        return path
    }

    func start(_ count: Int) throws {
        let apps = (next..<next + count).map { "worker@\($0)" }
        next += count
        _ = try control(["start", "--timeout", "60s"] + apps)
        // Include work after the reply: the ends of the launch's pipes, records, the store's queue.
        usleep(300_000)
    }

    func suspend(_ count: Int) throws {
        let apps = (nextSuspended..<nextSuspended + count).map { "worker@\($0)" }
        nextSuspended += count
        _ = try control(["suspend", "--timeout", "60s"] + apps)
        usleep(300_000)
    }

    /// Connects to the sockets of `count` suspended apps one after the other, and waits until their processes run.
    func connect(_ count: Int) throws {
        for number in nextConnected..<nextConnected + count {
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            connections.append(descriptor)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array("\(home)/s\(number)".utf8)) }
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            guard result == 0 else { throw WentWrong("cannot connect to the socket of worker@\(number)") }
        }
        nextConnected += count
        let connected = nextConnected - 1
        try wait("the apps run") { self.workers().filter { self.state($0) != "T" }.count >= connected }
        usleep(300_000)
    }

    /// Kills `count` apps, and waits until all are running again.
    func kill(_ count: Int) throws {
        let before = workers()
        for pid in before.prefix(count) { Glibc.kill(pid, SIGKILL) }
        try wait("the apps were launched again") {
            let now = self.workers()
            return now.count == before.count && Set(now).subtracting(before).count == count
        }
        usleep(1_000_000)
    }

    private func wait(_ what: String, until isSo: () -> Bool) throws {
        for _ in 0..<1200 {
            if isSo() { return }
            usleep(50_000)
        }
        throw WentWrong("in a minute it did not come to be that \(what)")
    }

    private func workers() -> [pid_t] {
        children(of: keeper).filter { pid in
            (try? String(contentsOfFile: "/proc/\(pid)/comm", encoding: .utf8)) == "worker\n"
        }
    }

    private func state(_ pid: pid_t) -> String {
        let text = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ""
        return text.components(separatedBy: ") ").last.map { String($0.prefix(1)) } ?? ""
    }

    /// torpord's instructions per app: the difference of a run with many apps and one with few.
    func perOne(_ work: (Int) throws -> Void) throws -> Double {
        let few = try torpordInstructions { try work(30) }
        let many = try torpordInstructions { try work(120) }
        return Double(many - few) / 90
    }

    /// torpord's instructions during `work`.
    func torpordInstructions(_ work: () throws -> Void) throws -> Int {
        try work()
        _ = try Tool.run(["callgrind_control", "--dump", "\(torpord)"])
        dumps += 1
        // Each dump resets the counters.
        let text = try String(contentsOfFile: home + "/counts.\(dumps)", encoding: .utf8)
        guard let line = text.split(separator: "\n").last(where: { $0.hasPrefix("totals:") }),
            let number = Int(line.dropFirst(7).trimmingCharacters(in: .whitespaces))
        else { throw WentWrong("callgrind gave no totals") }
        return number
    }

    /// The keeper's instructions during the launch of `count` apps.
    func keeperInstructions(launching count: Int) throws -> Int {
        let steps = Process()
        steps.executableURL = URL(fileURLWithPath: home + "/steps")
        steps.arguments = ["\(keeper)"]
        let input = Pipe()
        let output = Pipe()
        steps.standardInput = input
        steps.standardOutput = output
        try steps.run()
        defer { steps.waitUntilExit() }
        guard String(decoding: output.fileHandleForReading.availableData, as: UTF8.self).hasPrefix("ready") else {
            throw WentWrong("process \(keeper) cannot be traced here")
        }
        let started = Result { try start(count) }
        try input.fileHandleForWriting.close()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        try started.get()
        guard let number = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw WentWrong("its steps were not counted: \(text)")
        }
        return number
    }

    /// Ends the supervisor and its apps.
    func end() {
        for descriptor in connections { close(descriptor) }
        guard process.isRunning else { return }
        Glibc.kill(keeper, SIGTERM)
        for _ in 0..<200 where process.isRunning { usleep(50_000) }
        if process.isRunning {
            // Stop one first: keeper and torpord restart each other.
            Glibc.kill(keeper, SIGSTOP)
            for pid in children(of: keeper) { Glibc.kill(pid, SIGKILL) }
            Glibc.kill(keeper, SIGKILL)
        }
        process.waitUntilExit()
    }

    private func control(_ command: [String]) throws -> String {
        try Tool.run([root + "/torpor"] + command + ["--socket", managerSocket])
    }

    private func children(of pid: pid_t) -> [pid_t] {
        let text = (try? String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8)) ?? ""
        return text.split(separator: " ").compactMap { Int32($0) }
    }
}
