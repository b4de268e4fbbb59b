// SPDX-License-Identifier: Apache-2.0

import Foundation
import TorporAPI
import Varlink

/// Scenes inside one process: the time to open one, and its cost in the supervisor. No other peer has such scenes.
struct InnerScenes: Measurement {
    let name = "inner-scenes"
    /// How many scenes are connected at a time.
    private let live = 50

    private func counts(_ bench: Bench) -> [Int] { bench.quick ? [50, 250] : [100, 1_000] }

    func conditions(_ bench: Bench) -> String {
        "An app with the C library and scenes = { inside = true, max_live = \(live) }, over an open connection. New: from the "
            + "request until the scene is active, its session on the disk; one that was open before leaves its place for "
            + "it. Again: the same for one that was disconnected. Connected: from the background to the foreground. Memory: "
            + "PSS of torpord and its keeper, the slope between \(grouped(counts(bench)[0])) and "
            + "\(grouped(counts(bench)[1])) sessions, most of which are not connected. The second time each connected scene "
            + "has a cgroup."
    }

    func figures(_ bench: Bench) -> [Figure] {
        [("", ""), ("-cgroup", ", with a cgroup")].flatMap { key, title in
            [
                Figure(name: "inner-new\(key)", title: "a new scene inside is active\(title)", unit: "ms"),
                Figure(name: "inner-again\(key)", title: "one that was disconnected is active\(title)", unit: "ms"),
                Figure(name: "inner-front\(key)", title: "a connected one is active\(title)", unit: "ms"),
            ]
        } + [Figure(name: "inner-memory", title: "memory for each session", unit: "KiB")]
    }

    func measure(_ run: Run) throws {
        let bench = run.bench
        let program = try bench.delegate()
        try run.interleave("inner scenes", rounds: 1, only: { $0.name == "torpor" }) { peer in
            for key in ["", "-cgroup"] {
                var load = Workload(1)
                load.tables = { _, _ in
                    """
                    [apps.desk]
                    exec = ["\(program)", "0"]
                    ready = "delegate"
                    background_time = "1h"
                    scenes = { inside = true, max_live = \(live), cgroups = \(!key.isEmpty) }

                    """
                }
                try run.session(peer, load) { session in
                    guard let session = session as? TorporSession else { return }
                    try measure(run, peer, session, key)
                }
            }
        }
    }

    private func measure(_ run: Run, _ peer: any Peer, _ session: TorporSession, _ key: String) throws {
        let counts = counts(run.bench)
        func open(_ indices: Range<Int>) throws -> [Double] {
            try indices.map { index in
                try Interruption.check()
                let began = now()
                let reply = try session.call(.openScene(OpenSceneRequest(template: "desk", name: "s\(index)")))
                let took = now() - began
                guard reply["results"]?.arrayValue?.first?["ok"]?.boolValue == true else { throw Trouble("\(reply)") }
                // Only scenes in the background free their slots.
                _ = try session.call(.verb(VerbRequest(verb: .background, apps: ["desk@s\(index)"])))
                return took * 1e3
            }
        }
        func memory() throws -> Double {
            pause(1)
            return try Processes.memory(session.ownProcesses()) * 1_024
        }
        try session.launch()
        let some = try open(0..<counts[0])
        let few = try memory()
        let rest = try open(counts[0]..<counts[1])
        if key.isEmpty { run.record("inner-memory", peer, (try memory() - few) / Double(counts[1] - counts[0])) }
        run.record("inner-new\(key)", peer, values: some + rest)
        run.record("inner-again\(key)", peer, values: try open(0..<counts[1] - live))
        run.record("inner-front\(key)", peer, values: try open(counts[1] - 2 * live..<counts[1] - live))
    }
}
