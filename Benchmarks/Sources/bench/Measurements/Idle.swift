// SPDX-License-Identifier: Apache-2.0

import Foundation

/// How often a supervisor wakes while nothing happens.
struct Idle: Measurement {
    let name = "idle"
    let takesStanding = true

    private func apps(_ bench: Bench) -> Int { bench.quick ? 100 : 1_000 }
    private func seconds(_ bench: Bench) -> Double { bench.quick ? 10 : 60 }

    func conditions(_ bench: Bench) -> String {
        "\(grouped(apps(bench))) apps that do nothing; context switches of all threads of the supervisor's own processes "
            + "over \(Int(seconds(bench))) s, all peers at the same time, \(Int(settle(bench))) s after the last launch."
    }

    private func settle(_ bench: Bench) -> Double { bench.quick ? 2 : 12 }

    func figures(_ bench: Bench) -> [Figure] {
        [Figure(name: "idle", title: "context switches at rest with \(grouped(apps(bench))) apps", unit: "1/s")]
    }

    func measure(_ run: Run) throws {
        var sessions: [(peer: any Peer, session: Session)] = []
        defer { for (_, session) in sessions { run.release(session) } }
        try run.interleave("launch of \(grouped(apps(run.bench))) apps", rounds: 1) { peer in
            sessions.append((peer, try run.launched(peer, apps(run.bench))))
        }
        let running = sessions.filter { $0.session.isRunning }
        try rest(settle(run.bench))
        let before = running.map { Processes.switches($0.session.ownProcesses()) }
        let began = now()
        try rest(seconds(run.bench))
        let took = now() - began
        for (index, (peer, session)) in running.enumerated() {
            let count = Processes.switches(session.ownProcesses()) - before[index]
            run.record("idle", peer, Double(count) / took)
        }
    }

    private func rest(_ seconds: Double) throws { _ = try waitUntil(seconds, step: 0.2) { false } }
}
