// SPDX-License-Identifier: Apache-2.0

import Glibc
import Policies
import Testing
import TorporPolicyABI

@Suite("Schedule")
struct ScheduleTests {
    /// Seconds since 1970 of a time in UTC.
    private func utc(_ year: Int32, _ month: Int32, _ day: Int32, _ hour: Int32, _ minute: Int32 = 0) -> Int64 {
        var time = tm()
        time.tm_year = year - 1900
        time.tm_mon = month - 1
        time.tm_mday = day
        time.tm_hour = hour
        time.tm_min = minute
        return Int64(timegm(&time))
    }

    /// A policy with one rule, in Berlin, at a time in seconds since 1970.
    private func bench(
        _ from: String,
        _ to: String,
        _ state: String = "active",
        otherwise: String? = nil,
        at time: Int64,
        zone: String = "Europe/Berlin"
    ) throws -> PolicyBench {
        var options: Options = [
            ("rules.0.apps.0", "web"), ("rules.0.from", .string(from)), ("rules.0.to", .string(to)),
            ("rules.0.state", .string(state)), ("timezone", .string(zone)),
        ]
        if let otherwise { options.append(("rules.0.otherwise", .string(otherwise))) }
        return try bench(options, at: time)
    }

    private typealias Options = [(key: String, value: PolicyOption.Value)]

    private func bench(_ options: Options, at time: Int64) throws -> PolicyBench {
        let bench = try PolicyBench(
            library: BuiltProducts.path("libSchedulePolicy.so"),
            options: options.map { PolicyOption(key: $0.key, value: $0.value) }
        )
        bench.view.system.realtime = time * 1_000_000
        return bench
    }

    /// Answers the timer as often as it comes until a moment, and does what the policy advises: each change with its
    /// time in seconds since 1970.
    private func walk(_ bench: PolicyBench, _ first: [String], until end: Int64) throws -> [String] {
        var changes: [String] = []
        var advice = first
        while true {
            for text in advice where text.contains("→") {
                let words = text.split(separator: " ").map(String.init)
                changes.append("\(bench.view.system.realtime / 1_000_000) \(words[2])")
                let states: [String: PolicyBench.State] = [
                    "active": .active, "background": .background, "suspended": .suspended, "notRunning": .notRunning,
                ]
                bench.move(words[0], to: try #require(states[words[2]]))
            }
            let asked = bench.answer.advice.filter { $0.kind == TORPOR_ADVISE_ASK_AGAIN.rawValue }
            try #require(asked.count == 1, "the timer is asked for once each time it came")
            #expect(asked[0].time >= 100_000 && asked[0].time <= 3_600_000_000)
            guard bench.view.system.realtime + asked[0].time <= end * 1_000_000 else { return changes }
            bench.pass(.microseconds(asked[0].time))
            advice = try bench.ask(TORPOR_EVENT_TIMER)
        }
    }

    // MARK: Windows

    @Test("apps go where the window says when it begins, and elsewhere when it ends, with the reason in words")
    func officeHours() throws {
        // A Monday, seven in the morning in Berlin.
        let bench = try bench(
            [
                ("rules.0.apps.0", "web"), ("rules.0.apps.1", "tag:office"), ("rules.0.apps.2", "shop-*"),
                ("rules.0.from", "Mon..Fri 08:00"), ("rules.0.to", "Mon..Fri 18:00"), ("rules.0.state", "active"),
                ("rules.0.otherwise", "background"), ("rules.0.name", "office hours"), ("timezone", "Europe/Berlin"),
            ],
            at: utc(2024, 6, 3, 5)
        )
        bench.add("web", .background)
        bench.add("mail", .active, tags: ["office"])
        bench.add("shop-front")
        bench.add("other", .active)
        #expect(
            try bench.ask(TORPOR_EVENT_STARTED)
                == ["mail → background", "shop-front → background", "ask again in 3600 s"]
        )
        #expect(bench.reasons[0] == "outside office hours until 08:00 (Schedule rule 1)")
        bench.move("mail", to: .background)
        bench.move("shop-front", to: .background)
        bench.pass(.seconds(3_600))
        #expect(
            try bench.ask(TORPOR_EVENT_TIMER)
                == ["web → active", "mail → active", "shop-front → active", "ask again in 3600 s"]
        )
        #expect(bench.reasons[0] == "office hours until 18:00 (Schedule rule 1)")
        for name in ["web", "mail", "shop-front"] { bench.move(name, to: .active) }
        bench.pass(.seconds(36_000))
        #expect(
            try bench.ask(TORPOR_EVENT_TIMER)
                == ["web → background", "mail → background", "shop-front → background", "ask again in 3600 s"]
        )
        #expect(bench.reasons[0] == "outside office hours until Tue 08:00 (Schedule rule 1)")
    }

    @Test("a week with a change of clocks: each change comes at its time to the second")
    func week() throws {
        // Thursday to Tuesday; on Sunday the clocks go back.
        let bench = try bench(
            "Mon..Sat 08:00",
            "Mon..Sat 18:30",
            otherwise: "suspended",
            at: utc(2024, 10, 24, 5, 59)
        )
        bench.add("web", .suspended)
        let changes = try walk(bench, try bench.ask(TORPOR_EVENT_STARTED), until: utc(2024, 10, 29, 0))
        let expected = [
            (utc(2024, 10, 24, 6), "active"), (utc(2024, 10, 24, 16, 30), "suspended"),
            (utc(2024, 10, 25, 6), "active"), (utc(2024, 10, 25, 16, 30), "suspended"),
            (utc(2024, 10, 26, 6), "active"), (utc(2024, 10, 26, 16, 30), "suspended"),
            (utc(2024, 10, 28, 7), "active"), (utc(2024, 10, 28, 17, 30), "suspended"),
        ]
        #expect(changes == expected.map { "\($0) \($1)" })
    }

    @Test("a window that begins in an hour that comes twice begins once, and one in an hour left out does not begin")
    func changesOfClocks() throws {
        let autumn = try bench("02:30", "02:45", otherwise: "background", at: utc(2024, 10, 26, 20))
        autumn.add("web", .background)
        #expect(
            try walk(autumn, try autumn.ask(TORPOR_EVENT_STARTED), until: utc(2024, 10, 27, 12))
                == ["\(utc(2024, 10, 27, 0, 30)) active", "\(utc(2024, 10, 27, 0, 45)) background"]
        )
        let spring = try bench("02:30", "04:00", otherwise: "background", at: utc(2024, 3, 30, 20))
        spring.add("web", .background)
        #expect(
            try walk(spring, try spring.ask(TORPOR_EVENT_STARTED), until: utc(2024, 4, 1, 12))
                == ["\(utc(2024, 4, 1, 0, 30)) active", "\(utc(2024, 4, 1, 2)) background"]
        )
    }

    @Test("windows go over midnight, and end even where they end more often than they begin")
    func overMidnight() throws {
        let friday = utc(2024, 6, 7, 12)
        let nights = try bench("Mon..Fri 22:00", "06:00", "background", otherwise: "not-running", at: friday)
        nights.add("web")
        // Friday night, and then the one from Monday to Tuesday.
        #expect(
            try walk(nights, try nights.ask(TORPOR_EVENT_STARTED), until: utc(2024, 6, 11, 12))
                == [
                    "\(utc(2024, 6, 7, 20)) background", "\(utc(2024, 6, 8, 4)) notRunning",
                    "\(utc(2024, 6, 10, 20)) background", "\(utc(2024, 6, 11, 4)) notRunning",
                ]
        )
        let once = try bench("2024-06-08 10:00", "2024-06-09 10:00", at: utc(2024, 6, 8, 12))
        once.add("web", .background)
        #expect(try once.ask(TORPOR_EVENT_STARTED).first == "web → active")
        #expect(once.reasons[0] == "in its window until Sun 10:00 (Schedule rule 1)")
        once.move("web", to: .active)
        once.pass(.seconds(3 * 86_400))
        #expect(try once.ask(TORPOR_EVENT_TIMER) == ["ask again in 3600 s"])
    }

    @Test("times are by the zone that is configured, or by their own")
    func zones() throws {
        let bench = try bench(
            "08:00",
            "12:00 UTC",
            otherwise: "background",
            at: utc(2024, 1, 10, 0),
            zone: "Asia/Kolkata"
        )
        bench.add("web", .background)
        #expect(
            try walk(bench, try bench.ask(TORPOR_EVENT_STARTED), until: utc(2024, 1, 10, 23))
                == ["\(utc(2024, 1, 10, 2, 30)) active", "\(utc(2024, 1, 10, 12)) background"]
        )
    }

    // MARK: Rules

    @Test("of the rules that name an app, the first that has something to say decides")
    func overlapping() throws {
        let bench = try bench(
            [
                ("rules.0.apps.0", "*"), ("rules.0.from", "12-24"), ("rules.0.to", "12-27"),
                ("rules.0.state", "not-running"), ("rules.0.name", "holidays"),
                ("rules.1.apps.0", "web"), ("rules.1.from", "08:00"), ("rules.1.to", "18:00"),
                ("rules.1.state", "active"), ("rules.1.otherwise", "background"),
                ("rules.2.apps.0", "*"), ("rules.2.from", "00:00"), ("rules.2.to", "00:00"),
                ("rules.2.state", "suspended"), ("timezone", "UTC"),
            ],
            at: utc(2024, 12, 23, 12)
        )
        bench.add("web", .background)
        bench.add("batch", .background)
        #expect(
            try bench.ask(TORPOR_EVENT_STARTED) == ["web → active", "batch → suspended", "ask again in 3600 s"]
        )
        bench.move("web", to: .active)
        bench.move("batch", to: .suspended)
        bench.pass(.seconds(43_200))
        #expect(try bench.ask(TORPOR_EVENT_TIMER).dropLast() == ["web → notRunning", "batch → notRunning"])
        #expect(bench.reasons[0] == "holidays until Fri 00:00 (Schedule rule 1)")
        bench.move("web", to: .notRunning)
        bench.move("batch", to: .notRunning)
        bench.pass(.seconds(3 * 86_400))
        // What is gone is not started to be suspended.
        #expect(try bench.ask(TORPOR_EVENT_TIMER).dropLast() == ["web → background"])
        #expect(bench.reasons[0] == "outside its window until 08:00 (Schedule rule 2)")
    }

    @Test("without a word for the time outside its window, a rule leaves apps where they are then")
    func silentOutside() throws {
        let bench = try bench("08:00", "18:00", at: utc(2024, 6, 3, 15, 59))
        bench.add("web", .background)
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["web → active", "ask again in 60 s"])
        bench.move("web", to: .active)
        bench.pass(.seconds(60))
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["ask again in 3600 s"])
    }

    // MARK: Others

    @Test("where a person sends an app, it stays until the window ends")
    func personsGoal() throws {
        let bench = try bench("08:00", "18:00", otherwise: "not-running", at: utc(2024, 6, 3, 7))
        bench.add("web", .active)
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["ask again in 3600 s"])
        bench.pass(.seconds(600))
        #expect(try bench.ask(TORPOR_EVENT_GOAL, "web", from: 2, to: 3) == [])
        #expect(try bench.comes("web", to: .background) == [])
        for _ in 0..<8 {
            bench.pass(.seconds(3_600))
            #expect(try bench.ask(TORPOR_EVENT_TIMER).filter { $0.contains("→") } == [])
        }
        bench.pass(.seconds(3_000))
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → notRunning", "ask again in 3600 s"])
        #expect(try bench.comes("web", to: .notRunning) == [])
        // Started by a person in the evening, it stays until the window begins again.
        bench.pass(.seconds(3_600))
        _ = try bench.ask(TORPOR_EVENT_GOAL, "web", from: 0, to: 3)
        #expect(try bench.comes("web", to: .background).filter { $0.contains("→") } == [])
        #expect(try walk(bench, try bench.ask(TORPOR_EVENT_TIMER), until: utc(2024, 6, 4, 7)).count == 1)
        #expect(bench.state("web") == .active)
    }

    @Test("what should be gone and is launched by no person goes again")
    func launchedMeanwhile() throws {
        let bench = try bench("08:00", "18:00", otherwise: "not-running", at: utc(2024, 6, 3, 20))
        bench.add("web")
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["ask again in 3600 s"])
        #expect(try bench.comes("web", to: .background) == ["web → notRunning"])
        #expect(bench.reasons == ["outside its window until Tue 08:00 (Schedule rule 1)"])
    }

    @Test("what others require goes when they need it no more")
    func required() throws {
        let bench = try bench("08:00", "18:00", otherwise: "not-running", at: utc(2024, 6, 3, 15))
        bench.add("web", .active)
        bench.add("shop", .active)
        bench.change("web") { $0.flags |= 1 << 6 }
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["ask again in 3600 s"])
        bench.pass(.seconds(3_600))
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["ask again in 3600 s"])
        bench.change("web") { $0.flags &= ~(1 << 6) }
        #expect(try bench.comes("shop", to: .notRunning) == ["web → notRunning"])
        // Said once.
        #expect(try bench.comes("shop", to: .background) == [])
        #expect(try bench.comes("shop", to: .suspended) == [])
    }

    @Test("what only a person starts, and what was given up, is not started")
    func personsOnly() throws {
        for flag in [UInt32(1 << 7), 1 << 1] {
            let bench = try bench("08:00", "18:00", at: utc(2024, 6, 3, 8))
            bench.add("web")
            bench.change("web") { $0.flags |= flag }
            #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["ask again in 3600 s"])
        }
    }

    @Test("a policy that starts anew leaves what was moved in the window, and nothing else")
    func startsAnew() throws {
        // The window began an hour ago, and the machine runs for longer.
        let bench = try bench(
            [
                ("rules.0.apps.0", "*"), ("rules.0.from", "08:00"), ("rules.0.to", "18:00"),
                ("rules.0.state", "active"), ("timezone", "UTC"),
            ],
            at: utc(2024, 6, 3, 7)
        )
        bench.add("early", .active)
        bench.add("moved", .active)
        bench.add("done", .active)
        bench.add("ended", .active)
        bench.add("fresh")
        bench.pass(.seconds(1_800))
        bench.move("early", to: .background)
        bench.move("ended", to: .notRunning)
        bench.pass(.seconds(3_600))
        bench.move("moved", to: .background)
        bench.move("done", to: .notRunning)
        bench.add("late", .background)
        bench.pass(.seconds(1_800))
        #expect(
            try bench.ask(TORPOR_EVENT_STARTED)
                == [
                    "early → active", "ended → active", "fresh → active", "late → active", "ask again in 3600 s",
                ]
        )
    }

    @Test("new apps go where they should be, those that were there are left alone, wherever their places are")
    func appsChange() throws {
        let bench = try bench(
            [
                ("rules.0.apps.0", "web*"), ("rules.0.from", "08:00"), ("rules.0.to", "18:00"),
                ("rules.0.state", "active"), ("timezone", "UTC"),
            ],
            at: utc(2024, 6, 3, 9)
        )
        bench.add("other", .active)
        bench.add("web", .active)
        _ = try bench.ask(TORPOR_EVENT_STARTED)
        _ = try bench.ask(TORPOR_EVENT_GOAL, "web", from: 2, to: 3)
        _ = try bench.comes("web", to: .background)
        // They change places, and a third comes.
        bench.swap("web", "other")
        bench.add("web-2", .background)
        #expect(try bench.ask(TORPOR_EVENT_APPS) == ["web-2 → active"])
    }

    // MARK: Clocks

    @Test("after a clock was changed, the new time counts from the next question on")
    func clockChanges() throws {
        let bench = try bench("08:00", "18:00", otherwise: "background", at: utc(2024, 6, 3, 4))
        bench.add("web", .background)
        bench.add("other", .background)
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["ask again in 3600 s"])
        bench.view.system.realtime += 3 * 3_600 * 1_000_000
        #expect(try bench.comes("other", to: .active) == ["web → active"])
        bench.move("web", to: .active)
        bench.view.system.realtime -= 3 * 3_600 * 1_000_000
        #expect(try bench.comes("other", to: .background) == ["web → background"])
        bench.move("web", to: .background)
        // Small steps, as time servers make them, are nothing.
        bench.view.system.realtime += 100_000
        #expect(try bench.comes("other", to: .active) == [])
    }

    @Test("the timer is asked for once, for the hour or what comes before")
    func timer() throws {
        let bench = try bench("08:00", "18:00", at: utc(2024, 6, 3, 5, 30))
        bench.add("web", .background)
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["ask again in 1800 s"])
        bench.pass(.seconds(10))
        #expect(try bench.ask(TORPOR_EVENT_APPS) == [])
        // The clock was set forward: what was asked for comes too late.
        bench.view.system.realtime += 1_000 * 1_000_000
        #expect(try bench.comes("web", to: .suspended) == ["ask again in 790 s"])
        // A moment before the time is no reason to come back a moment later.
        bench.pass(.microseconds(789_999_000))
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["ask again in 0.1 s"])
        bench.pass(.milliseconds(100))
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → active", "ask again in 3600 s"])
        // A timer that was lost is asked for again.
        bench.pass(.seconds(7_200))
        #expect(try bench.comes("web", to: .active) == ["ask again in 3600 s"])
    }

    @Test("without the time of day it says nothing, and nonsense harms nobody")
    func absurdClocks() throws {
        let bench = try bench("08:00", "18:00", otherwise: "not-running", at: 0)
        bench.add("web", .background)
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == [])
        for realtime in [Int64.min, -1, 1, .max] {
            for now in [Int64.min, -1, 0, .max] {
                bench.view.system.realtime = realtime
                bench.view.system.now = now
                for kind in [TORPOR_EVENT_STARTED, TORPOR_EVENT_APPS, TORPOR_EVENT_TIMER] { _ = try bench.ask(kind) }
                _ = try bench.ask(TORPOR_EVENT_STATE, "web", from: 0, to: 3)
                _ = try bench.ask(TORPOR_EVENT_GOAL, "web", from: 0, to: 3)
            }
        }
        bench.view.system.realtime = utc(2024, 6, 3, 20) * 1_000_000
        bench.view.system.now = 5_000_000
        #expect(try bench.ask(TORPOR_EVENT_TIMER).contains("ask again in 3600 s"))
    }

    @Test("in a process of its own, which can read next to nothing, it knows the machine's zone and others")
    func confined() throws {
        let world = try bench("08:00", "18:00", at: utc(2024, 6, 3, 11, 59))
        world.add("web", .background)
        world.add("mail", .active)
        let options: Options = [
            ("rules.0.apps.0", "web"), ("rules.0.from", "08:00"), ("rules.0.to", "18:00"), ("rules.0.state", "active"),
            ("rules.1.apps.0", "mail"), ("rules.1.from", "13:59 Europe/Berlin"), ("rules.1.to", "18:00"),
            ("rules.1.state", "background"),
        ]
        var settings = HostProcess.Settings(program: BuiltProducts.path("torpor-policy-host"))
        settings.environment = HostProcess.ownEnvironment.filter { !$0.hasPrefix("TZ=") } + ["TZ=America/New_York"]
        settings.loadDeadline = .seconds(20)
        let host = try HostProcess(
            library: try LibraryTrust.open(BuiltProducts.path("libSchedulePolicy.so")),
            options: options.map { PolicyOption(key: $0.key, value: $0.value) },
            view: world.view.descriptor,
            viewSize: world.view.size,
            settings: settings
        )
        defer { host.close() }
        let answer = try host.ask([world.event(TORPOR_EVENT_STARTED)], deadline: .seconds(20))
        #expect(answer.advice.map(\.kind) == [TORPOR_ADVISE_GOAL.rawValue, TORPOR_ADVISE_ASK_AGAIN.rawValue])
        #expect(answer.advice.map(\.reason) == ["in its window until 18:00 (Schedule rule 2)", ""])
        #expect(answer.advice[0].app == UInt32(world.place("mail")))
        // Eight in New York is a minute away.
        #expect(answer.advice[1].time == 60_000_000)
    }

    // MARK: Options

    @Test("what is wrong with the options is said in a sentence")
    func wrongOptions() {
        let good: Options = [
            ("rules.0.apps.0", "web"), ("rules.0.from", "08:00"), ("rules.0.to", "18:00"), ("rules.0.state", "active"),
        ]
        func complaint(_ options: Options) -> String {
            PolicyBench.complaint(
                library: BuiltProducts.path("libSchedulePolicy.so"),
                options.map { PolicyOption(key: $0.key, value: $0.value) }
            )
        }
        func complaint(_ change: (key: String, value: PolicyOption.Value), without key: String = "") -> String {
            complaint(good.filter { $0.key != change.key && $0.key != key } + [change])
        }
        #expect(complaint(good) == "")
        #expect(complaint([]) == "rules is missing: write which apps are in which state, and when")
        #expect(
            complaint(("rules.0.name", "office"), without: "rules.0.to")
                == "rules.0.to is missing: every rule needs apps, from, to and state"
        )
        #expect(
            complaint(("rules.0.from", "Fri..Mon 08:00"))
                == "rules.0.from is \"Fri..Mon 08:00\", which is not a calendar expression: Fri..Mon runs backwards: "
                + "weeks begin on Monday; write Mon,Fri..Sun"
        )
        #expect(complaint(("rules.0.to", "*-02-30")) == "rules.0.to is \"*-02-30\", which never comes")
        #expect(
            complaint(("rules.0.state", "activ"))
                == "rules.0.state must be one of \"active\", \"background\", \"suspended\", \"not-running\": "
                + "it is \"activ\"; did you mean \"active\"?"
        )
        #expect(
            complaint(("timezone", "Europe/Berlni"))
                == "timezone is \"Europe/Berlni\", which is not a time zone known to this system: "
                + "write for instance Europe/Berlin or UTC"
        )
        #expect(
            complaint(("rules.0.othewise", "active"))
                == "rules.0.othewise is not an option of this policy: did you mean otherwise?"
        )
    }
}
