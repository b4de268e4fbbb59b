// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import Testing

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
}
