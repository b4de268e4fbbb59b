// SPDX-License-Identifier: Apache-2.0

import Foundation
import TorporAPI
import Varlink

/// Apps with a delegate: the round trip of a message, the cost of such an app in the supervisor, and many apps that
/// enter the background at once. No other peer has delegates.
struct Delegates: Measurement {
    let name = "delegates"

    private func apps(_ bench: Bench) -> [Int] { bench.quick ? [50, 250] : [100, 1_000] }
    private func messages(_ bench: Bench) -> Int { bench.quick ? 300 : 2_000 }
    private func crowd(_ bench: Bench) -> Int { bench.quick ? 100 : 500 }
    /// How long each app of the crowd takes to answer didEnterBackground, in milliseconds.
    private static let saving = 200

    func conditions(_ bench: Bench) -> String {
        "Apps with the C library, ready = \"delegate\". A message: an app is interrupted and that is ended, again and "
            + "again; from when torpord tells it until it has the answer, by its own event log. Memory: PSS of torpord and "
            + "its keeper with all apps in the foreground, the slope between \(grouped(apps(bench)[0])) and "
            + "\(grouped(apps(bench)[1])) of them. At once: \(grouped(crowd(bench))) apps that each take "
            + "\(Self.saving) ms for didEnterBackground, asked in one call; beyond what one of them takes, and the processor "
            + "time of torpord and its keeper in it."
    }

    func figures(_ bench: Bench) -> [Figure] {
        [
            Figure(name: "message", title: "a message to a delegate and its answer", unit: "µs"),
            Figure(name: "delegate-each", title: "memory for each further delegate", unit: "KiB"),
            Figure(
                name: "crowd",
                title: "\(grouped(crowd(bench))) apps enter the background, beyond one's own time",
                unit: "ms"
            ),
            Figure(name: "crowd-cpu", title: "the supervisor's processor time for that", unit: "ms"),
        ]
    }

    func measure(_ run: Run) throws {
        let bench = run.bench
        let program = try bench.delegate()
        func load(_ count: Int, _ arguments: [String] = []) -> Workload {
            var load = Workload(count, arguments: arguments, settings: ["torpor": "ready = \"delegate\""])
            load.program = program
            return load
        }
        try run.interleave("delegates", rounds: 1, only: { $0.name == "torpor" }) { peer in
            var memory: [Double] = []
            for count in apps(bench) {
                try run.session(peer, load(count)) { session in
                    guard let session = session as? TorporSession else { return }
                    try begin(session)
                    pause(bench.quick ? 0.6 : 2)
                    memory.append(try Processes.memory(session.ownProcesses()))
                    if count == apps(bench)[0] { try talk(run, peer, session) }
                }
            }
            let step = Double(apps(bench)[1] - apps(bench)[0])
            run.record("delegate-each", peer, (memory[1] - memory[0]) * 1_024 / step)
            try run.session(peer, load(crowd(bench), ["\(Self.saving)"])) { session in
                guard let session = session as? TorporSession else { return }
                try begin(session)
                try enter(run, peer, session)
            }
        }
    }

    /// Launches, and waits until every delegate has confirmed that its app is active.
    private func begin(_ session: TorporSession) throws {
        try session.launch()
        guard try waitUntil(60, step: 0.05, { try self.count("active", session) == session.load.count }) else {
            throw Trouble("not all delegates are active after 60 s")
        }
    }

    private func count(_ state: String, _ session: TorporSession) throws -> Int {
        (try session.call(.list)["apps"]?.arrayValue ?? []).count {
            $0["state"]?.stringValue == state && $0["transition"]?.isNull ?? true
        }
    }

    private func talk(_ run: Run, _ peer: any Peer, _ session: TorporSession) throws {
        var sequence: Int64 = 0
        var told: [Double] = []
        // The log's size is bounded: read it after every hundred messages.
        for _ in 0..<(messages(run.bench) / 100) {
            for round in 0..<100 {
                var request = VerbRequest(verb: .interrupt, apps: ["w0"])
                request.end = round % 2 == 1
                _ = try session.call(.verb(request))
            }
            var sent: Int64?
            for line in try Child.output(session.command("events", "w0", "--json")).split(separator: "\n") {
                let event = try EventRecord(json: JSON.parse(String(line)))
                guard event.sequence > sequence else { continue }
                sequence = event.sequence
                guard event.kind == "message" else { continue }
                if event.text.hasPrefix("told") {
                    sent = event.at
                } else if event.text.hasPrefix("answered"), let began = sent {
                    told.append(Double(event.at - began))
                    sent = nil
                }
            }
        }
        guard told.count > messages(run.bench) / 2 else { throw Trouble("only \(told.count) messages were seen") }
        run.record("message", peer, values: told)
    }

    private func enter(_ run: Run, _ peer: any Peer, _ session: TorporSession) throws {
        let own = session.ownProcesses()
        let before = Processes.exactCPU(own)
        let began = now()
        _ = try session.call(.verb(VerbRequest(verb: .background, apps: ["*"])))
        let took = (now() - began) * 1_000
        let after = Processes.exactCPU(own)
        guard try count("background", session) == session.load.count else {
            throw Trouble("not all are in the background")
        }
        run.record("crowd", peer, took - Double(Self.saving))
        run.record("crowd-cpu", peer, (after - before) * 1_000)
    }
}

extension Bench {
    /// Compiles the program of apps with a delegate, which uses the C library.
    func delegate() throws -> String {
        let program = program("delegate")
        let library = root + "/Clients/c"
        _ = try Child.output([
            "cc", "-O2", "-pthread", "-I", library, "-o", program, root + "/Benchmarks/Programs/delegate.c",
            library + "/torpor_app.c",
        ])
        return program
    }
}
