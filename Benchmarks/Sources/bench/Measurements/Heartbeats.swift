// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The cost of receiving heartbeats.
struct Heartbeats: Measurement {
    let name = "heartbeats"

    /// Apps that send without pause: enough that the supervisor never waits for the next heartbeat.
    private static let flooding = 8

    private func apps(_ bench: Bench) -> Int { bench.quick ? 200 : 1_000 }
    private func seconds(_ bench: Bench) -> Double { bench.quick ? 3 : 20 }

    func conditions(_ bench: Bench) -> String {
        "\(grouped(apps(bench))) workers with a watchdog, each WATCHDOG=1 a second, spread over the second, for "
            + "\(Int(seconds(bench))) s; then \(Self.flooding) workers that send one after the other without a pause, on the "
            + "same processors as the supervisor, so that some of the time is theirs: what is counted is what went into the "
            + "sockets while they were full, which is what was taken out. Processor time is the supervisor's own."
    }

    func figures(_ bench: Bench) -> [Figure] {
        [
            Figure(
                name: "heartbeat-load",
                title: "share of one processor with \(grouped(apps(bench))) heartbeats a second",
                unit: "%"
            ),
            Figure(name: "heartbeat-cost", title: "processor time for a heartbeat in a flood", unit: "µs"),
            Figure(name: "heartbeat-most", title: "most heartbeats taken", unit: "1/s", better: .higher),
        ]
    }

    func measure(_ run: Run) throws {
        let isAsked = { (peer: any Peer) in Torpor.isWhole(peer) || peer.name == "systemd" }
        let apps = apps(run.bench)
        try run.interleave("\(grouped(apps)) beats a second", rounds: run.bench.quick ? 1 : 2, only: isAsked) { peer in
            try run.session(peer, load(apps, milliseconds: 1_000)) { session in
                try session.launch()
                // Wait until every app has sent its first.
                try rest(2.5)
                let (beats, cpu, took) = try count(session, seconds(run.bench))
                let expected = Double(apps) * took
                guard beats > expected * 0.8, beats < expected * 1.2 else {
                    throw Trouble("\(Int(beats)) beats were sent in \(took) s instead of \(Int(expected))")
                }
                run.record("heartbeat-load", peer, cpu / took * 100)
            }
        }
        try run.interleave("flood of beats", rounds: run.bench.quick ? 1 : 3, only: isAsked) { peer in
            try run.session(peer, load(Self.flooding, milliseconds: 0)) { session in
                try session.launch()
                try rest(1.2)
                let (beats, cpu, took) = try count(session, run.bench.quick ? 1.5 : 3)
                run.record("heartbeat-most", peer, beats / took)
                run.record("heartbeat-cost", peer, cpu / beats * 1e6)
            }
        }
    }

    private func load(_ apps: Int, milliseconds: Int) -> Workload {
        Workload(
            apps,
            arguments: ["heartbeat", "\(milliseconds)"],
            settings: [
                "torpor": "ready = \"notify\"\nwatchdog = \"30s\"",
                "systemd": "Type=notify\nNotifyAccess=main\nWatchdogSec=30",
            ]
        )
    }

    private func count(_ session: Session, _ seconds: Double) throws -> (beats: Double, cpu: Double, took: Double) {
        let own = session.ownProcesses()
        let (beats, cpu, began) = (session.page.beats, Processes.exactCPU(own), now())
        try rest(seconds)
        let took = now() - began
        guard (0..<session.load.count).allSatisfy({ session.page.starts($0) == 1 }) else {
            throw Trouble("workers were started again: their heartbeats were not heard")
        }
        return (Double(session.page.beats &- beats), Processes.exactCPU(own) - cpu, took)
    }

    private func rest(_ seconds: Double) throws { _ = try waitUntil(seconds, step: 0.2) { false } }
}
