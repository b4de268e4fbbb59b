// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import Testing
import TorporAPI

@testable import Alerts

/// A table, clocks, and numbers.
private struct Bench {
    var table = AlertTable()
    var clock: FakeClock
    var last: Int64 = 100
    static let day: Int64 = 86_400_000_000

    init(_ time: String) { clock = FakeClock(time) }

    @discardableResult
    mutating func add(_ id: String, _ change: (inout ScheduleAlertRequest) -> Void = { _ in }) throws -> Int64 {
        var request = ScheduleAlertRequest(title: id)
        request.id = id
        change(&request)
        last += 1
        table.set(try Alert(request, number: last, app: "a", clock: clock.clock), clock.clock)
        return last
    }

    /// What comes now: the ids, and when they were scheduled.
    mutating func arrive(missedAfter: Int64 = day) -> [(id: String, at: Int64, isMissed: Bool)] {
        var next = last
        let arrivals = table.arrive(clock.clock, missedAfter: missedAfter) {
            next += 1
            return next
        }
        last = next
        for arrival in arrivals { table.remove(arrival.alert.number) }
        return arrivals.map { ($0.alert.id, $0.alert.opening?.scheduledAt ?? 0, $0.isMissed) }
    }

    mutating func ids() -> [String] { arrive().map { $0.isMissed ? $0.id + " missed" : $0.id } }

    /// Another torpord, perhaps after a reboot, that has only what was stored.
    mutating func restart(boot: String? = nil) throws {
        let stored = try table.all.map { try Alert(json: $0.json) }
        if let boot {
            clock.boot = boot
            clock.running = 5_000_000
        }
        table = AlertTable()
        for alert in stored { table.set(alert, clock.clock) }
    }
}

@Suite("When alerts come") struct AlertTableTests {
    @Test("at a moment, after some time, in the order of their times, and once")
    func order() throws {
        var bench = Bench("2026-03-01T12:00")
        try bench.add("late") { $0.at = "2026-03-01T12:00:30" }
        try bench.add("soon") { $0.after = 20_000 }
        try bench.add("now")
        #expect(bench.table.nextDue(bench.clock.clock) == bench.clock.wall)
        #expect(bench.ids() == ["now"])
        bench.clock.pass(19)
        #expect(bench.ids() == [])
        bench.clock.pass(11)
        #expect(bench.ids() == ["soon", "late"])
        #expect(bench.ids() == [] && bench.table.isEmpty && !bench.table.hasScheduled)
    }

    @Test("local times follow the machine's zone, those with an offset or a named zone do not")
    func zones() throws {
        var bench = Bench("2026-07-01T06:00")
        try bench.add("local") { $0.at = "2026-07-01T12:00" }
        try bench.add("named") { ($0.at, $0.timeZone) = ("2026-07-01T12:00", "America/New_York") }
        try bench.add("instant") { $0.at = "2026-07-01T12:00+02:00" }
        bench.clock.zone = FakeClock.newYork
        _ = bench.table.clockChanged(bench.clock.clock, isElsewhere: true)
        bench.clock.pass(to: "2026-07-01T12:00+02:00")
        #expect(bench.ids() == ["instant"])
        bench.clock.pass(to: "2026-07-01T12:00-04:00")
        #expect(Set(bench.ids()) == ["local", "named"])
    }

    @Test("local times over the changes of summer time")
    func summerTime() throws {
        var bench = Bench("2026-03-28T12:00")
        try bench.add("skipped") { $0.at = "2026-03-29T02:30" }
        try bench.add("after") { $0.at = "2026-03-29T03:30" }
        bench.clock.pass(to: "2026-03-29T00:59:59Z")
        #expect(bench.ids() == [])
        bench.clock.pass(1)
        #expect(bench.ids() == ["skipped"])
        bench.clock.pass(1_800)
        #expect(bench.ids() == ["after"])
        try bench.add("twice") { $0.at = "2026-10-25T02:30" }
        bench.clock.pass(to: "2026-10-25T00:30Z")
        #expect(bench.ids() == ["twice"])
        bench.clock.pass(3_600)
        #expect(bench.ids() == [])
    }

    @Test("a repeated one comes at each of its times, over summer time, and stays")
    func repeated() throws {
        var bench = Bench("2026-03-27T12:00")
        let number = try bench.add("daily") { $0.calendar = "2:30" }
        var times: [String] = []
        for _ in 0..<5 {
            let due = try #require(bench.table.nextDue(bench.clock.clock))
            bench.clock.pass((due - bench.clock.wall) / 1_000_000)
            let came = bench.arrive()
            #expect(came.map(\.id) == ["daily"] && came[0].at == due && !came[0].isMissed)
            let local = LocalTime(due, in: FakeClock.berlin)
            times.append("\(local.day) \(local.hour):\(local.minute)")
        }
        // As with systemd, a skipped time does not occur on that day.
        #expect(times == ["28 2:30", "30 2:30", "31 2:30", "1 2:30", "2 2:30"])
        #expect(bench.table[number]?.opening == nil && bench.table.all.count == 1)
    }

    @Test("what was missed while the machine was off comes late, of a repeated one only the last, and nothing too old")
    func missed() throws {
        var bench = Bench("2026-03-01T12:00")
        try bench.add("once") { $0.at = "2026-03-01T13:00" }
        try bench.add("daily") { $0.calendar = "9:00" }
        try bench.add("weekly") { $0.calendar = "Mon 9:00" }
        try bench.add("after") { $0.after = 3_600_000 * 90 }
        bench.clock.pass(to: "2026-03-05T10:00")
        try bench.restart(boot: "two")
        let came = bench.arrive()
        #expect(came.filter { !$0.isMissed }.map(\.id).sorted() == ["after", "daily"])
        #expect(came.filter(\.isMissed).map(\.id).sorted() == ["once", "weekly"])
        #expect(came.first { $0.id == "daily" }?.at == FakeClock.moment("2026-03-05T09:00"))
        #expect(bench.table.all.map(\.id).sorted() == ["daily", "weekly"])
        #expect(bench.ids() == [])
        #expect(bench.table.nextDue(bench.clock.clock) == FakeClock.moment("2026-03-06T09:00"))
    }

    @Test("after some time means time that passes, however the clock is set, also for the next torpord")
    func clockJumps() throws {
        var bench = Bench("2026-03-01T12:00")
        try bench.add("after") { $0.after = 3_600_000 }
        try bench.add("at") { $0.at = "2026-03-01T13:00" }
        bench.clock.wall += 2 * 3_600_000_000
        _ = bench.table.clockChanged(bench.clock.clock, isElsewhere: false)
        #expect(bench.ids() == ["at"])
        bench.clock.wall -= 7_200_000_000
        _ = bench.table.clockChanged(bench.clock.clock, isElsewhere: false)
        try bench.restart()
        bench.clock.pass(3_599)
        #expect(bench.ids() == [])
        bench.clock.pass(1)
        #expect(bench.ids() == ["after"])
    }

    @Test("if the clock is set back, times of the calendar repeat; alerts that came once do not")
    func setBack() throws {
        var bench = Bench("2026-03-01T08:00")
        try bench.add("daily") { $0.calendar = "9:00" }
        try bench.add("once") { $0.at = "2026-03-01T09:00" }
        bench.clock.pass(3_600)
        #expect(bench.ids().sorted() == ["daily", "once"])
        bench.clock.wall -= 1_800_000_000
        let changed = bench.table.clockChanged(bench.clock.clock, isElsewhere: false)
        #expect(changed.map(\.id) == ["daily"])
        #expect(bench.ids() == [])
        bench.clock.pass(1_800)
        #expect(bench.ids() == ["daily"])
    }

    @Test("a clock that was wrong at boot and is put right brings what is due, and no more")
    func wrongAtBoot() throws {
        var bench = Bench("2026-03-01T12:00")
        try bench.add("at") { $0.at = "2026-03-01T15:00" }
        try bench.add("daily") { $0.calendar = "14:00" }
        bench.clock.wall = 1_000_000
        try bench.restart(boot: "two")
        _ = bench.table.clockChanged(bench.clock.clock, isElsewhere: false)
        #expect(bench.ids() == [])
        bench.clock.wall = FakeClock.moment("2026-03-01T15:01")
        _ = bench.table.clockChanged(bench.clock.clock, isElsewhere: false)
        #expect(bench.ids().sorted() == ["at", "daily"])
    }

    @Test("one that quiet hours hold back comes when they are over, and is not too old then")
    func held() throws {
        var bench = Bench("2026-03-01T22:30")
        let number = try bench.add("tea") { $0.calendar = "23:00" }
        bench.clock.pass(1_800)
        let came = bench.table.arrive(bench.clock.clock, missedAfter: 3_600_000_000) { 200 }
        #expect(came.map(\.alert.number) == [200])
        let end = FakeClock.moment("2026-03-02T07:00")
        let held = bench.table.hold(200, until: end, bench.clock.clock)
        let waits = try #require(held)
        #expect(waits.opening == nil && waits.heldUntil == end)
        try bench.restart()
        #expect(bench.table.nextDue(bench.clock.clock) == end)
        bench.clock.pass(to: "2026-03-02T07:00")
        let late = bench.arrive(missedAfter: 3_600_000_000)
        #expect(late.map(\.id) == ["tea"] && late[0].at == FakeClock.moment("2026-03-01T23:00") && !late[0].isMissed)
        #expect(bench.table.all.map(\.number) == [number])
    }

    @Test("quiet hours end in local time, also over midnight and summer time")
    func quiet() {
        let night = [(start: 22 * 60, end: 7 * 60)]
        let zone = FakeClock.berlin
        func end(_ time: String, _ windows: [(start: Int, end: Int)]) -> Int64? {
            QuietHours.end(windows, at: FakeClock.moment(time), in: zone)
        }
        #expect(end("2026-03-01T21:59", night) == nil)
        #expect(end("2026-03-01T22:00", night) == FakeClock.moment("2026-03-02T07:00"))
        #expect(end("2026-03-02T06:59", night) == FakeClock.moment("2026-03-02T07:00"))
        #expect(end("2026-03-02T07:00", night) == nil)
        #expect(end("2026-03-28T23:00", night) == FakeClock.moment("2026-03-29T07:00"))
        #expect(end("2026-03-02T12:30", [(720, 780), (750, 840)]) == FakeClock.moment("2026-03-02T14:00"))
        #expect(end("2026-03-29T01:30", [(60, 150)]) == FakeClock.moment("2026-03-29T03:00"))
    }

    @Test("more than five of an app in ten seconds are one; each app has its own five")
    func bundles() {
        var bundles = AlertBundles()
        let alone = (0..<5).map { bundles.show(Int64($0), of: "a", now: .seconds($0)) }
        #expect(alone.allSatisfy { $0 == nil })
        #expect(bundles.show(20, of: "b", now: .seconds(5)) == nil)
        #expect(bundles.show(5, of: "a", now: .seconds(5)) == .init(number: 5, count: 1, until: .seconds(15)))
        #expect(bundles.show(6, of: "a", now: .seconds(14))?.count == 2)
        #expect(bundles.end(of: "a") == .seconds(15))
        #expect(bundles.show(7, of: "a", now: .seconds(15)) == nil)
    }
}
