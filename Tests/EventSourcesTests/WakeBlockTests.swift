// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Mailbox
import Testing

@testable import EventSources

@Suite("Who is not woken") struct WakeBlockTests {
    /// How a person, or the restart policy, has it that events do not launch an app.
    enum End: CaseIterable {
        case stop, forceQuit, failure

        func end(_ events: FakeEvents) throws {
            switch self {
            case .stop: try events.shell.request(.stop(.stopped), "web")
            case .forceQuit: try events.shell.request(.forceQuit, "web")
            case .failure:
                for _ in 0..<20 where !events.machine("web").failed {
                    events.shell.engine.deliver(.mainExited(.exited(code: 1)), to: 0)
                    try events.pass(.seconds(60))
                }
            }
        }

        var block: WakeBlock {
            switch self {
            case .stop: .stopped
            case .forceQuit: .forceQuit
            case .failure: .failed
            }
        }
    }

    @Test(
        "Whom a person stopped or force-quit, or who has failed: what is for it waits until it is started",
        arguments: End.allCases
    )
    func ended(_ end: End) throws {
        let events = try FakeEvents(
            """
            [apps.web]
            exec = ["/bin/true"]
            restart = "always"
            restart_backoff = { limit = 3 }
            """
        )
        try events.shell.start("web")
        #expect(events.machine("web").blocksWaking == nil)
        try end.end(events)
        #expect(events.machine("web").blocksWaking == end.block)
        #expect(events.happen(.path, mail: .note()) == "is not launched by events until a user starts it")
        #expect(events.state("web") == .notRunning && events.mail().count == 1)
        #expect(events.app("web").pendingWake == nil)
        #expect(events.told("is not woken by its path: it is not launched").count == 1)
        try events.shell.start("web")
        #expect(events.machine("web").blocksWaking == nil && events.wakeCount() == 0)
        try events.shell.suspend("web")
        #expect(events.happen() == "woken")
    }

    @Test("Timers launch an app that has failed, and none that a person stopped", arguments: End.allCases)
    func timer(_ end: End) throws {
        let events = try FakeEvents(
            """
            [apps.web]
            exec = ["/bin/true"]
            restart = "always"
            restart_backoff = { limit = 3 }
            """
        )
        try events.shell.start("web")
        try end.end(events)
        #expect(events.machine("web").blocksTimers == (end == .failure ? nil : end.block))
        #expect((events.happen(.timer) == "woken") == (end == .failure))
        #expect(events.machine("web").failed == false)
        #expect(events.state("web") == (end == .failure ? .background : .notRunning))
    }

    @Test("Whom a restart ends for a moment is woken") func restarting() throws {
        let events = try FakeEvents(WakesTests.toml)
        try events.shell.start("web")
        events.shell.hands.isIdle = [0]
        try events.shell.request(.restart, "web")
        #expect(events.machine("web").transition == .terminating)
        #expect(events.machine("web").blocksWaking == nil)
        events.shell.hands.isIdle = []
        events.shell.engine.deliver(.mainExited(.exited(code: 0)), to: 0)
        try events.putToSleep("web")
        #expect(events.happen() == "woken")
    }

    @Test(
        "Whom a person force-quit is woken by the modes that wake_after_force_quit names, and by no others",
        arguments: [
            (WakeSource.location, "location", true), (.fetch, "fetch", true), (.audio, "audio", true),
            (.bluetooth, "bluetooth-peripheral", true), (.connection, "voip", true),
            (.accessory, "external-accessory", true), (.message, "remote-notification", true),
            (.timer, "location", false), (.fetch, "location", false), (.path, "fetch", false),
            (.location, "no such mode", false),
        ]
    )
    func afterForceQuit(_ source: WakeSource, _ mode: String, _ isWoken: Bool) throws {
        let events = try FakeEvents(WakesTests.toml)
        events.app("web").specification.wakeAfterForceQuit = [mode]
        try events.shell.start("web")
        try events.shell.request(.forceQuit, "web")
        var mail = MailDraft.note()
        if source == .message {
            #expect(events.happen(.message, mail: mail) != "woken", "it came from this machine")
            mail.message = Message.didReceiveRemoteNotification.rawValue
        }
        #expect((events.happen(source, mail: mail) == "woken") == isWoken)
        #expect(events.state("web") == (isWoken ? .background : .notRunning))
    }

    @Test("A person's stop is stronger than wake_after_force_quit") func stopped() throws {
        let events = try FakeEvents(WakesTests.toml)
        events.app("web").specification.wakeAfterForceQuit = ["location"]
        try events.shell.start("web")
        try events.shell.request(.stop(.stopped), "web")
        #expect(events.happen(.location) != "woken")
        #expect(events.state("web") == .notRunning)
    }

    @Test(
        "Before the first unlock: those that before_first_unlock names",
        arguments: [
            ("all", true, true), ("unprotected", true, false), ("unprotected", false, true), ("none", false, false),
        ]
    )
    func beforeFirstUnlock(_ word: String, _ isProtected: Bool, _ isWoken: Bool) throws {
        let topics = isProtected ? "\"protected-data\"" : ""
        let events = try FakeEvents(
            WakesTests.toml + "\nbefore_first_unlock = \"\(word)\"\nnotifications = [\(topics)]"
        )
        events.host.isBeforeFirstUnlock = true
        let outcome = events.happen()
        #expect((outcome == "woken") == isWoken, "\(outcome)")
        #expect(events.app("web").wakes == nil || isWoken, "who may not be woken at all makes no storm")
        events.host.isBeforeFirstUnlock = false
        #expect(isWoken || events.happen() == "woken")
    }

    @Test("What a source could not wake an app for before the first unlock does with the unlock") func unlocked() throws
    {
        let events = try FakeEvents(
            WakesTests.toml + "\nbefore_first_unlock = \"none\"\n[[apps.web.timers]]\nevery = \"1h\""
        )
        events.host.isBeforeFirstUnlock = true
        try events.pass(.seconds(3_600))
        #expect(events.state("web") == .notRunning)
        events.wakes.lookAgain()
        #expect(events.state("web") == .notRunning && events.host.retried == [0])
        events.host.isBeforeFirstUnlock = false
        events.wakes.lookAgain()
        #expect(events.state("web") == .background && events.wakeCount() == 1)
    }

    @Test("An app that opts out of the background is launched for the foreground alone") func exitsOnSuspend() throws {
        let events = try FakeEvents(WakesTests.toml + "\nexits_on_suspend = true")
        #expect(events.happen(mail: .note()).contains("exits_on_suspend"))
        #expect(events.state("web") == .notRunning && events.mail().count == 1)
        #expect(events.happen(wake: Wake(foreground: true)) == "woken")
        #expect(events.state("web") == .active)
    }
}
