// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A launch as torpord and its keeper really do it: torpord below callgrind, and then the keeper by single steps
/// (`steps.c`), since valgrind does not know pidfd_open(2), which the keeper needs.
enum WholeLaunch {
    static let names: Set<String> = ["launch-torpord", "launch-keeper"]

    static func measure(root: String, into report: MicroReport) {
        report.add("launch-torpord", "torpord launches an app, from the client's request to the word that it runs") {
            let supervisor = try CountedSupervisor(root: root, apps: 170, belowCallgrind: true)
            defer { supervisor.end() }
            _ = try supervisor.torpordInstructions(launching: 20)
            let few = try supervisor.torpordInstructions(launching: 30)
            let many = try supervisor.torpordInstructions(launching: 120)
            return Double(many - few) / 90
        }
        report.add("launch-keeper", "torpor-keeper's part of the same launch, from the message to the word") {
            let supervisor = try CountedSupervisor(root: root, apps: 20, belowCallgrind: false)
            defer { supervisor.end() }
            // Few, since each takes two tenths of a second so.
            let few = try supervisor.keeperInstructions(launching: 5)
            let many = try supervisor.keeperInstructions(launching: 15)
            return Double(many - few) / 10
        }
    }
}

/// A supervisor of apps that wait to be started, one of whose processes is counted.
private final class CountedSupervisor {
    private let process = Process()
    private let home: String
    private let socket: String
    private let root: String
    private var next = 1
    private var dumps = 0
    private var keeper: pid_t { process.processIdentifier }
    private var torpord: pid_t = 0

    init(root: String, apps: Int, belowCallgrind: Bool) throws {
        self.root = URL(fileURLWithPath: root).path
        home = Scratch.path("torpor")
        try? FileManager.default.removeItem(atPath: home)
        try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: true)
        socket = home + "/run/io.torpor"
        let programs = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Programs").path
        for name in ["steps", "worker"] {
            _ = try Tool.run(["cc", "-O2", "-o", "\(home)/\(name)", "\(programs)/\(name).c"])
        }
        let configuration = """
            [supervisor]
            runtime_directory = "\(home)/run"
            state_directory = "\(home)/state"
            log_directory = "\(home)/log"

            [apps.worker]
            exec = ["\(home)/worker", "0", "wait"]
            launch = "on-demand"
            # Single steps take their time.
            launch_deadline = "2min"
            instances = \(apps)
            """
        try configuration.write(toFile: home + "/torpor.toml", atomically: true, encoding: .utf8)
        process.executableURL = URL(fileURLWithPath: self.root + "/torpor-keeper")
        let torpord = belowCallgrind ? try wrapper() : self.root + "/torpord"
        process.arguments = [torpord, "--config", home + "/torpor.toml"]
        // The same on every machine: each variable is handed on in each launch.
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

    /// What the keeper starts in torpord's place.
    private func wrapper() throws -> String {
        // valgrind 3.19 cannot read Swift's debugging information.
        _ = try Tool.run(["strip", "--strip-debug", "-o", home + "/torpord", root + "/torpord"])
        // It looks for its runtime beside itself.
        for name in try FileManager.default.contentsOfDirectory(atPath: root) where name.hasPrefix("libtorpor-swift") {
            try FileManager.default.createSymbolicLink(
                atPath: "\(home)/\(name)",
                withDestinationPath: "\(root)/\(name)"
            )
        }
        let path = home + "/wrapper"
        let text = """
            #!/bin/sh
            exec valgrind --quiet --tool=callgrind --callgrind-out-file=\(home)/counts \(home)/torpord "$@"
            """
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        guard chmod(path, 0o755) == 0 else { throw WentWrong("\(path) cannot be made executable") }
        return path
    }

    private func start(_ count: Int) throws {
        let apps = (next..<next + count).map { "worker@\($0)" }
        next += count
        _ = try control(["start", "--timeout", "60s"] + apps)
        // What comes after the answer: exits of the launch's pipes, records, the store's queue.
        usleep(300_000)
    }

    /// The instructions that torpord executes while so many apps are launched.
    func torpordInstructions(launching count: Int) throws -> Int {
        try start(count)
        _ = try Tool.run(["callgrind_control", "--dump", "\(torpord)"])
        dumps += 1
        // Each dump begins the counting anew.
        let text = try String(contentsOfFile: home + "/counts.\(dumps)", encoding: .utf8)
        guard let line = text.split(separator: "\n").last(where: { $0.hasPrefix("totals:") }),
            let number = Int(line.dropFirst(7).trimmingCharacters(in: .whitespaces))
        else { throw WentWrong("callgrind gave no totals") }
        return number
    }

    /// The instructions that the keeper executes while so many apps are launched.
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

    /// Ends the supervisor, and with it the apps.
    func end() {
        guard process.isRunning else { return }
        kill(keeper, SIGTERM)
        for _ in 0..<200 where process.isRunning { usleep(50_000) }
        if process.isRunning {
            // Both, else each would start the other again.
            kill(keeper, SIGSTOP)
            for pid in children(of: keeper) { kill(pid, SIGKILL) }
            kill(keeper, SIGKILL)
        }
        process.waitUntilExit()
    }

    private func control(_ command: [String]) throws -> String {
        try Tool.run([root + "/torpor"] + command + ["--socket", socket])
    }

    private func children(of pid: pid_t) -> [pid_t] {
        let text = (try? String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8)) ?? ""
        return text.split(separator: " ").compactMap { Int32($0) }
    }
}
