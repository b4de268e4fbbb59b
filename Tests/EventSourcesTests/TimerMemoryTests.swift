// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Schedules
import Store
import Testing
import Varlink

@testable import EventSources

@Suite("What is kept of timers and fetches") struct TimerMemoryTests {
    private static let now = ClockPair(running: .seconds(5_000), wall: FakeEventHost.beginning)

    private func row(_ learned: String?, last: Int64? = nil) -> StoredSchedule {
        var row = StoredSchedule(app: "web", name: "timer:t")
        row.learned = learned
        row.lastFired = last
        return row
    }

    @Test("All of it comes back in the same boot") func sameBoot() {
        var history = TimerHistory(now: Self.now)
        history.lastWall = 17
        history.sinceWall = 12
        history.since = .seconds(40)
        history.anchor = .seconds(50)
        history.cameAfterBoot = true
        history.cameAfterStart = true
        let text = TimerMemory(history).json.description
        let later = ClockPair(running: .seconds(9_000), wall: FakeEventHost.beginning + 4_000_000_000)
        let memory = TimerMemory(row(text, last: 17), now: later)
        #expect(memory.history == history && memory.isOfThisBoot)
    }

    @Test("Of another boot only what stands on the wall counts") func otherBoot() throws {
        var history = TimerHistory(now: Self.now)
        history.sinceWall = 12
        history.since = .seconds(40)
        history.anchor = .seconds(50)
        history.cameAfterBoot = true
        history.cameAfterStart = true
        var object = try #require(TimerMemory(history).json.objectValue)
        object["boot"] = "another one"
        let memory = TimerMemory(row(JSON.object(object).description, last: 17), now: Self.now)
        #expect(!memory.isOfThisBoot)
        var expected = TimerHistory(now: Self.now)
        expected.lastWall = 17
        expected.sinceWall = 12
        #expect(memory.history == expected)
    }

    @Test(
        "What is no memory is a timer that is new",
        arguments: [
            nil, "", "{", "[]", "null", "7", #"{"boot": 3, "since": "x", "anchor_us": [], "came_after_boot": 1}"#,
        ]
    )
    func garbage(_ text: String?) {
        let memory = TimerMemory(row(text), now: Self.now)
        #expect(memory.history == TimerHistory(now: Self.now) && !memory.isOfThisBoot)
    }

    @Test(
        "Numbers that cannot be do no harm, whoever goes on with them",
        arguments: [Int64.min, -1, 0, .max],
        [true, false]
    )
    func impossibleNumbers(_ number: Int64, _ isSuccessor: Bool) throws {
        let json: JSON = [
            "boot": .string(ThisProcess.bootID), "since": .int(number), "since_boot_us": .int(number),
            "anchor_us": .int(number), "came_after_boot": false, "came_after_start": false,
        ]
        let toml = TimersTests.toml(
            ("web", "every = \"1h\"\npersistent = true\nafter_start = \"1s\""),
            ("db", "calendar = \"09:00 UTC\"\npersistent = true"),
            ("a", "every = \"1h\"\nafter_boot = \"1s\"")
        )
        let rows = ["web", "db", "a"].map { name in
            var row = StoredSchedule(app: name, name: "timer:t")
            row.learned = json.description
            row.lastFired = number
            return row
        }
        let events = try FakeEvents(toml, remembered: rows) { host, _ in host.isSuccessor = isSuccessor }
        try events.pass(.seconds(86_400))
        #expect(events.wakes.timers.statuses(of: events.shell.engine.apps.all).count == 3)
        #expect(events.state("db") != .notRunning, "a day has 09:00")
    }

    // MARK: Fetches

    @Test("What an app's fetches have learned comes back") func fetches() throws {
        var learned = FetchState.FetchHistory(interval: .milliseconds(123_456))
        learned.failures = 3
        learned.counts = [.newData: 4, .failed: 1]
        let memory = try #require(FetchMemory(row(FetchMemory(learned).json.description)))
        #expect(memory.learned == learned)
    }

    @Test(
        "What says no interval says nothing",
        arguments: [
            nil, "", "[]", "{}", #"{"interval_ms": 0}"#, #"{"interval_ms": -5}"#, #"{"interval_ms": "9"}"#,
        ]
    )
    func noFetches(_ text: String?) { #expect(FetchMemory(row(text)) == nil) }

    @Test("What was counted can be counted on, whatever was kept", arguments: [Int64.min, -1, .max])
    func impossibleFetches(_ number: Int64) throws {
        let json: JSON = [
            "interval_ms": .int(.max), "failures": .int(number),
            "counts": ["new-data": .int(number), "no-data": .int(number), "failed": .int(number)],
        ]
        var row = StoredSchedule(app: "mail", name: "fetch")
        row.learned = json.description
        row.lastFired = number
        let events = try FakeEvents(FetchTests.toml, remembered: [row])
        events.attend("mail")
        for result in FetchResult.allCases {
            try events.pass(.seconds(2 * 86_400))
            events.wakes.timers.fetched(events.app("mail"), result)
            #expect(events.told("looked for new content", of: "mail").last?.contains(result.rawValue) == true)
        }
    }
}
