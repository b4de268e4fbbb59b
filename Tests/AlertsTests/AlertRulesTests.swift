// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import Testing
import TorporAPI
import Varlink

@testable import Alerts

/// Clocks that a test sets.
struct FakeClock {
    static let berlin = TimeZone(rule: "CET-1CEST,M3.5.0,M10.5.0/3")!
    static let newYork = TimeZone(rule: "EST5EDT,M3.2.0,M11.1.0")!

    var wall: Int64
    var running: Int64 = 1_000_000_000
    var boot = "one"
    var zone = berlin

    init(_ time: String) { wall = Self.moment(time) }

    static func moment(_ time: String) -> Int64 { WrittenTime(time)!.moment(in: berlin) }

    var clock: AlertClock {
        AlertClock(wall: wall, running: running, boot: boot, zone: zone) { name in
            name == "America/New_York" ? Self.newYork : nil
        }
    }

    /// Lets time pass.
    mutating func pass(_ seconds: Int64) {
        wall += seconds * 1_000_000
        running += seconds * 1_000_000
    }

    mutating func pass(to time: String) { pass((Self.moment(time) - wall) / 1_000_000) }
}

@Suite("What an alert may be") struct AlertRulesTests {
    private func make(_ title: String = "t", _ change: (inout ScheduleAlertRequest) -> Void = { _ in }) throws -> Alert
    {
        var request = ScheduleAlertRequest(title: title)
        change(&request)
        return try Alert(request, number: 7, app: "a", clock: FakeClock("2026-03-01T12:00").clock)
    }

    private func problem(_ change: (inout ScheduleAlertRequest) -> Void) -> String? {
        do {
            _ = try make("t", change)
            return nil
        } catch let error as FieldError {
            return error.field
        } catch {
            return "\(error)"
        }
    }

    @Test("everything that fits is taken, and is the same after it was stored")
    func whole() throws {
        let alert = try make(
            "Grüße 👋🏽 ",
            { request in
                request.id = "a.b_c-1:@"
                request.body = "two\nlines" + String(repeating: "ä", count: 507)
                request.at = "2026-03-29T02:30"
                request.timeZone = "America/New_York"
                (request.sound, request.badge, request.urgency) = ("message-new-instant", 9999, "critical")
                request.actions = (1...4).map { AlertAction(id: "a\($0)", label: "Do \($0)") }
                (request.url, request.wake) = ("notes:1", true)
                request.payload = .string(String(repeating: "x", count: 8190))
                request.token = .random()
            }
        )
        #expect(alert.time == .local(FakeClock.moment("2026-03-29T02:30Z"), zone: "America/New_York"))
        #expect(try Alert(json: try JSON.parse(alert.json.description)) == alert)
        #expect(try make().id == "alert-7")
        var open = try make { $0.calendar = "daily" }
        var opening = Opening(scheduledAt: 1, openedAt: 2, parent: 3)
        opening.interrupted = [Opening.Interrupted(app: "b", incarnation: 4)]
        opening.answer = Opening.Answer(action: "x", token: "y")
        (opening.bundle, opening.tries) = (9, 2)
        opening.place = Opening.Place(server: ":1.7", number: 8)
        (opening.isDelivered, opening.isRun, opening.isShown) = (true, true, true)
        (open.opening, open.heldUntil, open.isOperators) = (opening, 11, true)
        #expect(try Alert(json: try JSON.parse(open.json.description)) == open)
    }

    @Test(
        "titles that are hostile, empty or too long are refused",
        arguments: [
            "", " ", "\u{00a0}", "a\nb", "a\u{1b}[2J", "a\u{202e}b", "\u{2066}a", "\u{7f}", "a\u{85}", "\u{200f}a",
            "\u{200b}", "\u{2060}\u{feff}", "\u{3164}", "\u{2800} \u{00ad}", "\u{301}",
            String(repeating: "x", count: 81), "a" + String(repeating: "\u{301}", count: 400), "a\u{2028}b", "\u{0}",
        ]
    )
    func titles(_ title: String) { #expect(throws: FieldError.self) { try make(title) } }

    private func sentence(_ title: String, _ change: (inout ScheduleAlertRequest) -> Void = { _ in }) -> String {
        do {
            _ = try make(title, change)
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test("what is wrong has a sentence of its own")
    func sentences() {
        #expect(sentence("") == "title has no visible character: write one line of 1 to 80 characters")
        #expect(sentence("a\nb") == "title has several lines: write one line of 1 to 80 characters")
        #expect(sentence(String(repeating: "x", count: 95)) == "title has 95 characters: at most 80 are allowed")
        #expect(
            sentence("a\u{202e}b")
                == "title has the character U+202E, which controls a terminal or changes the direction of text: leave it out"
        )
        #expect(
            sentence("t") { $0.body = String(repeating: "x", count: 1025) }
                == "body has 1025 bytes: at most 1024 are allowed"
        )
        #expect(sentence("t") { $0.body = "\u{1b}[2J" }.hasPrefix("body has the character U+001B, "))
        #expect(sentence("t") { $0.at = "" }.hasPrefix("at is empty: write a date and a time "))
        #expect(sentence("t") { $0.at = "tomorrow" }.hasPrefix("at is no time: "))
        #expect(sentence("t") { $0.at = "9h55" }.contains("only 14:30 for the next time"))
        #expect(sentence("t") { $0.at = "2026-02-30T10:00" }.hasPrefix("at is a time that never comes: "))
        #expect(sentence("t") { $0.at = "2026-03-01T11:58" }.hasPrefix("at is 2026-03-01T11:58, which is over: "))
        #expect(
            sentence("t") { $0.actions = [AlertAction(id: "a", label: "\u{200b}")] }
                == "actions must have good labels: that of a has no visible character: write one line of 1 to 40 characters"
        )
    }

    @Test("a body may be the output of a program: tabs and the newlines of other systems become plain")
    func bodies() throws {
        #expect(try make { $0.body = "a\tb\r\nc\rd\n" }.body == "a b\nc\nd\n")
        // It counts as it is kept.
        #expect(try make { $0.body = String(repeating: "\r\n", count: 1024) }.body.utf8.count == 1024)
        #expect(try make("Grüße 👋🏽‍♀️ 日本").title == "Grüße 👋🏽‍♀️ 日本")
    }

    @Test("each field has its limit, and is named where it is exceeded")
    func limits() {
        #expect(problem { $0.body = String(repeating: "x", count: 1025) } == "body")
        #expect(problem { $0.body = "a\u{202e}" } == "body")
        #expect(problem { $0.id = "" } == "id")
        #expect(problem { $0.id = "a b" } == "id")
        #expect(problem { $0.id = String(repeating: "x", count: 65) } == "id")
        #expect(problem { $0.urgency = "loud" } == "urgency")
        #expect(problem { $0.sound = "../bell" } == "sound")
        #expect(problem { $0.badge = 10_000 } == "badge")
        #expect(problem { $0.badge = -1 } == "badge")
        #expect(problem { $0.actions = (1...5).map { AlertAction(id: "a\($0)", label: "l") } } == "actions")
        #expect(problem { $0.actions = [AlertAction(id: "default", label: "l")] } == "actions")
        #expect(problem { $0.actions = [AlertAction(id: "a", label: "x\ny")] } == "actions")
        #expect(
            problem { $0.actions = [AlertAction(id: "a", label: "l"), AlertAction(id: "a", label: "m")] } == "actions"
        )
        #expect(problem { $0.payload = .string(String(repeating: "x", count: 8191)) } == "payload")
    }

    @Test("one time at most, which is to come")
    func times() throws {
        for text in [
            "tomorrow", "24:00", "9:5", "12:60", "12:00:60", "9", "12:00Z", "2026-03-02T10:00+010", "2026-02-30T10:00",
            "2026-03-01T24:00", "2026-03-01", "2026-03-01T10:00+25:00",
            "2026-03-01T10:00:0",
            "1969-01-01T00:00Z", "2500-01-01T00:00Z", "", String(repeating: "1", count: 65),
        ] { #expect(problem { $0.at = text } == "at", "\(text)") }
        #expect(problem { $0.at = "2026-03-01T11:58" } == "at")
        #expect(problem { $0.at = "2026-03-01T11:59:30" } == nil)
        #expect(problem { ($0.at, $0.after) = ("2026-03-02T10:00", 1) } == "at")
        #expect(problem { $0.after = -1 } == "after_ms")
        #expect(problem { $0.after = .max } == "after_ms")
        #expect(problem { ($0.at, $0.timeZone) = ("2026-03-02T10:00", "Nowhere/Land") } == "time_zone")
        #expect(problem { ($0.at, $0.timeZone) = ("2026-03-02T10:00Z", "local") } == "time_zone")
        #expect(problem { ($0.after, $0.timeZone) = (1, "local") } == "time_zone")
        #expect(problem { $0.calendar = "often" } == "calendar")
        #expect(problem { $0.calendar = "*:*:0/30" } == "calendar")
        #expect(problem { $0.calendar = "*:0:0,59" } == "calendar")
        #expect(problem { $0.calendar = "minutely" } == nil)
        #expect(problem { $0.calendar = "2020-01-01" } == "calendar")
        #expect(
            try make { $0.at = "2026-03-01T12:00:00.25-00:30" }.time
                == .at(FakeClock.moment("2026-03-01T12:30Z") + 250_000)
        )
    }
}

@Suite("Times of the day") struct WrittenTimeOfDayTests {
    private func due(_ text: String, _ zone: String?, at time: String) throws -> Int64? {
        let clock = FakeClock(time).clock
        var request = ScheduleAlertRequest(title: "t")
        (request.at, request.timeZone) = (text, zone)
        return clock.due(try Alert(request, number: 1, app: "a", clock: clock))
    }

    @Test("are the next ones in the zone that is named, else in the machine's")
    func next() throws {
        // In New York it is 18:00 of the day before.
        let midnight = "2026-03-02T00:00"
        for (text, zone, expected) in [
            ("18:30", "America/New_York", "2026-03-01T18:30-05:00"),
            ("17:30", "America/New_York", "2026-03-02T17:30-05:00"),
            ("18:30", nil, "2026-03-02T18:30+01:00"), ("9:55", "local", "2026-03-02T09:55+01:00"),
            ("00:00", nil, "2026-03-02T00:00+0100"), ("0:00:01", nil, "2026-03-02T00:00:01+0100"),
        ] as [(String, String?, String)] {
            #expect(try due(text, zone, at: midnight) == FakeClock.moment(expected), "\(text) \(zone ?? "-")")
        }
        #expect(try due("12:00", nil, at: "2026-03-02T12:00:01") == FakeClock.moment("2026-03-03T12:00"))
        // Clocks skip 2:30.
        #expect(try due("02:30", nil, at: "2026-03-29T01:00") == FakeClock.moment("2026-03-29T03:00"))
        #expect(throws: FieldError.self) { try due("12:00", "Nowhere/Land", at: midnight) }
    }

    @Test("that are repeated are left out on the day on which clocks skip them, and come once if they show them twice")
    func repeated() throws {
        func times(from time: String) throws -> [String] {
            var clock = FakeClock(time)
            var request = ScheduleAlertRequest(title: "t")
            request.calendar = "02:30"
            var alert = try Alert(request, number: 1, app: "a", clock: clock.clock)
            return try (0..<2).map { _ in
                let due = try #require(clock.clock.due(alert))
                (clock.wall, alert.base) = (due, due)
                let local = LocalTime(due, in: FakeClock.berlin)
                return "\(local.month)-\(local.day) \(local.hour):\(local.minute)"
            }
        }
        #expect(try times(from: "2026-03-28T02:00") == ["3-28 2:30", "3-30 2:30"])
        #expect(try times(from: "2026-10-25T01:00") == ["10-25 2:30", "10-26 2:30"])
    }
}

@Suite("Written times") struct WrittenTimeTests {
    @Test("with an offset, with Z, and without, by the zone")
    func forms() throws {
        let zone = FakeClock.berlin
        #expect(WrittenTime("1970-01-01T00:00:00Z")?.moment(in: zone) == 0)
        #expect(WrittenTime("1970-01-01 01:00:00.5")?.moment(in: zone) == 500_000)
        #expect(WrittenTime("2026-07-01t12:00z")?.moment(in: zone) == WrittenTime("2026-07-01T14:00")?.moment(in: zone))
        #expect(WrittenTime("2026-07-01T12:00-11:30")?.offset == -41_400)
        #expect(WrittenTime("2026-07-01T12:00-1130")?.offset == -41_400)
        #expect(WrittenTime("2026-06-30T23:59:60Z")?.local == WrittenTime("2026-07-01T00:00Z")?.local)
    }

    @Test("a time that clocks skip is when they are set, one that they show twice is the first")
    func summerTime() throws {
        let zone = FakeClock.berlin
        let forward = try #require(WrittenTime("2026-03-29T01:00Z")).local
        for text in ["2026-03-29T02:00", "2026-03-29T02:30", "2026-03-29T02:59:59"] {
            #expect(WrittenTime(text)?.moment(in: zone) == forward, "\(text)")
        }
        #expect(WrittenTime("2026-03-29T03:00")?.moment(in: zone) == forward)
        #expect(WrittenTime("2026-10-25T02:30")?.moment(in: zone) == WrittenTime("2026-10-25T00:30Z")?.local)
    }
}
