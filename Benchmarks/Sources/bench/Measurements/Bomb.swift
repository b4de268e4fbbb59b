// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Stopping an app with very many processes, each in its own session.
struct Bomb: Measurement {
    let name = "bomb"

    private func processes(_ bench: Bench) -> Int { bench.quick ? 1_000 : 5_000 }

    func conditions(_ bench: Bench) -> String {
        "One app forks \(grouped(processes(bench))) processes, each in a session of its own, that wait for ever. From asking "
            + "the supervisor to stop everything until none of them is in /proc, zombies aside. What is left a second "
            + "after the supervisor has ended, or after 60 s, counts as left behind."
    }

    func figures(_ bench: Bench) -> [Figure] {
        let count = grouped(processes(bench))
        return [
            Figure(name: "bomb", title: "end of an app with \(count) processes", unit: "s"),
            Figure(name: "bomb-left", title: "processes left behind of \(count)", unit: ""),
        ]
    }

    func measure(_ run: Run) throws {
        let count = processes(run.bench)
        let load = Workload(1, arguments: ["bomb", "\(count)"], settings: ["systemd": "TasksMax=infinity"])
        let rounds = run.bench.quick ? 1 : 3
        if let missing = run.bench.missing(Floor(), apps: count) { return run.note("", missing) }
        try run.interleave("\(grouped(count)) processes", rounds: rounds, only: { $0.name != "floor" }) { peer in
            // Always, even on Ctrl-C: no other process will end them.
            defer { Self.endAll(run.bench.worker) }
            try run.session(peer, load) { session in
                try session.launch()
                var pids: [pid_t] = []
                let all = try waitUntil(60, step: 0.1) {
                    pids = Self.all(run.bench.worker)
                    return pids.count >= count + 1
                }
                guard all else { throw Trouble("only \(pids.count) processes came up within 60 s") }
                try rest(0.5)
                let began = now()
                try session.askStop()
                let left = try waitForEnd(of: pids, session)
                if left == 0 { run.record("bomb", peer, now() - began) }
                run.record("bomb-left", peer, Double(left))
            }
        }
    }

    /// Returns how many processes are left. Polls one at a time to use little CPU.
    private func waitForEnd(of pids: [pid_t], _ session: Session) throws -> Int {
        let limit = now() + 60
        var over: Double?
        for pid in pids {
            let isGone = try waitUntil(max(0, limit - now())) {
                if !Processes.isAlive(pid) { return true }
                if over == nil, !session.isRunning { over = now() + 1 }
                return over.map { now() > $0 } ?? false
            }
            guard isGone, !Processes.isAlive(pid) else { return pids.filter(Processes.isAlive).count }
        }
        return 0
    }

    /// All processes that run this program.
    private static func all(_ program: String) -> [pid_t] {
        var own = stat()
        guard stat(program, &own) == 0 else { return [] }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { pid_t($0) }.filter { pid in
            var other = stat()
            return stat("/proc/\(pid)/exe", &other) == 0 && other.st_ino == own.st_ino && other.st_dev == own.st_dev
        }
    }

    private static func endAll(_ program: String) {
        for _ in 0..<20 {
            let pids = all(program)
            if pids.isEmpty { return }
            for pid in pids { kill(pid, SIGKILL) }
            pause(0.1)
        }
    }

    private func rest(_ seconds: Double) throws { _ = try waitUntil(seconds, step: 0.1) { false } }
}
