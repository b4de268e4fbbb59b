// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Suspending and resuming an app.
struct Suspend: Measurement {
    let name = "suspend"
    let takesStanding = true

    private func apps(_ bench: Bench) -> Int { bench.quick ? 100 : 1_000 }
    private func rounds(_ bench: Bench) -> Int { bench.quick ? 1 : 2 }
    /// The most suspensions per turn, and a time limit for slow peers.
    private func times(_ bench: Bench) -> (most: Int, seconds: Double) { bench.quick ? (50, 1) : (200, 12) }

    func conditions(_ bench: Bench) -> String {
        "From the request until both its answer is there and /proc says T (resume: no longer), one at a time, of "
            + "\(grouped(apps(bench))) apps; a command is its whole process, "
            + "a control FIFO gives no answer. floor: kill and waitpid on its own child."
    }

    func figures(_ bench: Bench) -> [Figure] {
        [
            Figure(name: "suspend", title: "suspend one app, asked to confirmed", unit: "ms"),
            Figure(name: "resume", title: "resume one app, asked to confirmed", unit: "ms"),
        ]
    }

    func measure(_ run: Run) throws {
        try run.interleave("suspensions", rounds: rounds(run.bench)) { peer in
            try run.launched(peer, apps(run.bench)) { session in
                if let floor = session as? FloorSession {
                    let lines = try floor.measure("suspend", rounds: times(run.bench).most)
                    run.record("suspend", peer, values: lines.compactMap { $0.first }.map { $0 / 1e6 })
                    run.record("resume", peer, values: lines.compactMap { $0.last }.map { $0 / 1e6 })
                    return
                }
                pause(0.5)
                for suspender in session.suspenders {
                    try run.attempt(peer, "by \(suspender.way)") { try measure(run, peer, session, suspender) }
                }
            }
        }
    }

    private func measure(_ run: Run, _ peer: any Peer, _ session: Session, _ suspender: Suspender) throws {
        let end = now() + times(run.bench).seconds
        var suspended: [Double] = []
        var resumed: [Double] = []
        for round in 0..<times(run.bench).most where now() < end || round < 3 {
            try Interruption.check()
            let slot = round % session.load.count
            let watch = try StateWatch(session.worker(slot))
            let isSuspended = { suspender.isSuspended.map { $0(slot) } ?? (watch.state == "T") }
            func time(_ goal: Bool, _ act: () throws -> Void) throws -> Double {
                let began = now()
                try act()
                guard try waitUntil(10, step: 0, { isSuspended() == goal }) else {
                    throw Trouble("/proc does not say that w\(slot) is \(goal ? "stopped" : "continued") after 10 s")
                }
                return (now() - began) * 1_000
            }
            suspended.append(try time(true) { try suspender.suspend(slot) })
            pause(0.001)
            resumed.append(try time(false) { try suspender.resume(slot) })
            pause(0.001)
        }
        run.record("suspend", peer, way: suspender.way, values: suspended)
        run.record("resume", peer, way: suspender.way, values: resumed)
    }
}

/// Polls the state of one process without reopening its file.
final class StateWatch {
    private let file: Int32

    init(_ pid: pid_t) throws {
        file = open("/proc/\(pid)/stat", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw Trouble("process \(pid) has gone") }
    }

    deinit { close(file) }

    /// The letter of its state; nil once the process is gone.
    var state: Character? {
        withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { bytes in
            let count = pread(file, bytes.baseAddress, 255, 0)
            guard count > 0, let name = bytes[..<count].lastIndex(of: UInt8(ascii: ")")), name + 2 < count else {
                return nil
            }
            return Character(UnicodeScalar(bytes[name + 2]))
        }
    }
}
