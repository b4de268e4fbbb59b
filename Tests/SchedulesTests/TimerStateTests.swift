// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import Schedules
import Testing

/// A machine's two clocks, of which nothing is real.
struct VirtualClock {
    /// 2026-01-01 00:00:00 UTC, a Thursday, in microseconds.
    static let newYear: Int64 = 1_767_225_600_000_000

    var now = ClockPair(running: .seconds(1_000), wall: newYear)

    mutating func pass(_ time: Duration) {
        now.running += time
        now.wall += micro(time)
    }

    /// Passes to a time since the boot.
    mutating func pass(to time: Duration) { pass(time - now.running) }

    mutating func set(by step: Duration) { now.wall += micro(step) }

    func wall(_ time: Duration) -> Int64 { now.wall + micro(time) }
}

func micro(_ time: Duration) -> Int64 {
    time.components.seconds * 1_000_000 + time.components.attoseconds / 1_000_000_000_000
}

func rule(_ calendar: [String] = [], _ change: (inout TimerRule) -> Void = { _ in }) throws -> TimerRule {
    var rule = TimerRule()
    rule.calendar = try calendar.map { try CalendarExpression($0 + " UTC") }
    change(&rule)
    return rule
}

@Suite("A timer")
struct TimerStateTests {
    /// So long from now it is due.
    private func left(_ state: TimerState, _ clock: VirtualClock) -> Duration? {
        state.due(now: clock.now).map { $0 - clock.now.running }
    }

    @Test("comes by the calendar, each time once")
    func calendar() throws {
        var clock = VirtualClock()
        var state = TimerState(try rule(["*-*-* 03:00:00"]), nil, goesOn: false, now: clock.now)
        #expect(left(state, clock) == .seconds(3 * 3600))
        clock.pass(.seconds(3 * 3600))
        #expect(left(state, clock) == .zero)
        state.fire(now: clock.now)
        #expect(left(state, clock) == .seconds(86_400))
        #expect(state.history.lastWall == clock.now.wall)
    }

    @Test("comes at whichever of its times is first")
    func several() throws {
        let clock = VirtualClock()
        let rule = try rule(["*-*-* 05:00:00", "*-*-* 04:00:00"]) { $0.every = .seconds(5 * 3600) }
        #expect(left(TimerState(rule, nil, goesOn: false, now: clock.now), clock) == .seconds(4 * 3600))
    }

    @Test("comes in even intervals, however late it was each time, and once for those that it missed")
    func every() throws {
        var clock = VirtualClock()
        var state = TimerState(try rule { $0.every = .seconds(60) }, nil, goesOn: false, now: clock.now)
        clock.pass(.seconds(65))
        state.fire(now: clock.now)
        #expect(left(state, clock) == .seconds(55))
        clock.pass(.seconds(55 + 60 * 3 + 7))
        state.fire(now: clock.now)
        #expect(left(state, clock) == .seconds(53))
    }

    @Test("comes after the boot once in a boot, at once if that is past, and in intervals from there on")
    func afterBoot() throws {
        var clock = VirtualClock()
        let rule = try rule {
            $0.afterBoot = .seconds(600)
            $0.every = .seconds(60)
        }
        var state = TimerState(rule, nil, goesOn: false, now: clock.now)
        #expect(left(state, clock) == .seconds(-400))
        state.fire(now: clock.now)
        #expect(left(state, clock) == .seconds(60))
        clock.pass(.seconds(10))
        let again = state.history.restarted(sameBoot: true, now: clock.now)
        #expect(left(TimerState(rule, again, goesOn: false, now: clock.now), clock) == .seconds(50))
        clock.pass(.seconds(200))
        #expect(left(TimerState(rule, again, goesOn: false, now: clock.now), clock) == .seconds(30))
        let rebooted = state.history.restarted(sameBoot: false, now: clock.now)
        #expect(left(TimerState(rule, rebooted, goesOn: false, now: clock.now), clock)! < .zero)
    }

    @Test("comes after the start once, and a supervisor that takes over does not begin again")
    func afterStart() throws {
        var clock = VirtualClock()
        let rule = try rule { $0.afterStart = .seconds(30) }
        var state = TimerState(rule, nil, goesOn: false, now: clock.now)
        clock.pass(.seconds(20))
        #expect(left(TimerState(rule, state.history, goesOn: true, now: clock.now), clock) == .seconds(10))
        clock.pass(.seconds(10))
        state.fire(now: clock.now)
        #expect(left(state, clock) == nil)
        #expect(left(TimerState(rule, state.history, goesOn: true, now: clock.now), clock) == nil)
        let restarted = state.history.restarted(sameBoot: true, now: clock.now)
        #expect(left(TimerState(rule, restarted, goesOn: false, now: clock.now), clock) == .seconds(30))
    }

    @Test("makes up once for what it missed while nobody was there, if it is persistent", arguments: [true, false])
    func missed(isPersistent: Bool) throws {
        var clock = VirtualClock()
        for rule in [try rule(["hourly"].map { _ in "*-*-* *:00:00" }), try rule { $0.every = .seconds(3600) }] {
            var rule = rule
            rule.isPersistent = isPersistent
            let state = TimerState(rule, nil, goesOn: false, now: clock.now)
            clock.pass(.seconds(5 * 3600 + 60))
            let history = state.history.restarted(sameBoot: false, now: clock.now)
            var later = TimerState(rule, history, goesOn: false, now: clock.now)
            #expect((try #require(left(later, clock)) <= .zero) == isPersistent)
            guard isPersistent else { continue }
            later.fire(now: clock.now)
            #expect(left(later, clock)! > .zero)
        }
    }

    @Test("makes up once for work that was cut off, if it is persistent", arguments: [true, false])
    func cutOff(isPersistent: Bool) throws {
        var clock = VirtualClock()
        let rule = try rule(["*-*-* 03:00:00"]) { $0.isPersistent = isPersistent }
        var state = TimerState(rule, nil, goesOn: false, now: clock.now)
        clock.pass(.seconds(3 * 3600))
        state.fire(now: clock.now)
        state.workBegins()
        #expect(state.history.isUnfinished == isPersistent)
        clock.pass(.seconds(60))
        #expect(left(TimerState(rule, state.history, goesOn: true, now: clock.now), clock)! > .zero)
        let history = state.history.restarted(sameBoot: false, now: clock.now)
        var later = TimerState(rule, history, goesOn: false, now: clock.now)
        #expect((try #require(left(later, clock)) <= .zero) == isPersistent)
        if isPersistent { later.fire(now: clock.now) }
        later.workBegins()
        #expect(left(later, clock)! > .zero)
        #expect(!later.history.isUnfinished, "what makes up for it may be what restarts the machine")
        // One that has come to its end was not cut off.
        state.workEnded()
        let over = TimerState(
            rule,
            state.history.restarted(sameBoot: false, now: clock.now),
            goesOn: false,
            now: clock.now
        )
        #expect(left(over, clock)! > .zero)
    }

    @Test("that is persistent and new has missed nothing")
    func new() throws {
        let clock = VirtualClock()
        let rule = try rule(["*-*-* 03:00:00"]) { $0.isPersistent = true }
        #expect(left(TimerState(rule, nil, goesOn: false, now: clock.now), clock) == .seconds(3 * 3600))
    }

    @Test("delays by a part of its random delay: always the same of one time, another of the next and of another timer")
    func randomDelay() throws {
        var clock = VirtualClock()
        func delays(seed: UInt64) throws -> [Duration] {
            var state = TimerState(
                try rule(["*-*-* *:00:00"]) {
                    $0.randomDelay = .seconds(600)
                    $0.seed = seed
                },
                nil,
                goesOn: false,
                now: clock.now
            )
            var here = clock
            return (0..<20).map { _ in
                here.pass(left(state, here)!)
                let delay = Duration.microseconds(here.now.wall % 3_600_000_000)
                state.fire(now: here.now)
                return delay
            }
        }
        let first = try delays(seed: 1)
        #expect(try delays(seed: 1) == first)
        #expect(try delays(seed: 2) != first)
        #expect(first.allSatisfy { $0 >= .zero && $0 < .seconds(600) })
        #expect(Set(first).count > 15)
        clock.pass(.seconds(1))
    }

    @Test("goes by a clock that was set back: its times come again")
    func setBack() throws {
        var clock = VirtualClock()
        var state = TimerState(try rule(["*-*-* 03:00:00"]), nil, goesOn: false, now: clock.now)
        clock.pass(.seconds(3 * 3600))
        state.fire(now: clock.now)
        clock.set(by: .seconds(-3600))
        state.clockWasSet(by: .seconds(-3600), now: clock.now)
        #expect(left(state, clock) == .seconds(3600))
    }

    @Test(
        "goes by a clock that was set forward: a little makes it come, much only where it makes up for what it missed",
        arguments: [false, true]
    )
    func setForward(isPersistent: Bool) throws {
        for (step, comes) in [(Duration.seconds(600), true), (.seconds(30 * 86_400), isPersistent)] {
            var clock = VirtualClock()
            clock.pass(.seconds(3 * 3600 - 60))
            var state = TimerState(
                try rule(["*-*-* 03:00:00"]) { $0.isPersistent = isPersistent },
                nil,
                goesOn: false,
                now: clock.now
            )
            clock.set(by: step)
            state.clockWasSet(by: step, now: clock.now)
            #expect((try #require(left(state, clock)) <= .zero) == comes, "\(step)")
        }
    }

    @Test("goes by the time since the boot in its intervals, whatever becomes of the clock on the wall")
    func monotonic() throws {
        var clock = VirtualClock()
        var state = TimerState(try rule { $0.every = .seconds(60) }, nil, goesOn: false, now: clock.now)
        clock.set(by: .seconds(86_400))
        state.clockWasSet(by: .seconds(86_400), now: clock.now)
        #expect(left(state, clock) == .seconds(60))
    }

    @Test("comes when the machine wakes, if its time was while it slept")
    func slept() throws {
        var clock = VirtualClock()
        let state = TimerState(try rule(["*-*-* 03:00:00"]), nil, goesOn: false, now: clock.now)
        clock.pass(.seconds(4 * 3600))
        #expect(left(state, clock) == .seconds(-3600))
    }

    @Test("means other times in another zone")
    func zone() throws {
        let clock = VirtualClock()
        let berlin = try #require(TimeZone(rule: "CET-1CEST,M3.5.0,M10.5.0/3"))
        struct Here: TimeZones {
            var local: TimeZone
            func zone(named name: String) -> TimeZone? { nil }
        }
        var rule = TimerRule()
        rule.calendar = [try CalendarExpression("*-*-* 03:00:00", zones: Here(local: .utc))]
        var state = TimerState(rule, nil, goesOn: false, now: clock.now)
        #expect(left(state, clock) == .seconds(3 * 3600))
        state.zoneChanged([try CalendarExpression("*-*-* 03:00:00", zones: Here(local: berlin))], now: clock.now)
        #expect(left(state, clock) == .seconds(2 * 3600))
    }
}
