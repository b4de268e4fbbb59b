// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Mailbox
import Schedules
import Store
import Testing
import TorporAPI
import Varlink

@testable import EventSources

@Suite("Timers of apps") struct TimersTests {
    /// Apps with one timer each.
    static func toml(_ timers: (app: String, text: String)...) -> String {
        timers.map { app, text in
            """
            [apps.\(app)]
            exec = ["/bin/true"]
            launch = "on-demand"
            restart = "never"
            signals = { didReceiveEvent = "SIGUSR1" }
            [[apps.\(app).timers]]
            name = "t"
            accuracy = "0s"
            \(text)

            """
        }.joined(separator: "\n")
    }

    /// How often the app's timer has come, by what waits for the app.
    private func count(_ events: FakeEvents, _ name: String = "web") -> Int64 {
        events.host.mail(for: events.app(name)).reduce(0) { $0 + $1.count }
    }

    @Test("Nothing comes before what is kept was read and the first launches are under way") func begins() throws {
        let events = try FakeEvents(Self.toml(("web", "after_boot = \"1s\"")), remembered: nil)
        try events.pass(.seconds(60))
        #expect(count(events) == 0 && !events.wakes.timers.hasBegun)
        events.remember([])
        try events.pass(.zero)
        #expect(count(events) == 1 && events.state("web") == .background)
    }

    @Test("What comes ‘every’ so often comes in even steps, and what the app has not heard is one message")
    func every() throws {
        let events = try FakeEvents(Self.toml(("web", "every = \"10min\"\npayload = { scope = [1, true, \"all\"] }")))
        try events.pass(.seconds(599))
        #expect(count(events) == 0)
        try events.pass(.seconds(1))
        #expect(count(events) == 1 && events.wakeCount() == 1)
        try events.pass(.seconds(1_799))
        #expect(count(events) == 3)
        try events.pass(.seconds(1))
        #expect(count(events) == 4)
        #expect(events.mail() == ["timer:t: didReceiveEvent"])
        #expect(try events.payload() == JSON.parse(#"{"scope": [1, true, "all"]}"#))
    }

    @Test("A time of the calendar comes when the clock on the wall shows it") func calendar() throws {
        // It is a Friday, 08:00.
        let events = try FakeEvents(Self.toml(("web", "calendar = [\"Fri 09:30 UTC\", \"Sat 08:00 UTC\"]")))
        try events.pass(.seconds(5_399))
        #expect(count(events) == 0)
        try events.pass(.seconds(1))
        #expect(count(events) == 1)
        try events.pass(.seconds(86_400 - 5_400))
        #expect(count(events) == 2)
        try events.pass(.seconds(6 * 86_400 + 5_400))
        #expect(count(events) == 3)
    }

    @Test(
        "‘after_boot’ comes once in a boot, at once where it is past",
        arguments: [(500, 0), (1_000, 0), (1_060, 60)]
    )
    func afterBoot(_ seconds: Int, _ left: Int) throws {
        let events = try FakeEvents(Self.toml(("web", "after_boot = \"\(seconds)s\"")))
        try events.pass(.seconds(left) - .microseconds(left > 0 ? 1 : 0))
        #expect(count(events) == (left > 0 ? 0 : 1))
        try events.pass(.seconds(3_600))
        #expect(count(events) == 1)
        // The next torpord of this boot.
        let kept = Array(events.host.kept.values)
        let next = try FakeEvents(Self.toml(("web", "after_boot = \"\(seconds)s\"")), remembered: kept)
        try next.pass(.seconds(3_600))
        #expect(count(next) == 0)
    }

    @Test("‘after_start’ comes again after another start, and not of one that goes on", arguments: [true, false])
    func afterStart(_ isSuccessor: Bool) throws {
        let toml = Self.toml(("web", "after_start = \"5s\""))
        let events = try FakeEvents(toml)
        try events.pass(.seconds(60))
        #expect(count(events) == 1)
        let kept = Array(events.host.kept.values)
        let next = try FakeEvents(toml, remembered: kept) { host, _ in host.isSuccessor = isSuccessor }
        try next.pass(.seconds(60))
        #expect(count(next) == (isSuccessor ? 0 : 1))
    }

    @Test(
        "An interval goes on where the torpord before was, and begins anew with another start",
        arguments: [true, false]
    )
    func goesOn(_ isSuccessor: Bool) throws {
        let toml = Self.toml(("web", "every = \"10min\""))
        let events = try FakeEvents(toml)
        try events.pass(.seconds(600))
        let kept = Array(events.host.kept.values)
        // Four minutes later.
        let next = try FakeEvents(toml, remembered: kept) { host, shell in
            host.isSuccessor = isSuccessor
            try shell.pass(.seconds(840))
        }
        try next.pass(.seconds(359))
        #expect(count(next) == 0)
        try next.pass(.seconds(1))
        #expect(count(next) == (isSuccessor ? 1 : 0))
        try next.pass(.seconds(240))
        #expect(count(next) == 1)
    }

    @Test("What was missed is made up for once by what is persistent, and by nothing else", arguments: [true, false])
    func persistent(_ isPersistent: Bool) throws {
        let text = "calendar = \"*:00 UTC\"" + (isPersistent ? "\npersistent = true" : "")
        let events = try FakeEvents(Self.toml(("web", text)))
        #expect(events.wakes.timers.arePersistent == isPersistent)
        try events.pass(.seconds(1))
        #expect(count(events) == 0, "a timer that is new has missed nothing")
        let kept = Array(events.host.kept.values)
        // Half past four, after three times that nobody saw.
        let next = try FakeEvents(Self.toml(("web", text)), remembered: kept) { host, _ in host.slept = .seconds(12_600)
        }
        try next.pass(.zero)
        #expect(count(next) == (isPersistent ? 1 : 0))
        try next.pass(.seconds(1_800))
        #expect(count(next) == (isPersistent ? 2 : 1))
    }

    @Test("A oneshot that a timer may not launch has begun nothing to make up for", arguments: [true, false])
    func notBegun(isStopped: Bool) throws {
        let text = Self.toml(("web", "every = \"1h\"\npersistent = true"))
            .replacing("restart = \"never\"", with: "type = \"oneshot\"")
        let events = try FakeEvents(text)
        if isStopped { try events.shell.request(.stop(.stopped), "web") }
        try events.pass(.seconds(3_600))
        let rows = events.host.kept.values.filter { $0.key.name == "timer:t" }
        #expect(rows.map { $0.learned?.contains("\"unfinished\":\(!isStopped)") } == [true], "\(rows)")
    }

    @Test("An app without ears and payload is woken, and not told") func withoutEars() throws {
        let events = try FakeEvents(Self.toml(("web", "every = \"1h\"")))
        events.configure("web") { $0.signals = [:] }
        try events.pass(.seconds(3_600))
        #expect(count(events) == 0 && events.wakeCount() == 1)
    }

    @Test("With wake = \"none\" the app is told when it runs anyway, ears or none") func wakesNobody() throws {
        let events = try FakeEvents(Self.toml(("web", "every = \"1h\"\nwake = \"none\"")))
        events.configure("web") { $0.signals = [:] }
        try events.pass(.seconds(7_200))
        #expect(count(events) == 2 && events.state("web") == .notRunning && events.wakeCount() == 0)
    }

    @Test("Timers come together within their accuracy, and one that is alone comes when it is due") func together()
        throws
    {
        let events = try FakeEvents(
            Self.toml(
                ("db", "after_start = \"100s\""),
                ("web", "after_start = \"70s\"")
            ).replacing("accuracy = \"0s\"", with: "accuracy = \"1min\"")
        )
        try events.pass(.seconds(99))
        #expect(count(events) == 0 && count(events, "db") == 0)
        try events.pass(.seconds(1))
        #expect(count(events) == 1 && count(events, "db") == 1)
        let alone = try FakeEvents(
            Self.toml(("web", "after_start = \"70s\"")).replacing("accuracy = \"0s\"", with: "accuracy = \"1min\"")
        )
        try alone.pass(.seconds(70))
        #expect(count(alone) == 1)
    }

    @Test("The supervisor wakes for nothing between") func nothingBetween() throws {
        let events = try FakeEvents(Self.toml(("web", "every = \"10h\"\nwake = \"none\""), ("db", "every = \"1d\"")))
        #expect(events.shell.time.next == .seconds(1_000 + 36_000))
        events.shell.engine.isEnding = true
        try events.pass(.seconds(100_000))
        #expect(count(events) == 0 && count(events, "db") == 0, "a supervisor that ends begins nothing")
    }

    // MARK: Other configurations

    @Test("A timer that did not change goes on with another configuration, and one that did begins anew")
    func configured() throws {
        let events = try FakeEvents(Self.toml(("web", "every = \"10min\""), ("db", "every = \"10min\"")))
        try events.pass(.seconds(540))
        events.configure("db") { $0.timers[0].every = .seconds(300) }
        try events.pass(.seconds(60))
        #expect(count(events) == 1 && count(events, "db") == 0)
        try events.pass(.seconds(240))
        #expect(count(events, "db") == 1)
    }

    @Test("A timer that is gone comes no more and is forgotten, and one of that name that comes back is new")
    func removed() throws {
        let events = try FakeEvents(Self.toml(("web", "after_boot = \"1s\"")))
        try events.pass(.seconds(1))
        let timers = events.app("web").specification.timers
        events.configure("web") { $0.timers = [] }
        #expect(events.host.forgotten == [StoredSchedule.Key(app: "web", name: "timer:t")] && events.host.kept.isEmpty)
        try events.pass(.seconds(3_600))
        #expect(count(events) == 1 && events.shell.time.next == nil)
        events.configure("web") { $0.timers = timers }
        try events.pass(.zero)
        #expect(count(events) == 2)
    }

    @Test("Timers of an app that leaves come no more, and one of another app goes on") func leaves() throws {
        let events = try FakeEvents(Self.toml(("web", "every = \"10min\""), ("db", "every = \"20min\"")))
        let web = events.app("web")
        try events.leave("web")
        #expect(events.shell.time.next == .seconds(1_000 + 1_200), "nothing is waited for before")
        try events.pass(.seconds(1_200))
        #expect(events.host.mail(for: web).isEmpty && count(events, "db") == 1)
        #expect(events.wakes.timers.statuses(of: events.shell.engine.apps.all).map(\.app) == ["db"])
    }

    @Test("An app that goes by what another one is told, in the same look, is told nothing more") func leavesMeanwhile()
        throws
    {
        let events = try FakeEvents(Self.toml(("a", "after_start = \"10s\""), ("b", "after_start = \"11s\"")))
        events.configure("a") { $0.timers[0].writtenAccuracy = .seconds(5) }
        let b = events.app("b")
        events.host.onMail = { app in if app.name == "a" { try? events.leave("b") } }
        try events.pass(.seconds(60))
        #expect(count(events, "a") == 1 && events.host.mail(for: b).isEmpty)
        events.host.onMail = nil
    }

    // MARK: Who may not be woken

    @Test("An app that was woken too often is told at once, and woken when it may be, once for each timer")
    func heldBack()
        throws
    {
        let events = try FakeEvents(Self.toml(("web", "every = \"10s\"")))
        try events.putToSleep("web")
        events.app("web").specification.wakeStorm.limit = 1
        events.happen()
        try events.shell.suspend("web")
        #expect(events.happen() == "was woken too often")
        try events.pass(.seconds(59))
        #expect(count(events) == 5 && events.state("web") == .suspended)
        try events.pass(.seconds(1))
        #expect(count(events) == 6 && events.state("web") == .background && events.wakeCount() == 2)
    }

    @Test("A timer of an app with a full mailbox wakes it all the same: its work is due") func full() throws {
        let events = try FakeEvents(Self.toml(("web", "every = \"1h\"")))
        events.host.full = [0]
        try events.pass(.seconds(3_600))
        #expect(events.state("web") == .background && events.wakeCount() == 1 && events.mail() == [])
        events.host.full = []
        try events.pass(.seconds(3_600))
        #expect(count(events) == 1)
    }

    @Test(
        "A timer says in its list when it comes, when it came, and why it launches nothing",
        arguments: [WakeBlockTests.End.stop, .forceQuit]
    )
    func listed(_ end: WakeBlockTests.End) throws {
        let events = try FakeEvents(
            Self.toml(("web", "every = \"1h\""), ("db", "calendar = \"09:00 UTC\"\nwake = \"none\""))
        )
        try events.pass(.seconds(3_600))
        for name in ["web", "db"] {
            if !events.machine(name).isAlive { try events.shell.start(name) }
        }
        try end.end(events)
        try events.shell.request(.stop(.stopped), "db")
        let all = events.wakes.timers.statuses(of: events.shell.engine.apps.all)
        #expect(all.map(\.app) == ["web", "db"])
        #expect(all.map(\.next) == [7_200, 3_600 + 86_400].map { FakeEventHost.beginning + $0 * 1_000_000 })
        #expect(all.map(\.last) == [3_600, 3_600].map { FakeEventHost.beginning + $0 * 1_000_000 })
        #expect(all.map(\.blocked) == [end.block.rawValue, nil], "what wakes nobody is not blocked")
        #expect(all.map(\.when) == ["every 1h", "09:00 UTC"])
    }
}
