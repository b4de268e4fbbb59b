// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Mailbox
import Testing

@testable import EventSources

@Suite("What becomes of an event") struct WakesTests {
    static let toml = """
        [apps.web]
        exec = ["/bin/true"]
        launch = "on-demand"
        restart = "never"
        """

    @Test("An app that is not running is launched into the background, for the event") func launched() throws {
        let events = try FakeEvents(Self.toml)
        #expect(events.happen() == "woken")
        #expect(events.state("web") == .background)
        #expect(events.machine("web").launchOrder.reason == .event)
        #expect(events.host.delivered == [0])
        #expect(events.told("woken by").count == 1)
        #expect(events.told("woken by").first?.hasPrefix("woken by its timer after 0") == true)
        #expect(events.app("web").pendingWake == nil)
    }

    @Test("A suspended app runs for its event_time, and sleeps again") func resumed() throws {
        let events = try FakeEvents(Self.toml + "\nevent_time = \"20s\"")
        try events.putToSleep("web")
        #expect(events.happen() == "woken")
        #expect(events.state("web") == .background)
        try events.pass(.seconds(19))
        #expect(events.state("web") == .background)
        try events.pass(.seconds(1))
        #expect(events.state("web") == .suspended)
        #expect(events.wakeCount() == 1)
    }

    @Test("An event may give more time or less than event_time") func ownTime() throws {
        let events = try FakeEvents(Self.toml)
        try events.putToSleep("web")
        events.happen(wake: Wake(time: .seconds(10)))
        try events.pass(.seconds(9))
        #expect(events.state("web") == .background)
        try events.pass(.seconds(1))
        #expect(events.state("web") == .suspended)
    }

    @Test("An app that an event woke has its time again for the next one, and is not woken twice") func longer() throws
    {
        let events = try FakeEvents(Self.toml + "\nevent_time = \"20s\"")
        try events.putToSleep("web")
        events.happen()
        try events.pass(.seconds(15))
        #expect(events.happen() == "runs")
        try events.pass(.seconds(19))
        #expect(events.state("web") == .background)
        try events.pass(.seconds(1))
        #expect(events.state("web") == .suspended)
        #expect(events.wakeCount() == 1)
    }

    @Test("An app in the foreground stays there, and is told") func inForeground() throws {
        let events = try FakeEvents(Self.toml)
        try events.shell.start("web")
        #expect(events.happen(mail: .note()) == "runs")
        #expect(events.happen(wake: Wake(foreground: true)) == "runs")
        #expect(events.state("web") == .active)
        #expect(events.mail() == ["news: didReceiveEvent"] && events.host.delivered == [0, 0])
        try events.pass(.seconds(3_600))
        #expect(events.state("web") == .active)
    }

    @Test(
        "An event for the foreground brings an app there from wherever it is",
        arguments: [AppState.notRunning, .background, .suspended]
    )
    func foreground(from state: AppState) throws {
        let events = try FakeEvents(Self.toml)
        if state == .background { try events.shell.request(.start(background: true), "web") }
        if state == .suspended { try events.putToSleep("web") }
        #expect(events.happen(wake: Wake(foreground: true)) == "woken")
        #expect(events.state("web") == .active)
    }

    @Test("What wakes nobody waits for an app that sleeps or does not run") func quiet() throws {
        let events = try FakeEvents(Self.toml)
        #expect(events.happen(wake: nil, mail: .note("a")) == "runs")
        #expect(events.state("web") == .notRunning)
        try events.putToSleep("web")
        events.happen(wake: nil, mail: .note("b"))
        #expect(events.state("web") == .suspended)
        #expect(events.mail() == ["a: didReceiveEvent", "b: didReceiveEvent"])
        #expect(events.host.mail(for: events.app("web")).allSatisfy { $0.draft.wake == nil })
        #expect(events.wakeCount() == 0)
    }

    @Test("What waits says how it wakes its app") func mailWakes() throws {
        let events = try FakeEvents(Self.toml)
        events.happen(mail: .note("a"))
        events.happen(wake: Wake(foreground: true), mail: .note("b"))
        #expect(events.host.mail(for: events.app("web")).map(\.draft.wake) == [.background, .foreground])
    }

    @Test("Several events for one sleep are one wake, told when the app runs, with the time since the first")
    func oneWake() throws {
        let events = try FakeEvents(Self.toml + "\nready = \"notify\"")
        events.happen()
        #expect(events.machine("web").transition == .launching)
        try events.pass(.seconds(1))
        #expect(events.happen(.path) == "runs")
        #expect(events.told("woken by").isEmpty, "it does not run yet")
        events.shell.engine.deliver(.ready, to: 0)
        #expect(events.told("woken by") == ["woken by its timer after 1000.0 ms"])
        #expect(events.wakeCount() == 1)
    }

    @Test("Events for an app whose launch waits for another are one wake, told when it runs") func waits() throws {
        let events = try FakeEvents(
            Self.toml + "\nrequires = [\"db\"]\n[apps.db]\nexec = [\"/bin/true\"]\nready = \"notify\""
        )
        for _ in 0..<400 { #expect(events.happen() == "woken") }
        #expect(events.machine("web").isWaitingToLaunch && events.told("woken by").isEmpty)
        events.shell.engine.deliver(.ready, to: events.app("db").id)
        #expect(events.state("web") == .background && events.wakeCount() == 1)
        #expect(events.told("wake_storm").isEmpty)
    }

    @Test("A launch that comes to nothing is no wake, and the next event wakes the app anew") func launchFails() throws
    {
        let events = try FakeEvents(Self.toml)
        events.shell.hands.isIdle = [0]
        events.happen()
        #expect(events.app("web").pendingWake != nil)
        events.shell.engine.deliver(.launchFailed, to: 0)
        events.shell.engine.deliver(.allGone, to: 0)
        #expect(events.state("web") == .notRunning && events.app("web").pendingWake == nil)
        events.shell.hands.isIdle = []
        #expect(events.happen(.path) == "woken")
        #expect(events.told("woken by").count == 1 && events.told("woken by").first?.contains("its path") == true)
    }

    @Test("An app that is suspended before it has come to run is woken by the next event") func suspendedMeanwhile()
        throws
    {
        let events = try FakeEvents(Self.toml + "\nready = \"notify\"\nbackground_time = \"0s\"")
        events.happen()
        #expect(events.machine("web").transition == .launching)
        try events.shell.suspend("web")
        events.shell.engine.deliver(.ready, to: 0)
        try events.pass(.seconds(10))
        #expect(events.state("web") == .suspended)
        #expect(events.happen(.path) == "woken")
        #expect(events.state("web") == .background)
    }

    @Test("An event that comes while the app ends launches it afterwards") func whileEnding() throws {
        let events = try FakeEvents(Self.toml)
        try events.shell.request(.start(background: true), "web")
        events.shell.hands.isIdle = [0]
        try events.shell.request(.stop(.evicted), "web")
        #expect(events.machine("web").transition == .terminating)
        events.happen()
        #expect(events.told("woken by").isEmpty)
        events.shell.hands.isIdle = []
        events.shell.engine.deliver(.mainExited(.exited(code: 0)), to: 0)
        #expect(events.state("web") == .background)
        #expect(events.machine("web").launchOrder.reason == .event)
    }

    @Test("A connection is a use of the app, and a timer is not") func uses() throws {
        let events = try FakeEvents(Self.toml)
        events.happen(.timer)
        #expect(events.app("web").times.lastUse == StateTimes.never)
        try events.putToSleep("web")
        try events.pass(.seconds(7))
        events.happen(.socket)
        #expect(events.app("web").times.lastUse == events.shell.time.now.microseconds)
    }

    @Test("An app with a full mailbox is woken for what it is not told, so that it makes room") func fullMailbox()
        throws
    {
        let events = try FakeEvents(Self.toml)
        events.host.full = [0]
        let event = WakeEvent(.path, "inbox", "a file", mail: .note(), at: events.shell.time.now)
        #expect(throws: Mailbox.Refusal.self) { try events.wakes.happened(event, for: events.app("web")) }
        #expect(events.state("web") == .notRunning, "who has to know of it is told, and the app is not woken")
        #expect(events.happen(mail: .note()) == "woken")
        #expect(events.state("web") == .background && events.mail() == [])
    }

    @Test("What waited for an app wakes it as it was to") func waitingMail() throws {
        let events = try FakeEvents(Self.toml)
        events.happen(wake: nil, mail: .note())
        let quiet = try #require(events.host.mail(for: events.app("web")).first)
        _ = events.wakes.wake(events.app("web"), for: quiet)
        #expect(events.state("web") == .notRunning)
        var draft = MailDraft.note("call")
        draft.wake = .foreground
        try events.host.add(draft, for: events.app("web"))
        let urgent = try #require(events.host.mail(for: events.app("web")).last)
        _ = events.wakes.wake(events.app("web"), for: urgent)
        #expect(events.state("web") == .active)
        #expect(events.told("woken by").first?.hasPrefix("woken by call from test, which waited") == true)
        #expect(events.mail().count == 2, "it is put into the mailbox once")
    }
}
