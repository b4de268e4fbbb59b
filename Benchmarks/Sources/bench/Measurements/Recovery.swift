// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The loss and the replacement of torpord while apps keep running. No other peer supports this: their apps end with
/// the supervisor or become orphans.
struct Recovery: Measurement {
    let name = "recovery"

    private func apps(_ bench: Bench) -> Int { 1_000 }
    private func rounds(_ bench: Bench) -> Int { bench.quick ? 1 : 5 }

    func conditions(_ bench: Bench) -> String {
        "\(grouped(apps(bench))) apps. Recovery: from SIGKILL of torpord until another torpord has listed all apps with the "
            + "same processes. Upgrade: `torpor upgrade` as a whole process; the list is compared afterwards."
    }

    func figures(_ bench: Bench) -> [Figure] {
        [
            Figure(name: "recovery", title: "recovery with \(grouped(apps(bench))) apps", unit: "ms"),
            Figure(name: "upgrade", title: "upgrade with \(grouped(apps(bench))) apps", unit: "ms"),
        ]
    }

    func measure(_ run: Run) throws {
        try run.interleave("recovery and upgrade", rounds: rounds(run.bench), only: Torpor.isWhole) { peer in
            try run.session(peer, Workload(apps(run.bench))) { session in
                guard let session = session as? TorporSession else { return }
                try session.launch()
                pause(1)
                let pids = try session.listedPIDs()
                guard !pids.contains(nil), let torpord = session.torpord else {
                    throw Trouble("not every app runs, or torpord is not a child of its keeper")
                }
                run.record("recovery", peer, try recover(session, torpord, pids))
                session.disconnect()
                let took = try Child.time(session.command("upgrade"))
                guard try session.listedPIDs() == pids else { throw Trouble("apps were lost by the upgrade") }
                run.record("upgrade", peer, took * 1_000)
            }
        }
    }

    private func recover(_ session: TorporSession, _ torpord: pid_t, _ pids: [pid_t?]) throws -> Double {
        session.disconnect()
        let killed = now()
        kill(torpord, SIGKILL)
        let isBack = try waitUntil(60) {
            // Connections are refused until the new torpord listens.
            guard let listed = try? session.listedPIDs() else { return false }
            return listed == pids
        }
        let took = (now() - killed) * 1_000
        guard isBack, let next = session.torpord, next != torpord else {
            throw Trouble("60 s after its end no other torpord lists all apps with the same processes")
        }
        return took
    }
}
