// SPDX-License-Identifier: Apache-2.0

import Foundation
import TorporAPI

/// The cost of policies: a consultation, what a policy adds to an event, memory, and the time without a policy after
/// the loss of its process. No other peer has policies.
struct Policies: Measurement {
    let name = "policies"

    private func apps(_ bench: Bench) -> Int { bench.quick ? 100 : 1_000 }
    private func rounds(_ bench: Bench) -> Int { bench.quick ? 1 : 2 }
    /// How often one supervisor is measured with each kind of policy, and the suspensions each time.
    private func turns(_ bench: Bench) -> (count: Int, suspensions: Int) { bench.quick ? (1, 50) : (3, 200) }
    private func losses(_ bench: Bench) -> Int { bench.quick ? 2 : 5 }

    func conditions(_ bench: Bench) -> String {
        "\(grouped(apps(bench))) apps, one of which is suspended and resumed on a connection that stays open, one at a "
            + "time; the policy, in C, is asked about each state that it comes to and gives one piece of advice with a "
            + "reason. A question is what torpord itself counts: from before it is asked until its answer is read. "
            + "Suspended: as in the measurement suspend; without a policy, with one in its own process and with one in "
            + "torpord, in turns and with the same supervisor. Lost: from SIGKILL of the policy's process, after which "
            + "torpord waits for 100 ms, until another process has answered. Memory: PSS; of torpord, what it has "
            + "more than before."
    }

    func figures(_ bench: Bench) -> [Figure] {
        [
            Figure(name: "question", title: "a policy is asked", unit: "µs"),
            Figure(name: "question-99", title: "a policy is asked, 99th percentile", unit: "µs"),
            Figure(name: "policy-suspend", title: "suspend one app, asked to confirmed", unit: "ms"),
            Figure(name: "policy-resume", title: "resume one app, asked to confirmed", unit: "ms"),
            Figure(name: "policy-memory", title: "memory for a policy", unit: "MiB"),
            Figure(name: "policy-lost", title: "a policy's process is lost, until it is asked again", unit: "ms"),
        ]
    }

    /// Where the policy runs.
    private enum Place: String, CaseIterable {
        case none = "no policy"
        case process = "own process"
        case torpord = "in torpord"
    }

    func measure(_ run: Run) throws {
        let bench = run.bench
        let library = bench.disk + "/libpolicy.so"
        _ = try Child.output([
            "cc", "-O2", "-shared", "-fPIC", "-I", bench.root + "/Sources/TorporPolicyABI/include", "-o", library,
            bench.root + "/Benchmarks/Programs/policy.c",
        ])
        try run.interleave("questions", rounds: rounds(bench), only: { $0.name == "torpor" }) { peer in
            guard access(bench.binaries + "/torpor-policy-host", X_OK) == 0 else {
                throw Trouble("\(bench.binaries)/torpor-policy-host is not there: make release")
            }
            try run.session(peer, Workload(apps(bench))) { session in
                guard let session = session as? TorporSession else { return }
                try session.launch()
                pause(1)
                var memory = 0.0
                for turn in 0..<turns(bench).count {
                    for place in Place.allCases {
                        try measure(run, peer, session, place, library)
                        if turn == 0 { try weigh(run, peer, session, place, &memory) }
                    }
                }
                try lose(run, peer, session, library)
                try run.attempt(peer, "Mobile") { try mobile(run, peer, session) }
            }
        }
    }

    private func measure(
        _ run: Run,
        _ peer: any Peer,
        _ session: TorporSession,
        _ place: Place,
        _ library: String
    ) throws {
        try session.apply(policy: place == .none ? nil : (library, place == .process))
        // Warm up each kind the same way: memory released at rest is used again.
        try suspensions(run, peer, session, place, 20, isRecorded: false)
        try suspensions(run, peer, session, place, turns(run.bench).suspensions)
        if place != .none {
            let status = try session.policy()
            guard status.questions >= Int64(turns(run.bench).suspensions), status.failures == 0,
                let median = status.medianMicroseconds, let slow = status.p99Microseconds
            else {
                throw Trouble("the policy was asked \(status.questions) questions and failed \(status.failures) times")
            }
            run.record("question", peer, way: place.rawValue, median)
            run.record("question-99", peer, way: place.rawValue, slow)
        }
    }

    /// Measures a policy's memory; `before` is that of torpord and its keeper without one.
    private func weigh(
        _ run: Run,
        _ peer: any Peer,
        _ session: TorporSession,
        _ place: Place,
        _ before: inout Double
    ) throws {
        let own = try Processes.memory(session.ownProcesses())
        if place == .none {
            before = own
        } else {
            run.record("policy-memory", peer, way: "torpord, policy \(place.rawValue)", own - before)
        }
        if place == .process, let pid = try session.policy().pid {
            run.record("policy-memory", peer, way: "its process, in C", try Processes.memory([pid]))
        }
    }

    private func suspensions(
        _ run: Run,
        _ peer: any Peer,
        _ session: TorporSession,
        _ place: Place,
        _ count: Int,
        isRecorded: Bool = true
    ) throws {
        guard let suspender = session.suspenders.first(where: { $0.way == "connection" }) else { return }
        var suspended: [Double] = []
        var resumed: [Double] = []
        for round in 0..<count {
            try Interruption.check()
            let slot = round % session.load.count
            let watch = try StateWatch(session.worker(slot))
            func time(_ isStopped: Bool, _ act: () throws -> Void) throws -> Double {
                let began = now()
                try act()
                guard try waitUntil(10, step: 0, { (watch.state == "T") == isStopped }) else {
                    throw Trouble(
                        "/proc does not say that w\(slot) is \(isStopped ? "stopped" : "continued") after 10 s"
                    )
                }
                return (now() - began) * 1_000
            }
            suspended.append(try time(true) { try suspender.suspend(slot) })
            pause(0.001)
            resumed.append(try time(false) { try suspender.resume(slot) })
            pause(0.001)
        }
        guard isRecorded else { return }
        run.record("policy-suspend", peer, way: place.rawValue, values: suspended)
        run.record("policy-resume", peer, way: place.rawValue, values: resumed)
    }

    /// Kills the policy's process repeatedly.
    private func lose(_ run: Run, _ peer: any Peer, _ session: TorporSession, _ library: String) throws {
        try session.apply(policy: (library, true))
        for _ in 0..<losses(run.bench) {
            // Reset the failure count: else the delay before a restart would grow.
            _ = try session.call(.reloadPolicy(name: "bench"))
            let before = try session.policy()
            guard let pid = before.pid else { throw Trouble("the policy has no process: \(before.lastFailure ?? "?")") }
            let killed = now()
            kill(pid, SIGKILL)
            // torpord consults a policy as soon as it is loaded.
            let isBack = try waitUntil(10, step: 0.000_2) {
                let status = try session.policy()
                return status.state == "ready" && status.pid != pid && status.questions > before.questions
            }
            guard isBack else { throw Trouble("10 s after its end the policy has no other process") }
            run.record("policy-lost", peer, (now() - killed) * 1_000)
        }
    }

    /// A policy in Swift, which brings its runtime.
    private func mobile(_ run: Run, _ peer: any Peer, _ session: TorporSession) throws {
        let library = run.bench.binaries + "/libMobilePolicy.so"
        guard access(library, R_OK) == 0 else {
            throw Trouble("\(library) is not there: swift build -c release --product MobilePolicy")
        }
        // The limit is high enough that the policy sends no app to the background.
        try session.apply(policy: (library, true), options: "max_active = \(session.load.count)")
        try suspensions(run, peer, session, .process, 20, isRecorded: false)
        guard let pid = try session.policy().pid else { throw Trouble("Mobile has no process") }
        run.record("policy-memory", peer, way: "its process, Mobile", try Processes.memory([pid]))
    }
}

extension TorporSession {
    /// Configures a policy named bench, or none, and waits until it is loaded.
    func apply(policy: (library: String, isIsolated: Bool)?, options: String = "says = \"again\"") throws {
        var text = configuration
        if let policy {
            text = text.replacing("[supervisor]\n", with: "[supervisor]\npolicies = [\"bench\"]\n", maxReplacements: 1)
            text += """
                [policies.bench]
                path = "\(policy.library)"
                isolation = "\(policy.isIsolated ? "process" : "none")"
                deadline = "100ms"
                options = { \(options) }

                """
        }
        try text.write(toFile: folder + "/torpor.toml", atomically: true, encoding: .utf8)
        _ = try call(.apply(ApplyRequest()))
        guard policy != nil else { return }
        guard try waitUntil(10, step: 0.005, { try self.policy().state == "ready" }) else {
            throw Trouble("the policy is not loaded: \(try self.policy().lastFailure ?? "it is still loading")")
        }
    }

    /// The status of that policy.
    func policy() throws -> PolicyStatus {
        guard let json = try call(.policies)["policies"]?.arrayValue?.first else { throw Trouble("there is no policy") }
        return try PolicyStatus(json: json)
    }
}
