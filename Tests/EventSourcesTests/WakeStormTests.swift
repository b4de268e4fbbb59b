// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Mailbox
import Testing

@testable import EventSources

@Suite("Too many events") struct WakeStormTests {
    /// Three wakes within a minute, and events wait for two.
    static let toml =
        WakesTests.toml + """

            [apps.web.wake_storm]
            limit = 3
            window = "1min"
            hold = "2min"

            """

    /// Wakes the app from its sleep so often, as often as it is let.
    private func wake(_ events: FakeEvents, _ times: Int, _ name: String = "web") throws {
        for _ in 0..<times {
            try events.putToSleep(name)
            events.happen(for: name)
        }
    }

    private static let tooOften = "was woken too often"

    @Test("One wake more than the limit is a storm: it is reported once, and events wait") func storm() throws {
        let events = try FakeEvents(Self.toml)
        try wake(events, 3)
        #expect(events.wakeCount() == 3 && events.told("wake_storm").isEmpty)
        try events.putToSleep("web")
        #expect(events.happen(mail: .note()) == Self.tooOften)
        #expect(events.happen(mail: .note()) == Self.tooOften)
        #expect(events.state("web") == .suspended && events.mail().count == 2)
        #expect(events.told("wake_storm").count == 1)
        #expect(
            events.told("wake_storm").first?.hasPrefix("was woken 3 times in 1min, the last time by its timer") == true
        )
    }

    @Test("When the time is over what waits is tried again, and the app may be woken as often as before")
    func over() throws {
        let events = try FakeEvents(Self.toml)
        try wake(events, 4)
        try events.pass(.seconds(119))
        #expect(events.happen() == Self.tooOften && events.host.retried.isEmpty)
        try events.pass(.seconds(1))
        #expect(events.host.retried == [0])
        try wake(events, 3)
        #expect(events.wakeCount() == 6 && events.told("wake_storm").count == 1)
        try wake(events, 1)
        #expect(events.told("wake_storm").count == 2)
    }

    @Test("Wakes count for the window alone") func window() throws {
        let events = try FakeEvents(Self.toml)
        for _ in 0..<12 {
            try wake(events, 1)
            try events.pass(.seconds(20))
        }
        #expect(events.wakeCount() == 12 && events.told("wake_storm").isEmpty)
    }

    @Test("Without a limit there is no storm") func noLimit() throws {
        let events = try FakeEvents(Self.toml)
        events.app("web").specification.wakeStorm.limit = 0
        try wake(events, 1_000)
        #expect(events.wakeCount() == 1_000)
    }

    @Test("Events of an app that runs are no wakes") func running() throws {
        let events = try FakeEvents(Self.toml)
        try events.shell.request(.start(background: true), "web")
        for _ in 0..<100 { #expect(events.happen() == "runs") }
        try events.putToSleep("web")
        #expect(events.happen() == "woken")
    }

    @Test("A storm of one app holds back no other") func others() throws {
        let events = try FakeEvents(Self.toml + "[apps.db]\nexec = [\"/bin/true\"]")
        try wake(events, 4)
        try wake(events, 20, "db")
        #expect(events.wakeCount("db") == 20 && events.state("web") == .suspended)
    }

    @Test("A person who starts the app ends it") func started() throws {
        let events = try FakeEvents(Self.toml)
        try wake(events, 4)
        events.wakes.startedByPerson(events.app("web"))
        try wake(events, 3)
        #expect(events.wakeCount() == 6)
    }

    @Test("With the action ‘end’ the app is ended, and events launch it when the time is over") func ends() throws {
        let events = try FakeEvents(Self.toml + "action = \"end\"")
        try wake(events, 4)
        #expect(events.state("web") == .notRunning)
        #expect(events.machine("web").lastEnding == .wakeStorm)
        #expect(events.happen() == Self.tooOften)
        try events.pass(.seconds(120))
        #expect(events.happen() == "woken")
    }

    @Test("An app that leaves in a storm is left alone, and so is the supervisor") func forgotten() throws {
        let events = try FakeEvents(Self.toml + "[apps.db]\nexec = [\"/bin/true\"]")
        try wake(events, 4)
        try events.leave("web")
        try events.pass(.seconds(600))
        #expect(events.host.retried.isEmpty && events.shell.engine.apps.map(\.name) == ["db"])
    }

    // MARK: What policies undo

    /// An event launches the app, and a policy ends it at once.
    private func undo(_ events: FakeEvents, after time: Duration = .zero) throws {
        try #require(events.happen() == "woken")
        let web = events.app("web")
        web.run.launchedAt = events.shell.time.now
        try events.pass(time)
        web.isEndedByPolicy = true
        try events.shell.request(.stop(.evicted), "web")
        web.isEndedByPolicy = nil
        try #require(events.state("web") == .notRunning)
    }

    @Test("What a policy ends right after an event had launched it waits for 1 s, then 2, up to ‘hold’") func undone()
        throws
    {
        let events = try FakeEvents(Self.toml)
        events.app("web").specification.wakeStorm.limit = 0
        for seconds in [1, 2, 4, 8, 16, 32, 64, 120, 120] {
            try undo(events)
            #expect(events.happen() == "is kept down by a policy", "the pause of \(seconds) s")
            try events.pass(.seconds(seconds) - .microseconds(1))
            #expect(events.happen() == "is kept down by a policy", "the pause of \(seconds) s")
            try events.pass(.microseconds(1))
        }
        #expect(events.host.retried.count == 9)
        #expect(events.told("events wait for").first?.hasSuffix("events wait for 1s") == true)
    }

    @Test("What a policy ends later than that, or what no event launched, does not wait") func notUndone() throws {
        let events = try FakeEvents(Self.toml)
        try undo(events, after: events.app("web").specification.rules.backoff.stableAfter)
        try undo(events, after: .seconds(1))
        #expect(events.happen() == "is kept down by a policy")
        try events.pass(.seconds(300))
        let web = events.app("web")
        try events.shell.start("web")
        web.run.launchedAt = events.shell.time.now
        web.isEndedByPolicy = true
        try events.shell.request(.stop(.evicted), "web")
        #expect(events.happen() == "woken")
    }

    @Test("What a policy did not let an event launch waits likewise, and is tried again") func refused() throws {
        let events = try FakeEvents(Self.toml)
        events.wakes.refusedByPolicy(events.app("web"))
        #expect(events.happen() == "is kept down by a policy" && events.host.retried.isEmpty)
        try events.pass(.seconds(1))
        #expect(events.host.retried == [0])
        #expect(events.happen() == "woken")
    }

    @Test("What a policy undoes in a storm does not end the storm: it is tried again when that is over") func both()
        throws
    {
        let events = try FakeEvents(Self.toml + "[[apps.web.timers]]\nafter_start = \"5s\"\naccuracy = \"0s\"")
        try wake(events, 4)
        events.wakes.refusedByPolicy(events.app("web"))
        try events.pass(.seconds(10))
        #expect(events.state("web") == .suspended, "its timer has come, and may not wake it")
        try events.pass(.seconds(111))
        #expect(events.state("web") == .background, "when the storm is over it does")
    }
}
