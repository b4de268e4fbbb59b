// SPDX-License-Identifier: Apache-2.0

import Policies
import Testing
import TorporPolicyABI

@Suite("Mobile")
struct MobileTests {
    @Test("a new app in front sends the one that was there to the background, and says why")
    func oneInFront() throws {
        let bench = try PolicyBench("MobilePolicy")
        bench.add("maps", .active)
        bench.add("mail")
        bench.pass(.seconds(60))
        #expect(try bench.comes("mail", to: .inactive) == ["maps → background"])
        #expect(bench.reasons == ["1 app may be in the foreground, and mail came after it"])
        bench.move("maps", to: .background)
        #expect(try bench.comes("mail", to: .active) == [])
    }

    @Test("of several, the one that came to the foreground first goes first")
    func leastRecentlyUsed() throws {
        let bench = try PolicyBench("MobilePolicy", options: ["max_active": 3])
        for name in ["a", "b", "c"] {
            bench.pass(.seconds(1))
            bench.add(name, .active)
        }
        bench.add("d")
        // Turned to again, a is no longer the one used least recently.
        bench.pass(.seconds(1))
        #expect(try bench.ask(TORPOR_EVENT_GOAL, "a", from: 2, to: 2) == [])
        bench.pass(.seconds(1))
        #expect(try bench.comes("d", to: .active) == ["b → background"])
    }

    @Test("apps that stay, one-shots, apps on their way out and debugged ones are not sent away")
    func keepsActive() throws {
        let bench = try PolicyBench("MobilePolicy", options: ["keep_active.0": "tag:shell"])
        bench.add("panel", .active, tags: ["shell"])
        bench.add("job", .active)
        bench.change("job") { $0.flags |= TORPOR_APP_ONESHOT_BIT }
        bench.add("leaving", .active)
        bench.change("leaving") { $0.goal = PolicyBench.State.background.rawValue }
        bench.add("dying", .active)
        bench.change("dying") { $0.edge = TORPOR_EDGE_TERMINATING.rawValue }
        bench.add("traced", .active)
        bench.change("traced") { $0.flags |= TORPOR_APP_TRACED_BIT }
        bench.add("new")
        #expect(try bench.comes("new", to: .active) == [])
    }

    @Test("of two that came at once, in one question, the later one stays")
    func atOnce() throws {
        let bench = try PolicyBench("MobilePolicy")
        bench.add("old", .active)
        bench.pass(.seconds(1))
        bench.add("first", .active)
        bench.add("second", .active)
        let events = ["first", "second"].map {
            bench.event(TORPOR_EVENT_STATE, $0, from: PolicyBench.State.inactive.rawValue, to: 2)
        }
        #expect(try bench.ask(events) == ["old → background", "first → background"])
        #expect(bench.reasons == Array(repeating: "1 app may be in the foreground, and second came after it", count: 2))
    }

    @Test("of two that were asked for and came in one question, the one that was asked for later stays")
    func askedAtOnce() throws {
        let bench = try PolicyBench("MobilePolicy")
        // The view is ahead of the events: the later app is in front already when the policy hears of the earlier one.
        bench.add("map")
        bench.add("film")
        var events = [bench.event(TORPOR_EVENT_GOAL, "map", to: 2)]
        bench.move("map", to: .active)
        events.append(bench.event(TORPOR_EVENT_STATE, "map", from: 1, to: 2))
        bench.pass(.milliseconds(20))
        events.append(bench.event(TORPOR_EVENT_GOAL, "film", to: 2))
        bench.move("film", to: .active)
        events.append(bench.event(TORPOR_EVENT_STATE, "film", from: 1, to: 2))
        bench.pass(.milliseconds(20))
        #expect(try bench.ask(events) == ["map → background"])
    }

    @Test("an app that is still on its way was asked for later than one that comes back at that moment")
    func onItsWay() throws {
        let bench = try PolicyBench("MobilePolicy")
        bench.add("film")
        bench.change("film") { ($0.goal, $0.edge) = (2, TORPOR_EDGE_LAUNCHING.rawValue) }
        bench.add("map", .background)
        bench.change("map") { ($0.goal, $0.edge) = (2, TORPOR_EDGE_ENTERING_FOREGROUND.rawValue) }
        let event = bench.event(TORPOR_EVENT_STATE, "map", from: PolicyBench.State.background.rawValue, to: 1)
        #expect(try bench.ask([event]) == ["map → background"])
    }

    @Test("an app that is launched again is new, whenever its last run was in front; one that is interrupted is not")
    func arrivals() throws {
        let bench = try PolicyBench("MobilePolicy")
        bench.add("again", .active)
        bench.move("again", to: .notRunning)
        bench.pass(.seconds(5))
        bench.add("called", .active)
        bench.pass(.seconds(5))
        bench.move("called", to: .inactive)
        bench.change("called") {
            $0.goal = 2
            $0.flags |= TORPOR_APP_INTERRUPTED_BIT
        }
        bench.move("again", to: .inactive)
        #expect(try bench.ask(TORPOR_EVENT_STATE, "again", from: 0, to: 1) == ["called → background"])
    }

    @Test("who is too many when the policy starts is sent away at once")
    func startsWithMany() throws {
        let bench = try PolicyBench("MobilePolicy", options: ["max_active": 2])
        for name in ["a", "b", "c", "d"] {
            bench.add(name, .active)
            bench.pass(.seconds(1))
        }
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["a → background", "b → background"])
        #expect(bench.reasons[0] == "2 apps may be in the foreground, and d came after it")
    }

    @Test("an app whose time is used up is suspended, unless something holds it, needs it or protects it")
    func suspends() throws {
        let bench = try PolicyBench("MobilePolicy", options: ["keep_running.0": "music*"])
        bench.add("maps", .background)
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "maps") == ["maps → suspended"])
        #expect(bench.reasons == ["its time in the background is used up"])
        bench.add("music-player", .background)
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "music-player") == [])
        for (name, change) in Self.obstacles {
            bench.add(name, .background)
            bench.change(name, change)
            #expect(try bench.ask(TORPOR_EVENT_TIME_USED, name) == [], "\(name)")
        }
        // Back in front meanwhile: too late.
        bench.add("quick", .active)
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "quick") == [])
    }

    private static let obstacles: [(String, @Sendable (inout torpor_policy_app) -> Void)] = [
        ("task", { $0.tasks = 1 }),
        ("hold", { $0.holds = 1 }),
        ("required", { $0.flags |= TORPOR_APP_REQUIRED_BIT }),
        ("traced", { $0.flags |= TORPOR_APP_TRACED_BIT }),
        ("moving", { $0.edge = TORPOR_EDGE_ENTERING_FOREGROUND.rawValue }),
    ]

    @Test("an app that others needed is suspended once they are")
    func suspendsLater() throws {
        let bench = try PolicyBench("MobilePolicy")
        bench.add("db", .background)
        bench.add("web", .background)
        bench.change("db") { $0.flags |= TORPOR_APP_REQUIRED_BIT }
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "db") == [])
        bench.change("db") { $0.flags &= ~TORPOR_APP_REQUIRED_BIT }
        #expect(try bench.comes("web", to: .suspended) == ["db → suspended"])
        bench.move("db", to: .suspended)
        #expect(try bench.comes("web", to: .notRunning) == [])
    }

    @Test("with suspend = false nothing is suspended")
    func doesNotSuspend() throws {
        let bench = try PolicyBench("MobilePolicy", options: ["suspend": false])
        bench.add("maps", .background)
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "maps") == [])
    }

    @Test("what was overdue when the policy starts is suspended")
    func startsOverdue() throws {
        let bench = try PolicyBench("MobilePolicy")
        bench.add("maps", .background)
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == [])
        bench.pass(.seconds(6))
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["maps → suspended"])
    }

    @Test(
        "options that are wrong are refused with a sentence",
        arguments: [
            (["max_active": 0], "max_active must be at least 1: it is 0"),
            (["max_active": "two"], "max_active must be a whole number: it is a string, \"two\""),
            (["max_actve": 2], "max_actve is not an option of this policy: did you mean max_active?"),
            (["keep_active": 3], "keep_active must be a list of strings: it is an integer, 3"),
            (["keep_active.0": "tag:"], "keep_active must name apps by name, glob or tag:NAME: it has \"tag:\""),
            (["suspend": "no"], "suspend must be true or false: it is a string, \"no\""),
            (
                ["suspend": false, "keep_running": "music"],
                "keep_running has no effect while suspend = false: remove one of them"
            ),
        ] as [(KeyValuePairs<String, PolicyOption.Value>, String)]
    )
    func wrongOptions(options: KeyValuePairs<String, PolicyOption.Value>, sentence: String) {
        #expect(PolicyBench.complaint("MobilePolicy", options) == sentence)
    }
}

// Macros of C with a shift are not imported.
let TORPOR_APP_ONESHOT_BIT: UInt32 = 1 << 2
let TORPOR_APP_EXITS_ON_SUSPEND_BIT: UInt32 = 1 << 3
let TORPOR_APP_EVICT_NEVER_BIT: UInt32 = 1 << 4
let TORPOR_APP_REQUIRED_BIT: UInt32 = 1 << 6
let TORPOR_APP_WATCHED_BIT: UInt32 = 1 << 8
let TORPOR_APP_TRACED_BIT: UInt32 = 1 << 9
let TORPOR_APP_INTERRUPTED_BIT: UInt32 = 1 << 10
let TORPOR_APP_NEVER_WOKEN_BIT: UInt32 = 1 << 11
let TORPOR_APP_SENT_AWAY_BIT: UInt32 = 1 << 12
let TORPOR_APP_WOKEN_UNTRACED_BIT: UInt32 = 1 << 13
