// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The time of queries: the status of one app, and the list of all.
struct Asking: Measurement {
    let name = "commands"
    let takesStanding = true

    private func apps(_ bench: Bench) -> Int { bench.quick ? 100 : 1_000 }
    private func rounds(_ bench: Bench) -> Int { bench.quick ? 1 : 2 }
    /// The most queries per turn, and a time limit for slow peers.
    private func times(_ bench: Bench) -> (most: Int, seconds: Double) { bench.quick ? (20, 1) : (100, 6) }

    func conditions(_ bench: Bench) -> String {
        "With \(grouped(apps(bench))) apps. A command is timed as a whole process, output to /dev/null; a connection is "
            + "open already. floor: programs that do nothing but say hello, in C and in Swift with a static runtime."
    }

    func figures(_ bench: Bench) -> [Figure] {
        [
            Figure(name: "status", title: "status of one app", unit: "ms"),
            Figure(name: "list", title: "list of \(grouped(apps(bench))) apps", unit: "ms"),
        ]
    }

    func measure(_ run: Run) throws {
        try run.interleave("questions", rounds: rounds(run.bench), only: { $0.name != "torpor-nocg" }) { peer in
            try run.launched(peer, apps(run.bench)) { session in
                pause(0.5)
                for query in session.queries {
                    try run.attempt(peer, "\(query.kind) by \(query.way)") { try measure(run, peer, query) }
                }
            }
        }
    }

    private func measure(_ run: Run, _ peer: any Peer, _ query: Query) throws {
        let end = now() + times(run.bench).seconds
        var values: [Double] = []
        while values.count < 3 || (values.count < times(run.bench).most && now() < end) {
            try Interruption.check()
            values.append(try query.ask() * 1_000)
        }
        run.record(query.kind.rawValue, peer, way: query.way, values: values)
    }
}
