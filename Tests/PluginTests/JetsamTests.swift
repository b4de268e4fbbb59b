// SPDX-License-Identifier: Apache-2.0

import Policies
import Testing
import TorporPolicyABI

@Suite("Jetsam")
struct JetsamTests {
    /// Apps in every state, three of them suspended.
    private func bench(_ options: KeyValuePairs<String, PolicyOption.Value> = [:]) throws -> PolicyBench {
        let bench = try PolicyBench("JetsamPolicy", options: options)
        for (name, state, megabytes, tags) in Self.apps {
            bench.add(name, .active, tags: tags)
            bench.pass(.seconds(60))
            bench.move(name, to: state)
            bench.change(name) { $0.memory = megabytes << 20 }
        }
        return bench
    }

    private static let apps: [(String, PolicyBench.State, UInt64, [String])] = [
        ("old", .suspended, 10, ["batch"]),
        ("large", .suspended, 300, []),
        ("recent", .suspended, 20, []),
        ("tail", .background, 40, ["batch"]),
        ("between", .inactive, 50, []),
        ("front", .active, 60, []),
        ("gone", .notRunning, 0, []),
    ]

    @Test("suspended apps go first, then those in the background, then inactive ones; never active ones")
    func states() throws {
        let bench = try bench()
        #expect(
            try bench.ask(TORPOR_EVENT_EVICTION) == ["0: old", "1: large", "2: recent", "3: tail", "4: between"]
        )
        #expect(
            bench.reasons == [
                "band suspended: 10 MiB, last used 6 min ago", "band suspended: 300 MiB, last used 5 min ago",
                "band suspended: 20 MiB, last used 4 min ago", "band background: 40 MiB, last used 3 min ago",
                "band inactive: 50 MiB, in the foreground",
            ]
        )
    }

    @Test("by size, the largest of a band goes first")
    func sizes() throws {
        let bench = try bench(["order": "size"])
        #expect(
            try bench.ask(TORPOR_EVENT_EVICTION) == ["0: large", "1: recent", "2: old", "3: tail", "4: between"]
        )
    }

    @Test("a higher priority goes later, within its band")
    func priorities() throws {
        let bench = try bench()
        bench.change("old") { $0.priority = 5 }
        bench.change("recent") { $0.priority = -1 }
        bench.change("tail") { $0.priority = -9 }
        #expect(
            try bench.ask(TORPOR_EVENT_EVICTION) == ["0: recent", "1: large", "2: old", "3: tail", "4: between"]
        )
        #expect(bench.reasons[2] == "band suspended: 10 MiB, priority 5, last used 6 min ago")
    }

    @Test("as a last resort active apps go behind all others")
    func lastResort() throws {
        let bench = try bench(["last_resort": true])
        #expect(try bench.ask(TORPOR_EVENT_EVICTION).last == "5: front")
        #expect(bench.reasons.last == "band active: 60 MiB, in the foreground")
    }

    @Test("apps that are never ended, are needed, protected, debugged or ending are left out")
    func leftOut() throws {
        let bench = try bench(["protect.0": "betw*", "protect.1": "tag:none"])
        bench.change("old") { $0.flags |= TORPOR_APP_EVICT_NEVER_BIT }
        bench.change("large") { $0.flags |= TORPOR_APP_REQUIRED_BIT }
        bench.change("recent") { $0.flags |= TORPOR_APP_TRACED_BIT }
        #expect(try bench.ask(TORPOR_EVENT_EVICTION) == ["0: tail"])
        bench.change("tail") { $0.edge = TORPOR_EDGE_TERMINATING.rawValue }
        #expect(try bench.ask(TORPOR_EVENT_EVICTION) == [])
    }

    @Test("a band that names its apps has them whatever their state, and the band's order counts among them")
    func bands() throws {
        let bench = try bench([
            "bands.0.name": "batch", "bands.0.apps.0": "tag:batch", "bands.0.order": "size", "bands.1.name": "idle",
            "bands.1.states.0": "suspended",
        ])
        #expect(
            try bench.ask(TORPOR_EVENT_EVICTION) == ["0: tail", "1: old", "2: large", "3: recent", "4: between"]
        )
        #expect(bench.reasons[0] == "band batch: 40 MiB, last used 3 min ago")
        #expect(bench.reasons[2] == "band idle: 300 MiB, last used 5 min ago")
    }

    @Test("a band behind that of their state can hold important apps back, by name or by priority")
    func lateBands() throws {
        let bench = try bench([
            "bands.0.states.0": "suspended", "bands.1.states.0": "background", "bands.2.name": "important",
            "bands.2.min_priority": 10,
        ])
        bench.change("old") { $0.priority = 10 }
        #expect(
            try bench.ask(TORPOR_EVENT_EVICTION) == ["0: large", "1: recent", "2: tail", "3: old", "4: between"]
        )
        #expect(bench.reasons[3] == "band important: 10 MiB, priority 10, last used 6 min ago")
    }

    @Test("an active app is behind all others whatever its band is")
    func activeLast() throws {
        let bench = try bench(["last_resort": true, "bands.0.apps.0": "front"])
        #expect(try bench.ask(TORPOR_EVENT_EVICTION).last == "5: front")
        #expect(bench.reasons.last == "band 1: 60 MiB, in the foreground")
    }

    @Test("the same view gets the same order, with a thousand apps and a question about all of them")
    func many() throws {
        let bench = try PolicyBench("JetsamPolicy")
        for number in 0..<1000 {
            bench.add("app\(number)", .suspended)
            bench.change("app\(number)") { $0.memory = UInt64(number % 7) << 20 }
        }
        let order = try bench.ask(TORPOR_EVENT_EVICTION)
        #expect(order.count == 1000)
        #expect(try bench.ask(TORPOR_EVENT_EVICTION) == order)
    }

    @Test(
        "options that are wrong are refused with a sentence",
        arguments: [
            (["order": "sise"], "order must be one of \"age\", \"size\": it is \"sise\"; did you mean \"size\"?"),
            (["bands": "batch"], "bands must be a list of tables: it is a string, \"batch\""),
            (["bands.0": "batch"], "bands.0 must be a table: it is a string, \"batch\""),
            (
                ["bands.0.nme": "x"],
                "bands.0.nme is not an option of this policy: did you mean name?"
            ),
            (
                ["bands.0.name": "x"],
                "bands.0.apps is missing: without apps, states or a priority the band would have all apps"
            ),
            (
                ["bands.0.states.0": "suspended", "bands.1.states.0": "running"],
                "bands.1.states must be one of \"suspended\", \"background\", \"inactive\", \"active\": "
                    + "it is \"running\""
            ),
            (
                ["bands.0.states": "active"],
                "bands.0.states has only active apps, which are not evicted unless last_resort = true"
            ),
            (
                ["bands.0.min_priority": 3, "bands.0.max_priority": 2],
                "bands.0.max_priority must not be less than min_priority"
            ),
        ] as [(KeyValuePairs<String, PolicyOption.Value>, String)]
    )
    func wrongOptions(options: KeyValuePairs<String, PolicyOption.Value>, sentence: String) {
        #expect(PolicyBench.complaint("JetsamPolicy", options) == sentence)
    }
}
