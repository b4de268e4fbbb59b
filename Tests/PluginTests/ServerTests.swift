// SPDX-License-Identifier: Apache-2.0

import Policies
import Testing
import TorporPolicyABI

@Suite("Server")
struct ServerTests {
    /// A bench whose apps are measured whenever the policy is asked.
    private func bench(_ options: KeyValuePairs<String, PolicyOption.Value> = [:]) throws -> PolicyBench {
        try PolicyBench("ServerPolicy", options: options)
    }

    /// An app with no connection and little to do.
    private func add(_ name: String, _ state: PolicyBench.State, to bench: PolicyBench, tags: [String] = []) {
        bench.add(name, state, tags: tags)
        bench.change(name) {
            $0.connections = 0
            $0.measured_at = bench.now
            $0.cpu_time = 1_000_000
        }
    }

    private func pass(_ duration: Duration, on bench: PolicyBench) {
        bench.pass(duration)
        for place in 0..<bench.view.count where bench.view[place].state != 0 {
            bench.view[place].measured_at = bench.now
        }
    }

    @Test(
        "an app that nobody uses goes to the background when idle_after is over, and is suspended after its time there"
    )
    func idle() throws {
        let bench = try bench()
        add("web", .active, to: bench)
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["ask again in 600 s"])
        pass(.seconds(600), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background"])
        #expect(
            bench.reasons == ["not used for 10 min: no connection, no data at all, hardly any processor time"]
        )
        #expect(try bench.comes("web", to: .background) == [])
        pass(.seconds(5), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "web") == ["web → suspended"])
        #expect(bench.reasons == ["its time in the background is used up, and it was not used there"])
        #expect(try bench.comes("web", to: .suspended) == [])
    }

    @Test("an app that has just become active is not idle, even if another event is told first")
    func activeBeforeTold() throws {
        let bench = try bench()
        add("web", .active, to: bench)
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        pass(.seconds(600), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background"])
        #expect(try bench.comes("web", to: .background) == [])
        pass(.seconds(5), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "web") == ["web → suspended"])
        #expect(try bench.comes("web", to: .suspended) == [])
        pass(.seconds(700), on: bench)
        // The view is ahead of the events.
        bench.move("web", to: .active)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["ask again in 600 s"])
    }

    @Test("nothing is asked for while there is nothing to wait for")
    func quiet() throws {
        let bench = try bench(["protect.0": "db"])
        add("asleep", .suspended, to: bench)
        add("gone", .notRunning, to: bench)
        add("db", .active, to: bench)
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == [])
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == [])
    }

    @Test("data that came puts the time off by as much, to the microsecond, and no question is asked twice")
    func traffic() throws {
        let bench = try bench()
        add("web", .active, to: bench)
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        let start = bench.now
        bench.change("web") { $0.last_traffic = start + 400_000_000 }
        pass(.seconds(600), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["ask again in 400 s"])
        // Another app that comes later is due later: the supervisor asks anyway before that.
        add("late", .active, to: bench)
        #expect(try bench.ask(TORPOR_EVENT_STATE, "late", from: 1, to: 2) == [])
        pass(.seconds(400), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background", "ask again in 200 s"])
        #expect(bench.reasons[0].contains("last data 10 min ago"))
    }

    @Test("an open connection is use, unless only data counts, or nothing of it")
    func connections() throws {
        for (option, isUsed) in [("open", true), ("traffic", false), ("ignore", false)] {
            let bench = try bench(["connections": .string(option)])
            add("web", .active, to: bench)
            bench.change("web") { $0.connections = 3 }
            _ = try bench.ask(TORPOR_EVENT_STARTED)
            pass(.seconds(600), on: bench)
            #expect(try bench.ask(TORPOR_EVENT_TIMER) == [isUsed ? "ask again in 600 s" : "web → background"])
        }
        let bench = try bench(["connections": "ignore"])
        add("web", .active, to: bench)
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        pass(.seconds(600), on: bench)
        bench.change("web") { $0.last_traffic = bench.now }
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background"])
        #expect(bench.reasons == ["not used for 10 min: hardly any processor time"])
    }

    @Test("connections that cannot be told may be open; what was never measured may be busy")
    func unknown() throws {
        let bench = try bench()
        add("web", .active, to: bench)
        bench.change("web") { $0.connections = .max }
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        pass(.seconds(600), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["ask again in 600 s"])
    }

    @Test("measurements that are too old are waited for, not for ever, and what never was measured may be in use")
    func outdated() throws {
        let bench = try bench()
        add("web", .active, to: bench)
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        bench.pass(.seconds(600))
        bench.change("web") { $0.connections = 5 }
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["ask again in 1 s"])
        pass(.seconds(1), on: bench)
        bench.change("web") { $0.connections = 0 }
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background"])

        try bench.comes("web", to: .background)
        bench.pass(.seconds(31))
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "web") == ["ask again in 1 s"])
        pass(.seconds(1), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → suspended"])

        bench.move("web", to: .inactive)
        _ = try bench.comes("web", to: .active)
        bench.change("web") { $0.measured_at = .min }
        bench.pass(.seconds(600))
        for wait in ["1 s", "1 s", "1 s", "600 s"] {
            #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["ask again in \(wait)"])
            bench.pass(.seconds(1))
        }
    }

    @Test("what was measured before an app came to the background says nothing of its use there")
    func measuredBefore() throws {
        let bench = try bench()
        add("web", .active, to: bench)
        bench.pass(.seconds(5))
        try bench.comes("web", to: .background)
        bench.pass(.seconds(5))
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "web") == ["ask again in 1 s"])
        bench.pass(.seconds(1))
        for answer in ["ask again in 1 s", "ask again in 1 s", "web is granted 600 s"] {
            #expect(try bench.ask(TORPOR_EVENT_TIMER) == [answer])
            bench.pass(.seconds(1))
        }
        #expect(bench.reasons == ["it may be in use: it was not measured since it came to the background"])
    }

    @Test(
        "an app that is not used is suspended, although its time in the background is over before it is measured there"
    )
    func briefBackground() throws {
        let bench = try bench(["idle_after": "1s"])
        add("web", .active, to: bench)
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        pass(.seconds(1), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background"])
        let measured = bench.now
        bench.pass(.milliseconds(10))
        try bench.comes("web", to: .background)
        // The supervisor measures once a second.
        var answer = try bench.ask(TORPOR_EVENT_TIME_USED, "web")
        while bench.now < measured + 1_000_000 {
            #expect(answer == ["ask again in 0.25 s"])
            bench.pass(.milliseconds(250))
            if bench.now >= measured + 1_000_000 { bench.change("web") { $0.measured_at = bench.now } }
            answer = try bench.ask(TORPOR_EVENT_TIMER)
        }
        #expect(answer == ["web → suspended"])
    }

    @Test("an app that is never measured in the background is let be there, and not brought to the foreground")
    func neverMeasured() throws {
        let bench = try bench(["idle_after": "1s"])
        add("web", .active, to: bench)
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        pass(.seconds(1), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background"])
        bench.pass(.milliseconds(10))
        try bench.comes("web", to: .background)
        var answers = try bench.ask(TORPOR_EVENT_TIME_USED, "web")
        for _ in 0..<20 where answers.last == "ask again in 0.25 s" {
            bench.pass(.milliseconds(250))
            answers += try bench.ask(TORPOR_EVENT_TIMER)
        }
        #expect(answers.last == "web is granted 1 s")
    }

    @Test("an app that takes more processor time than an idle one may is in use")
    func processor() throws {
        let bench = try bench(["idle_cpu": "1%"])
        add("busy", .active, to: bench)
        add("calm", .active, to: bench)
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        // 1% of 600 s are 6 s.
        bench.change("busy") { $0.cpu_time += 6_000_001 }
        bench.change("calm") { $0.cpu_time += 6_000_000 }
        pass(.seconds(600), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["calm → background", "ask again in 600 s"])
        bench.move("calm", to: .suspended)
        pass(.seconds(600), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["busy → background"])
    }

    @Test("a heartbeat of an app that owes none is use; those that are owed are not")
    func heartbeats() throws {
        let bench = try bench()
        add("beating", .active, to: bench)
        add("watched", .active, to: bench)
        bench.change("watched") { $0.flags |= TORPOR_APP_WATCHED_BIT }
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        pass(.seconds(600), on: bench)
        for name in ["beating", "watched"] { bench.change(name) { $0.last_heartbeat = bench.now - 60_000_000 } }
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["watched → background", "ask again in 540 s"])
    }

    @Test("what is protected by tag, runs once, is needed, debugged, or would end in the background is left alone")
    func leftAlone() throws {
        let bench = try bench(["protect.0": "tag:always", "protect.1": "db-*"])
        add("tagged", .active, to: bench, tags: ["x", "always"])
        add("db-1", .active, to: bench)
        let flags = [
            TORPOR_APP_ONESHOT_BIT, TORPOR_APP_REQUIRED_BIT, TORPOR_APP_TRACED_BIT, TORPOR_APP_EXITS_ON_SUSPEND_BIT,
        ]
        for flag in flags {
            add("app\(flag)", .active, to: bench)
            bench.change("app\(flag)") { $0.flags |= flag }
        }
        // Only the debugger is looked for again: nobody tells when it goes.
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["ask again in 600 s"])
        pass(.seconds(600), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["ask again in 600 s"])
    }

    @Test("an app that no event can wake is left running, unless all are to be suspended")
    func neverWoken() throws {
        for (options, isSuspended) in [
            ([:], false), (["suspend": "wakeable"], false), (["suspend": true], true),
        ] as [(KeyValuePairs<String, PolicyOption.Value>, Bool)] {
            let bench = try bench(options)
            add("worker", .background, to: bench)
            bench.change("worker") { $0.flags |= 1 << 11 }
            pass(.seconds(5), on: bench)
            let expected = isSuspended ? "worker → suspended" : "ask again in 600 s"
            #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "worker") == [expected])
        }
    }

    @Test("one that is used again in the background comes to the foreground though it would not be suspended")
    func neverWokenUsed() throws {
        let bench = try bench()
        add("worker", .active, to: bench)
        bench.change("worker") { $0.flags |= 1 << 11 }
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        pass(.seconds(600), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["worker → background"])
        #expect(try bench.comes("worker", to: .background) == [])
        pass(.seconds(5), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "worker") == ["ask again in 600 s"])
        pass(.seconds(600), on: bench)
        bench.change("worker") { $0.connections = 1 }
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["worker → active"])
    }

    @Test("an app that others needed is looked at when they are gone")
    func needed() throws {
        let bench = try bench()
        add("db", .active, to: bench)
        add("web", .background, to: bench)
        bench.change("db") { $0.flags |= TORPOR_APP_REQUIRED_BIT }
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == [])
        bench.change("db") { $0.flags &= ~TORPOR_APP_REQUIRED_BIT }
        #expect(try bench.comes("web", to: .suspended) == ["ask again in 600 s"])
    }

    @Test("between the hours that are protected nothing goes, and it goes at once when they are over")
    func windows() throws {
        let bench = try bench(["protect_between.0": "08:00-18:00", "timezone": "UTC"])
        bench.view.system.realtime = Self.day + 17 * Self.hour
        add("web", .active, to: bench)
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["ask again in 3600 s"])
        pass(.seconds(3600), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background"])
        // In the background too.
        bench.move("web", to: .background)
        bench.view.system.realtime = Self.day + 9 * Self.hour
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "web") == ["ask again in 32400 s"])
        pass(.seconds(32_400), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → suspended"])
    }

    @Test("windows go over midnight, follow one another, and go by the clocks of their zone")
    func windowsOverMidnight() throws {
        let bench = try bench([
            "protect_between.0": "22:00-01:00", "protect_between.1": "01:00-06:30", "timezone": "Etc/GMT-2",
        ])
        // 21:30 in UTC is 23:30 there.
        bench.view.system.realtime = Self.day + 21 * Self.hour + Self.hour / 2
        add("web", .active, to: bench)
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["ask again in 25200 s"])
    }

    /// Midnight in UTC, microseconds since 1970.
    private static let day: Int64 = 19_700 * 86_400_000_000
    private static let hour: Int64 = 3_600_000_000

    @Test("some apps can have rules of their own")
    func rules() throws {
        let bench = try bench([
            "idle_after": "10min", "protect_between.0": "00:00-23:59", "timezone": "UTC", "apps.0.apps.0": "build-*",
            "apps.0.idle_after": "1min", "apps.0.protect_between": "03:00-03:01", "apps.0.idle_cpu": "50%",
            "apps.1.apps.0": "build-1", "apps.1.idle_after": "1h",
        ])
        bench.view.system.realtime = Self.day + Self.hour
        add("build-1", .active, to: bench)
        add("web", .active, to: bench)
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["ask again in 60 s"])
        bench.change("build-1") { $0.cpu_time += 30_000_000 }
        pass(.seconds(60), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["build-1 → background", "ask again in 82680 s"])
        #expect(bench.reasons[0].hasPrefix("not used for 1 min: "))
    }

    @Test("what was sent to the background and is used there comes back; what others sent there is given time")
    func usedInBackground() throws {
        let bench = try bench()
        add("web", .active, to: bench)
        add("other", .active, to: bench)
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        pass(.seconds(600), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background", "other → background"])
        // Somebody brings the other one back and away again.
        for state in [PolicyBench.State.background, .active, .background] { try bench.comes("other", to: state) }
        try bench.comes("web", to: .background)
        pass(.seconds(5), on: bench)
        for name in ["web", "other"] { bench.change(name) { $0.last_traffic = bench.now - 2_000_000 } }
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "web") == ["web → active"])
        #expect(bench.reasons == ["it is in use again: data came 2 s ago"])
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "other") == ["other is granted 600 s"])
        #expect(bench.reasons == ["it is in use: data came 2 s ago"])
        bench.change("other") { $0.connections = 2 }
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "other") == ["other is granted 600 s"])
        #expect(bench.reasons == ["it is in use: 2 connections are open"])
        bench.change("other") {
            $0.connections = 0
            $0.last_traffic = .min
            $0.cpu_time += 60_000_000
        }
        pass(.seconds(1), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "other") == ["other is granted 600 s"])
        #expect(bench.reasons == ["it is in use: it takes processor time"])
        pass(.seconds(1), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "other") == ["other → suspended"])
    }

    @Test(
        "an app that is woken and still in use when its time for the event ends comes back",
        arguments: [true, false]
    )
    func woken(isInUse: Bool) throws {
        let bench = try bench()
        add("web", .active, to: bench)
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        pass(.seconds(600), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background"])
        _ = try bench.comes("web", to: .background)
        _ = try bench.comes("web", to: .suspended)
        pass(.seconds(100), on: bench)
        bench.change("web") { $0.last_traffic = bench.now }
        // It has 5 s, and is looked at 2 s before their end.
        #expect(try bench.comes("web", to: .background) == ["ask again in 3 s"])
        pass(.seconds(3), on: bench)
        bench.change("web") { $0.last_traffic = bench.now - (isInUse ? 500_000 : 2_500_000) }
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == (isInUse ? ["web → active"] : []))
        if isInUse { #expect(bench.reasons == ["it is in use again: data came 500 ms ago"]) }
    }

    @Test("a use in the background is one until it is idle_after ago, and not for ever")
    func usedOnce() throws {
        let bench = try bench(["idle_after": "1min"])
        add("web", .background, to: bench)
        pass(.seconds(30), on: bench)
        bench.change("web") { $0.last_traffic = bench.now - 1_000_000 }
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "web") == ["web is granted 60 s"])
        pass(.seconds(60), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "web") == ["web → suspended"])
    }

    @Test("tasks, holds and suspend = false keep an app running in the background")
    func held() throws {
        let bench = try bench()
        add("web", .background, to: bench)
        bench.change("web") { $0.holds = 1 }
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "web") == [])
        bench.change("web") {
            $0.holds = 0
            $0.tasks = 1
        }
        #expect(try bench.ask(TORPOR_EVENT_TIME_USED, "web") == [])
        let other = try self.bench(["suspend": false])
        add("web", .background, to: other)
        #expect(try other.ask(TORPOR_EVENT_TIME_USED, "web") == [])
    }

    @Test("a person who asks for an app uses it, and a new run of it begins anew")
    func newUse() throws {
        let bench = try bench()
        add("web", .active, to: bench)
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        pass(.seconds(500), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_GOAL, "web", from: 2, to: 2) == [])
        pass(.seconds(100), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["ask again in 500 s"])
        try bench.comes("web", to: .notRunning)
        pass(.seconds(10), on: bench)
        bench.move("web", to: .inactive)
        #expect(try bench.comes("web", to: .active) == [])
        pass(.seconds(490), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["ask again in 110 s"])
    }

    @Test("advice that is not followed is not repeated before idle_after is over again")
    func refused() throws {
        let bench = try bench()
        add("web", .active, to: bench)
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        pass(.seconds(600), on: bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background"])
        #expect(try bench.ask(TORPOR_EVENT_APPS) == ["ask again in 600 s"])
    }

    @Test(
        "options that are wrong are refused with a sentence",
        arguments: [
            (["idle_after": "0s"], "idle_after must be at least 1 s: it is \"0s\""),
            (["idle_after": 600], "idle_after must be a duration such as \"10min\": it is an integer, 600"),
            (
                ["idle_after": "soon"],
                "idle_after must be a duration such as \"500ms\", \"5s\" or \"1h30min\": it is \"soon\""
            ),
            (["idle_cpu": "0%"], "idle_cpu must be from 0.01% to 6400%: it is \"0%\""),
            (["idle_cpu": 2], "idle_cpu must be a share such as \"2%\": it is an integer, 2"),
            (
                ["connections": "none"],
                "connections must be one of \"open\", \"traffic\", \"ignore\": it is \"none\""
            ),
            (
                ["protect_between": "8-18"],
                "protect_between must have windows such as \"08:00-18:00\": it has \"8-18\""
            ),
            (
                ["protect_between": "24:00-01:00"],
                "protect_between must have windows such as \"08:00-18:00\": it has \"24:00-01:00\""
            ),
            (
                ["protect_between.0": "00:00-12:00", "protect_between.1": "11:00-24:00"],
                "protect_between covers the whole day: use protect for apps that are always left alone"
            ),
            (
                ["timezone": "Mars/Olympus"],
                "timezone is \"Mars/Olympus\", which is not a time zone known to this system: "
                    + "write for instance Europe/Berlin or UTC"
            ),
            (
                ["apps.0.idle_after": "1h"],
                "apps.0.apps is missing: it names the apps that the table applies to"
            ),
            (
                ["apps.0.apps": "web", "apps.0.idle_aftr": "1h"],
                "apps.0.idle_aftr is not an option of this policy: did you mean idle_after?"
            ),
        ] as [(KeyValuePairs<String, PolicyOption.Value>, String)]
    )
    func wrongOptions(options: KeyValuePairs<String, PolicyOption.Value>, sentence: String) {
        #expect(PolicyBench.complaint("ServerPolicy", options) == sentence)
    }
}
