// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Mailbox
import Testing
import Varlink

@testable import EventSources

@Suite("The next change of the calendar on the wall")
struct WallClockTests {
    /// Microseconds since 1970 of a time in UTC on that day.
    private func moment(_ text: String) throws -> Int64 {
        try #require(try CalendarExpression(text + " UTC").next(after: 0))
    }

    @Test("is midnight by the clocks of the place")
    func midnight() throws {
        let berlin = try #require(TimeZone(rule: "CET-1CEST,M3.5.0,M10.5.0/3"))
        let noon = try moment("2026-01-15 12:00:00")
        #expect(try WallClock.change(after: noon, in: .utc) == moment("2026-01-16 00:00:00"))
        #expect(try WallClock.change(after: noon, in: berlin) == moment("2026-01-15 23:00:00"))
        let justBefore = try moment("2026-01-15 22:59:59")
        #expect(try WallClock.change(after: justBefore, in: berlin) == moment("2026-01-15 23:00:00"))
        let midnight = try moment("2026-01-15 23:00:00")
        #expect(try WallClock.change(after: midnight, in: berlin) == moment("2026-01-16 23:00:00"))
    }

    @Test("is the beginning or the end of summer time, where that is before midnight")
    func summerTime() throws {
        let berlin = try #require(TimeZone(rule: "CET-1CEST,M3.5.0,M10.5.0/3"))
        let march = try moment("2026-03-29 00:30:00")
        #expect(try WallClock.change(after: march, in: berlin) == moment("2026-03-29 01:00:00"))
        let october = try moment("2026-10-25 00:30:00")
        #expect(try WallClock.change(after: october, in: berlin) == moment("2026-10-25 01:00:00"))
    }

    // MARK: What apps are told

    private func running() throws -> FakeEvents {
        let events = try FakeEvents(NotificationsTests.toml("\"clock\"", "web"))
        try events.shell.start("web")
        return events
    }

    @Test(
        "A clock that is set by a second or more is told, by less it is not",
        arguments: [
            (1_000, true), (-1_000, true), (999, false), (-999, false), (1, false), (0, false),
        ]
    )
    func set(_ milliseconds: Int, _ isTold: Bool) throws {
        let events = try running()
        events.setClock(by: .milliseconds(milliseconds))
        #expect(events.mail() == (isTold ? ["clock: significantTimeChange"] : []))
        #expect(events.payload() == (isTold ? ["clock": true] : nil))
        #expect(
            events.shell.told().filter { $0.contains("the clock was set") }.count == (abs(milliseconds) > 1 ? 1 : 0)
        )
    }

    @Test("Each step counts from the one before") func steps() throws {
        let events = try running()
        for _ in 0..<4 { events.setClock(by: .milliseconds(600)) }
        #expect(events.mail() == [])
        events.setClock(by: .seconds(-5))
        #expect(events.shell.told().last?.hasSuffix("the clock was set back by 5.0 s") == true)
        #expect(events.mail().count == 1)
    }

    @Test("Another day is told when it begins, each once, also where the machine slept") func days() throws {
        let events = try running()
        // It is 08:00 UTC.
        let zone = events.wakes.timers.zone
        let left = WallClock.change(after: FakeEventHost.beginning, in: zone) - FakeEventHost.beginning
        try events.pass(.microseconds(left - 1))
        #expect(events.mail() == [])
        try events.pass(.microseconds(1))
        #expect(events.mail() == ["clock: significantTimeChange"])
        let day = LocalTime(FakeEventHost.beginning + left, in: zone).day
        #expect(events.payload()?["day"]?.stringValue?.hasSuffix("-\(day)") == true)
        events.sleep(.seconds(2 * 86_400))
        #expect(events.host.mail(for: events.app("web")).first?.count == 2)
        #expect(events.payload()?["day"]?.stringValue?.hasSuffix("-\(day + 2)") == true)
        #expect(events.payload()?["clock"] == nil, "nobody set it")
    }

    @Test("Where no app would hear of it nothing is watched") func unheard() throws {
        let events = try FakeEvents(WakesTests.toml)
        try events.shell.start("web")
        #expect(events.shell.time.next == nil)
        let other = try FakeEvents(NotificationsTests.toml("\"power\"", "web"))
        try other.shell.start("web")
        other.setClock(by: .seconds(60))
        #expect(other.mail() == [] && other.shell.time.next == nil)
    }

    @Test("An app that begins to hear while it runs is told of what changes from then on") func later() throws {
        let events = try FakeEvents("[apps.web]\nexec = [\"/bin/true\"]")
        try events.shell.start("web")
        #expect(events.shell.time.next == nil)
        events.attend("web")
        let next = try #require(events.shell.time.next)
        #expect(next <= events.shell.time.now + .seconds(86_400))
        try events.pass(.seconds(86_400))
        #expect(events.mail() == ["clock: significantTimeChange"])
    }
}
