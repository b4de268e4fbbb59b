// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The time from an app's end to its next start, with the shortest delay that each peer allows.
struct Restart: Measurement {
    let name = "restart"
    let takesStanding = true

    private func apps(_ bench: Bench) -> Int { bench.quick ? 100 : 1_000 }
    private func rounds(_ bench: Bench) -> Int { bench.quick ? 1 : 2 }
    /// The most kills per turn, and a time limit for peers that wait a second before each restart.
    private func kills(_ bench: Bench) -> (most: Int, seconds: Double) { bench.quick ? (60, 2) : (200, 25) }

    func conditions(_ bench: Bench) -> String {
        "From SIGKILL until the next process of the app runs, by the worker's own report; one at a time, a different one "
            + "of \(grouped(apps(bench))) apps each time, each after a run of over a second; restart delays set to the "
            + "least that each allows."
    }

    func figures(_ bench: Bench) -> [Figure] {
        [
            Figure(name: "restart", title: "crash to running again", unit: "ms"),
            Figure(name: "restart-p99", title: "crash to running again, 99th percentile", unit: "ms"),
        ]
    }

    func measure(_ run: Run) throws {
        try run.interleave("crashes", rounds: rounds(run.bench)) { peer in
            var values: [Double] = []
            try run.launched(peer, apps(run.bench)) { session in
                if let floor = session as? FloorSession {
                    let lines = try floor.measure("restart", rounds: kills(run.bench).most)
                    values = lines.compactMap { $0.first }.map { $0 / 1e6 }
                } else {
                    values = try measure(run, session)
                }
            }
            run.record("restart", peer, values: values)
            if let statistics = Statistics(values) { run.record("restart-p99", peer, statistics.percentile99) }
        }
    }

    private func measure(_ run: Run, _ session: Session) throws -> [Double] {
        pause(1.5)
        let end = now() + kills(run.bench).seconds
        var values: [Double] = []
        for slot in 0..<min(session.load.count, kills(run.bench).most) where now() < end || values.isEmpty {
            let page = session.page
            let starts = page.starts(slot)
            let killed = now()
            let pid = session.worker(slot)
            guard pid > 1, kill(pid, SIGKILL) == 0 else {
                throw Trouble("the worker in slot \(slot) has gone (pid \(pid))")
            }
            guard try waitUntil(30, { page.starts(slot) > starts }) else {
                throw Trouble("the app in slot \(slot) does not run again 30 s after its end")
            }
            // The worker writes its start time before it increments the counter.
            values.append((page.started(slot) - killed) * 1_000)
        }
        return values
    }
}
