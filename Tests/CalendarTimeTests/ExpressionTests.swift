// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import CalendarTime

/// What the calling thread has had of a processor.
private func threadTime() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}

@Suite("Calendar expressions")
struct ExpressionTests {
    @Test(
        "What is wrong is said in a sentence that helps",
        arguments: [
            ("", "it is empty: write for instance \"Mon..Fri 08:00\""),
            ("12", "12 is neither date nor time: write \"12:00\" for a time, \"10-12\" for a date"),
            ("25:00", "25 is not a valid hour: it must be at least 0 and at most 23"),
            ("12:60", "60 is not a valid minute: it must be at least 0 and at most 59"),
            ("12:00:61", "61 is not a valid second: it must be at least 0 and below 60"),
            ("2024-13-01", "13 is not a valid month: it must be at least 1 and at most 12"),
            ("*-*~30", "30 is not a valid day from the end of the month: it must be at least 1 and at most 28"),
            ("2200-01-01", "2200 is not a valid year: it must be at least 1970 and at most 2199"),
            ("5..3:00", "5..3 runs backwards: write the lower hour first"),
            ("0/24:00", "0/24 never repeats: there is no hour that far on"),
            ("0/0:00", "a repetition cannot have the step 0: write 1 or more"),
            ("*:*/5", "a repetition needs where it begins: write \"0/5\" where you wrote \"*/5\""),
            ("*:*:0..0.5", "a range of less than a second needs a step, as in \"0..0.5/0.1\""),
            ("Fri..Mon 8:00", "Fri..Mon runs backwards: weeks begin on Monday; write Mon,Fri..Sun"),
            ("Mon.. 8:00", "a range of weekdays needs its last day, as in \"Mon..Fri\""),
            ("Mon8:00", "after a weekday comes a comma, a range such as \"Mon..Fri\", a space or the end"),
            ("Mon,8:00", "after the comma comes a weekday, as in \"Mon,Fri\"; before a time comes a space"),
            (
                "8:00 Europe/Berlni",
                "\"Europe/Berlni\" is not a time zone known to this system: "
                    + "write for instance Europe/Berlin or UTC"
            ),
            ("2024~02-03", "the ~ stands before the day, as in \"*-02~01\""),
            ("8:00 12-01", "a time is written as in \"08:00\" or \"08:00:30\""),
            ("8:", "a number or * is missing before the end"),
            ("noon", "a number or * is missing before \"noon\""),
            ("99999999999:00", "99999999999 is too large"),
            ("8:00:1.", "digits are missing after the decimal point"),
            ("@1 8:00", "after the @ come seconds since 1970, before the year 2200, and nothing else"),
        ]
    )
    func errors(text: String, sentence: String) {
        #expect(throws: CalendarError(description: sentence)) { try CalendarExpression(text) }
    }

    @Test("Lists can be long, but not endless")
    func longLists() throws {
        let list = (0..<241).map { "\($0 % 60)" }
        let expression = try CalendarExpression("*:" + list.joined(separator: ","))
        #expect(expression.description.hasSuffix("57,58,59:00"))
        #expect(throws: CalendarError(description: "a list can have 241 values at most")) {
            try CalendarExpression("*:" + (list + ["1"]).joined(separator: ","))
        }
    }

    @Test("Fractions of seconds come to the microsecond")
    func fractions() throws {
        let expression = try CalendarExpression("*:*:0.1..0.5/0.2 UTC")
        var times: [Int64] = []
        for _ in 0..<4 { times.append(try #require(expression.next(after: times.last ?? 0))) }
        #expect(times == [100_000, 300_000, 500_000, 60_100_000])
        #expect(expression.latest(notAfter: 60_099_999) == 500_000)
        #expect(expression.latest(notAfter: 99_999) == nil)
    }

    @Test(
        "What never comes, or not any more, says so",
        arguments: [
            "*-02-30", "*-02,04,06,09,11-31", "2024-06-01", "Mon 2024-06-01", "Wed 2096-02-28", "@1700000000",
            "Sun *-03-25..31 02:30 Europe/Berlin", "2030-03-31 02:30..59 Europe/Berlin", "Mon *-02-30 *:*:0/0.1",
        ]
    )
    func never(text: String) throws {
        let expression = try CalendarExpression(text)
        let start = threadTime()
        // 2025-01-01.
        #expect(expression.next(after: 1_735_689_600_000_000) == nil)
        // No search runs from second to second or from day to day: that would take minutes.
        #expect(threadTime() - start < .seconds(2))
    }

    @Test("Nothing comes before 1970 or after 2199, whatever moment is asked about")
    func bounds() throws {
        let expression = try CalendarExpression("daily UTC")
        #expect(expression.next(after: .min) == 0)
        #expect(expression.next(after: -1) == 0)
        #expect(expression.latest(notAfter: -1) == nil)
        #expect(expression.latest(notAfter: .min) == nil)
        #expect(expression.next(after: .max) == nil)
        let last = try #require(expression.latest(notAfter: .max))
        #expect(last == 7_258_032_000_000_000)
        #expect(expression.next(after: last) == nil)
    }

    /// Every minute of some days as the clocks of a place show it, each shown minute once: a second pass does not count.
    private func shown(_ zone: TimeZone, from start: Int64, days: Int) -> [(time: Int64, minuteOfDay: Int)] {
        var seen: Set<Int64> = []
        var minutes: [(time: Int64, minuteOfDay: Int)] = []
        for minute in 0..<Int64(days * 1440) {
            let time = start + minute * 60
            let local = time + Int64(zone.offset(at: time))
            if seen.insert(local).inserted { minutes.append((time, Int(local / 60 % 1440))) }
        }
        return minutes
    }

    @Test(
        "The last time is found where the next one was, hour for hour, also when clocks change",
        arguments: [
            ("Europe/Berlin", Int64(1_711_756_800)), ("Europe/Berlin", 1_729_900_800),
            ("Australia/Lord_Howe", 1_728_086_400), ("Australia/Lord_Howe", 1_743_811_200),
            // Summer time begins and ends at midnight.
            ("Africa/Cairo", 1_714_003_200), ("Africa/Cairo", 1_730_332_800),
            // A day that was left out.
            ("Pacific/Apia", 1_325_116_800),
        ]
    )
    func latest(name: String, start: Int64) throws {
        let zones = try ZonesElsewhere(name)
        let minutes = shown(zones.local, from: start, days: 4)
        for (text, isMeant) in [
            ("0..3:0/20", { $0 < 240 && $0 % 20 == 0 }), ("*:*", { _ in true }),
            ("02:15,45", { $0 == 135 || $0 == 165 }),
            ("0,23:*", { $0 < 60 || $0 >= 1380 }), ("daily", { $0 == 0 }), ("1:59", { $0 == 119 }),
        ] as [(String, (Int) -> Bool)] {
            let expression = try CalendarExpression(text, zones: zones)
            let times = minutes.filter { isMeant($0.minuteOfDay) }.map { $0.time * 1_000_000 }
            for (time, next) in zip(times, times.dropFirst()) {
                #expect(expression.latest(notAfter: time) == time, "\(text)")
                #expect(expression.latest(notAfter: next - 1) == time, "\(text)")
                #expect(expression.next(after: time) == next, "\(text) after \(time)")
                #expect(expression.next(after: next - 1) == next, "\(text)")
            }
        }
    }
}
