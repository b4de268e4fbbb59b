// SPDX-License-Identifier: Apache-2.0

import Policies
import Testing
import TorporPolicyABI

/// Views and events that no supervisor would show, the same for each seed.
@Suite("Absurd views")
struct AbsurdTests {
    private static let policies: [(String, KeyValuePairs<String, PolicyOption.Value>)] = [
        ("MobilePolicy", ["max_active": 2, "keep_active": "app1*", "keep_running": "tag:t"]),
        (
            "ServerPolicy",
            [
                "protect": "tag:t", "protect_between": "08:00-18:00", "apps.0.apps": "app2*", "apps.0.idle_after": "1s",
                "timezone": "Europe/Berlin",
            ]
        ),
        ("JetsamPolicy", ["last_resort": true, "bands.0.apps": "tag:t", "bands.0.order": "size"]),
        (
            "SchedulePolicy",
            [
                "rules.0.apps": "*", "rules.0.from": "08:00", "rules.0.to": "18:00", "rules.0.state": "active",
                "rules.0.otherwise": "suspended",
            ]
        ),
    ]

    @Test("nothing that a view says ends a policy, and the same is answered to the same", arguments: policies.indices)
    func absurd(index: Int) throws {
        let (product, options) = Self.policies[index]
        var advised = 0
        for seed in 1...40 as ClosedRange<UInt64> {
            let answers = try Self.answers(product, options, seed)
            #expect(try answers == Self.answers(product, options, seed), "\(product), seed \(seed)")
            advised += answers.reduce(0) { $0 + $1.advice.count }
        }
        // Otherwise nothing of the policy was run.
        #expect(advised > 100)
    }

    /// What a policy says to questions that follow from the seed.
    private static func answers(
        _ product: String,
        _ options: KeyValuePairs<String, PolicyOption.Value>,
        _ seed: UInt64
    ) throws -> [PolicyAnswer] {
        var dice = Dice(state: seed)
        let bench = try PolicyBench(product, options: options)
        for number in 0..<20 { bench.add("app\(number)", .active, tags: number % 3 == 0 ? ["t"] : []) }
        bench.view.remove(7)
        var answers: [PolicyAnswer] = []
        for _ in 0..<25 {
            for place in 0..<20 where bench.view.isPresent(place) && dice.one(in: 2) {
                change(&bench.view[place], &dice)
            }
            if dice.one(in: 2) {
                bench.view.system.now = dice.time(bench.now)
                bench.view.system.realtime = dice.time(bench.view.system.realtime)
                bench.view.system.processors = dice.number()
            }
            let events = (0..<Int(dice.next() % 6 + 1)).map { _ in
                torpor_policy_event(
                    size: UInt32(MemoryLayout<torpor_policy_event>.size),
                    kind: UInt32(dice.next() % 12),
                    app: dice.one(in: 8) ? dice.number() : UInt32(dice.next() % 22),
                    from: dice.small(),
                    to: dice.small(),
                    reason: dice.small(),
                    at: dice.time(bench.now),
                    delay: dice.time(0)
                )
            }
            answers.append(try bench.questions(events))
        }
        return answers
    }

    /// Writes what may not be there into an app: any value in any field but those that say how long it is.
    private static func change(_ app: inout torpor_policy_app, _ dice: inout Dice) {
        app.flags = dice.one(in: 2) ? 1 : UInt32(truncatingIfNeeded: dice.next()) | 1
        if dice.one(in: 10) { app.name = dice.number() }
        if dice.one(in: 10) { (app.tags, app.tag_count) = (dice.number(), dice.number()) }
        app.state = dice.small()
        app.goal = dice.one(in: 2) ? app.state : dice.small()
        app.edge = dice.one(in: 2) ? 0 : dice.small()
        if dice.one(in: 4) { app.incarnation = dice.small() }
        app.priority = Int32(truncatingIfNeeded: dice.next())
        app.last_reason = dice.number()
        app.state_since = (
            dice.time(app.state_since.0), dice.time(app.state_since.1), dice.time(app.state_since.2),
            dice.time(app.state_since.3), dice.time(app.state_since.4)
        )
        app.last_use = dice.time(app.last_use)
        app.launched_at = dice.time(app.launched_at)
        app.grant_ends = dice.time(app.grant_ends)
        (app.tasks, app.holds) = dice.one(in: 4) ? (dice.number(), dice.number()) : (0, 0)
        app.measured_at = dice.time(app.measured_at)
        app.memory = dice.one(in: 4) ? dice.next() : dice.next() >> 40
        app.cpu_time = dice.one(in: 4) ? dice.next() : app.cpu_time &+ dice.next() >> 40
        app.connections = dice.one(in: 2) ? 0 : dice.number()
        app.last_traffic = dice.time(app.last_traffic)
        app.last_heartbeat = dice.time(app.last_heartbeat)
    }
}

/// Numbers that look random (SplitMix64), many of them at the ends of what can be.
private struct Dice {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    mutating func one(in count: UInt64) -> Bool { next() % count == 0 }

    mutating func number() -> UInt32 { one(in: 3) ? .max : UInt32(truncatingIfNeeded: next()) }

    /// A state, or something like one.
    mutating func small() -> UInt32 { one(in: 10) ? number() : UInt32(next() % 7) }

    /// One near the last, or one that cannot be.
    mutating func time(_ last: Int64) -> Int64 {
        switch next() % 8 {
        case 0: .min
        case 1: .max
        case 2: Int64(bitPattern: next())
        case 3: 0
        default: last &+ Int64(next() % 2_000_000_000)
        }
    }
}
