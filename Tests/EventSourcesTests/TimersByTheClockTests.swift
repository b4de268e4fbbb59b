// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Mailbox
import Testing

@testable import EventSources

@Suite("Timers when the clock is set") struct TimersByTheClockTests {
    /// At 09:00 on each day, and every six hours; it is 08:00.
    private static let toml = TimersTests.toml(("web", "calendar = \"09:00 UTC\""), ("db", "every = \"6h\""))

    private func count(_ events: FakeEvents, _ name: String = "web") -> Int64 {
        events.host.mail(for: events.app(name)).reduce(0) { $0 + $1.count }
    }

    @Test("Set forward by up to an hour, what was jumped over comes now") func littleForward() throws {
        let events = try FakeEvents(Self.toml)
        try events.pass(.seconds(600))
        events.setClock(by: .seconds(3_600))
        try events.pass(.zero)
        #expect(count(events) == 1)
        try events.pass(.seconds(80_000))
        #expect(count(events) == 1)
    }

    @Test("Set forward by more, only what is persistent comes", arguments: [true, false])
    func farForward(_ isPersistent: Bool) throws {
        let events = try FakeEvents(Self.toml)
        events.configure("web") { $0.timers[0].isPersistent = isPersistent }
        try events.pass(.seconds(600))
        events.setClock(by: .seconds(2 * 3_600))
        try events.pass(.seconds(1))
        #expect(count(events) == (isPersistent ? 1 : 0))
    }

    @Test("Set back, a time comes again") func back() throws {
        let events = try FakeEvents(Self.toml)
        try events.pass(.seconds(3_600))
        #expect(count(events) == 1)
        events.setClock(by: .seconds(-1_800))
        try events.pass(.seconds(1_799))
        #expect(count(events) == 1)
        try events.pass(.seconds(1))
        #expect(count(events) == 2)
    }

    @Test("Intervals do not care") func intervals() throws {
        let events = try FakeEvents(Self.toml)
        try events.pass(.seconds(600))
        events.setClock(by: .seconds(365 * 86_400))
        events.setClock(by: .seconds(-700 * 86_400))
        try events.pass(.seconds(20_999))
        #expect(count(events, "db") == 0)
        try events.pass(.seconds(1))
        #expect(count(events, "db") == 1)
    }

    @Test("What came due while the machine slept comes when it wakes, once") func slept() throws {
        let events = try FakeEvents(Self.toml)
        events.sleep(.seconds(13 * 3_600))
        try events.pass(.zero)
        #expect(count(events) == 1 && count(events, "db") == 1)
        // Still in even steps: the next one is at 26:00.
        try events.pass(.seconds(5 * 3_600 - 1))
        #expect(count(events, "db") == 1)
        try events.pass(.seconds(1))
        #expect(count(events, "db") == 2)
    }

    @Test("In another time zone the same words mean another time") func zone() throws {
        let events = try FakeEvents(TimersTests.toml(("web", "calendar = \"09:00\"")))
        let place = try #require(TimeZone(rule: "XXX-5"))
        events.wakes.timers.zoneChanged(to: place)
        // It is 13:00 there.
        try events.pass(.seconds(20 * 3_600 - 1))
        #expect(count(events) == 0)
        try events.pass(.seconds(1))
        #expect(count(events) == 1)
        // What is configured from now on is meant by that zone too.
        events.configure("web") { $0.timers[0].calendar = ["11:00"] }
        try events.pass(.seconds(7_200))
        #expect(count(events) == 2)
    }
}
