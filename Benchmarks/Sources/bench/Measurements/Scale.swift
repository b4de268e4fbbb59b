// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Many apps from launch to end: launch time, memory at rest, descriptors, and the time to stop all.
struct Scale: Measurement {
    let name = "scale"

    /// The numbers of apps, and each peer's turns.
    private func steps(_ bench: Bench) -> [(apps: Int, rounds: Int)] {
        if !bench.apps.isEmpty { return bench.apps.sorted().map { ($0, 1) } }
        return bench.quick ? [(0, 1), (100, 1), (500, 1)] : [(0, 2), (100, 2), (1_000, 3), (5_000, 1), (10_000, 1)]
    }

    /// Seconds until a supervisor is at rest.
    private func settle(_ bench: Bench) -> Double { bench.quick ? 0.6 : 2 }

    func conditions(_ bench: Bench) -> String {
        "Launch: from before the supervisor's start to the last worker's own report. Memory: PSS of all processes of the "
            + "supervisor itself, \(settle(bench)) s after the last report. Stop: from the signal to the supervisor until "
            + "no worker lives in /proc."
    }

    func figures(_ bench: Bench) -> [Figure] {
        let all = steps(bench).map(\.apps)
        let some = all.filter { $0 > 0 }
        return some.map {
            Figure(name: "launch-\($0)", title: "launch of \(grouped($0)) apps", unit: "s", curve: ("launch", $0))
        }
            + all.map {
                Figure(
                    name: "memory-\($0)",
                    title: "memory with \(grouped($0)) apps",
                    unit: "MiB",
                    curve: ("memory", $0)
                )
            }
            + [
                Figure(name: "memory-each", title: "memory for each further app", unit: "KiB"),
                Figure(name: "descriptors-each", title: "descriptors for each further app", unit: ""),
            ]
            + some.map {
                Figure(name: "stop-\($0)", title: "stop of \(grouped($0)) apps", unit: "s", curve: ("stop", $0))
            }
    }

    func measure(_ run: Run) throws {
        for (apps, rounds) in steps(run.bench) {
            var asked: [String] = []
            for peer in run.peers where peer.missing == nil {
                // Torpor without cgroups shows the cost of cgroups: one number of apps is enough.
                if peer.name == "torpor-nocg", apps != (run.bench.quick ? 500 : 1_000) { continue }
                if let missing = run.bench.missing(peer, apps: apps) {
                    run.note(peer.name, missing)
                } else {
                    asked.append(peer.name)
                }
            }
            let isAsked = { (peer: any Peer) in asked.contains(peer.name) }
            try run.interleave("\(grouped(apps)) apps", rounds: rounds, only: isAsked) { peer in
                try run.session(peer, Workload(apps)) { session in try measure(run, session, peer, apps) }
            }
        }
        for peer in run.peers where peer.name != "floor" { each(run, peer) }
    }

    private func measure(_ run: Run, _ session: Session, _ peer: any Peer, _ apps: Int) throws {
        let took = try session.launch(seconds: apps > 1_000 ? 150 : 120)
        if apps > 0 { run.record("launch-\(apps)", peer, took) }
        pause(settle(run.bench))
        try Interruption.check()
        let own = session.ownProcesses()
        run.record("memory-\(apps)", peer, try Processes.memory(own))
        run.record("open-\(apps)", peer, Double(Processes.descriptors(own)))
        guard apps > 0 else { return }
        let began = now()
        try session.askStop()
        try session.waitForWorkersEnd(seconds: apps > 1_000 ? 150 : 120)
        run.record("stop-\(apps)", peer, now() - began)
    }

    /// The cost of one more app: the slope between 100 apps and the most that ran.
    private func each(_ run: Run, _ peer: any Peer) {
        let apps = steps(run.bench).map(\.apps).filter { $0 >= 100 }
        func median(_ figure: String, _ count: Int) -> Double? {
            run.rows["\(figure)-\(count)"]?.first { $0.peer == peer.name }.flatMap { Statistics($0.values)?.median }
        }
        for (figure, result, scale) in [("memory", "memory-each", 1_024.0), ("open", "descriptors-each", 1.0)] {
            let known = apps.filter { median(figure, $0) != nil }
            guard let few = known.first, let many = known.last, few < many, let low = median(figure, few),
                let high = median(figure, many)
            else { continue }
            run.record(result, peer, (high - low) * scale / Double(many - few))
        }
    }
}
