// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import TorporAPI
import Varlink

/// One app for many users: how long a new, an ended and a suspended scene take to answer, and the cost of each kept
/// scene.
struct Scenes: Measurement {
    let name = "scenes"
    /// How many run at a time.
    private let live = 50

    private func count(_ bench: Bench) -> Int { bench.quick ? 120 : 1_000 }

    func conditions(_ bench: Bench) -> String {
        "a template, of which \(grouped(count(bench))) instances are made in turn over an open connection, each with a Unix "
            + "socket of its own; \(live) run at a time. New: from the request for it to the first byte of its answer; "
            + "again: from the connection to one that was ended since. Torpor: max_live = \(live), sessions on the disk "
            + "before the answer; systemd: socket and service templates, where the harness stops who was used \(live) "
            + "instances before, since no program else does, and does not count that; no session is kept. 30 ms between two."
    }

    func figures(_ bench: Bench) -> [Figure] {
        [
            Figure(name: "scene-new", title: "first answer of a new scene", unit: "ms"),
            Figure(name: "scene-new-99", title: "the same, 99th percentile", unit: "ms"),
            Figure(name: "scene-again", title: "first answer of a scene that was ended", unit: "ms"),
            Figure(name: "scene-again-99", title: "the same, 99th percentile", unit: "ms"),
            Figure(name: "scene-suspended", title: "first answer of a scene that is suspended", unit: "ms"),
            Figure(name: "scene-memory", title: "memory for each scene that is kept", unit: "KiB"),
        ]
    }

    func measure(_ run: Run) throws {
        try run.interleave("scenes", rounds: 1, only: { ["torpor", "systemd"].contains($0.name) }) { peer in
            if peer.name == "systemd" { try systemd(run, peer) } else { try torpor(run, peer) }
        }
    }

    private func record(_ run: Run, _ figure: String, _ peer: any Peer, _ seconds: [Double]) {
        let values = seconds.map { $0 * 1e3 }
        run.record(figure, peer, values: values)
        if let high = Statistics(values)?.percentile99 { run.record(figure + "-99", peer, high) }
    }

    private func memory(_ session: Session) throws -> Double { try Processes.memory(session.ownProcesses()) }

    /// Retries: the socket's path may exist before the socket listens, since systemd only reports that the job has
    /// begun.
    private static func ask(_ address: String) throws {
        let end = now() + 10
        while true {
            do {
                _ = try Connecting.ask(address)
                return
            } catch let error as Errno {
                guard error == .connectionRefused, now() < end else { throw error }
            }
        }
    }

    /// Calls both for each scene in turn; only `open` is timed.
    private func round(
        _ run: Run,
        open: (Int) throws -> Void = { _ in },
        address: (Int) -> String,
        rest: (Int) throws -> Void = { _ in }
    ) throws -> [Double] {
        try (0..<count(run.bench)).map { index in
            try Interruption.check()
            let began = now()
            try open(index)
            try Self.ask(address(index))
            let took = now() - began
            try rest(index)
            pause(0.03)
            return took
        }
    }

    private func torpor(_ run: Run, _ peer: any Peer) throws {
        let count = count(run.bench)
        var load = Workload(1, settings: ["torpor": "wake_storm = { limit = 0 }\nbackground_time = \"1h\"\n"])
        load.tables = { _, runtime in
            """
            [apps.code]
            exec = ["\(run.bench.worker)", "%s", "answer"]
            event_time = "1h"
            scenes = { max_live = \(live), max_sessions = \(count) }
            [[apps.code.sockets]]
            stream = "\(runtime)/%s.sock"

            """
        }
        try run.session(peer, load) { session in
            guard let session = session as? TorporSession else { return }
            try session.launch()
            pause(1)
            let before = try memory(session)
            let address = { (index: Int) in "\(session.runtime)/\(index + 1).sock" }
            let new = try round(
                run,
                open: { index in
                    var request = OpenSceneRequest(template: "code", name: "\(index + 1)")
                    request.remote = true
                    _ = try session.call(.openScene(request))
                },
                address: address
            )
            record(run, "scene-new", peer, new)
            let each = (try memory(session) - before) / Double(count) * 1_024
            run.record("scene-memory", peer, each)
            record(run, "scene-again", peer, try round(run, address: address))
            // The scenes still running.
            let last = (count - live + 5)..<count
            _ = try session.call(.verb(VerbRequest(verb: .suspend, apps: last.map { "code@\($0 + 1)" })))
            let suspended = try last.map { index in
                try Connecting.requireStopped(session.page.pid(index + 1))
                let seconds = try Connecting.ask(address(index), expecting: session.page.pid(index + 1))
                pause(0.03)
                return seconds
            }
            run.record("scene-suspended", peer, values: suspended.map { $0 * 1e3 })
        }
    }

    private func systemd(_ run: Run, _ peer: any Peer) throws {
        let count = count(run.bench)
        let settings = "Restart=no\nStartLimitIntervalSec=0"
        let load = Workload(1, arguments: ["answer"], settings: ["systemd": settings])
        try run.session(peer, load) { session in
            guard let session = session as? SystemdSession, let container = session.container else { return }
            let unit = "[Socket]\nListenStream=\(session.runtime)/%i.sock\nTriggerLimitIntervalSec=0\n"
            try unit.write(
                toFile: container.path("/run/systemd/system") + "/bench@.socket",
                atomically: false,
                encoding: .utf8
            )
            try container.run("systemctl daemon-reload")
            let address = { (index: Int) in "\(session.runtime)/\(index + 1).sock" }
            // Warm up the connection and the common slice.
            try session.begin("StartUnit", "bench@0.socket")
            pause(1)
            let before = try memory(session)
            let leave = { (index: Int) in
                let old = (index - live + count) % count
                try session.begin("StopUnit", "bench@\(old + 1).service")
            }
            let new = try round(
                run,
                open: { index in
                    try session.begin("StartUnit", "bench@\(index + 1).socket")
                    // The reply reports only that the job has begun.
                    let path = address(index)
                    guard try waitUntil(10, step: 0.0001, { access(path, F_OK) == 0 }) else {
                        throw Trouble("\(path) is not there")
                    }
                },
                address: address,
                rest: { index in if index >= live { try leave(index) } }
            )
            record(run, "scene-new", peer, new)
            run.record("scene-memory", peer, (try memory(session) - before) / Double(count) * 1_024)
            record(run, "scene-again", peer, try round(run, address: address, rest: leave))
            try container.run("systemctl stop 'bench@*.socket' 'bench@*.service'")
        }
    }
}
