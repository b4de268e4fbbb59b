// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Mailbox
import Testing

@testable import EventSources

@Suite("Connections that are kept alive") struct KeepAliveTests {
    /// One that wants to say something each so many minutes.
    private static func toml(_ app: (name: String, minutes: Int)) -> String {
        """
        [apps.\(app.name)]
        exec = ["/bin/true"]
        launch = "on-demand"
        restart = "never"
        background_modes = ["voip"]
        keep_alive = "\(app.minutes)min"
        signals = { didReceiveEvent = "SIGUSR1" }

        """
    }

    /// Apps that want that, and have no process that could have connections.
    private func events(_ apps: (name: String, minutes: Int)...) throws -> FakeEvents {
        try FakeEvents(apps.map { Self.toml($0) }.joined(), process: nil)
    }

    @Test("A suspended app is woken for 10 s when it has slept so long, again and again") func wakes() throws {
        let events = try events(("web", 10))
        try events.putToSleep("web")
        for wake in 1...3 {
            try events.pass(.seconds(599))
            #expect(events.state("web") == .suspended)
            try events.pass(.seconds(1))
            #expect(events.state("web") == .background && events.wakeCount() == wake)
            try events.pass(.seconds(9))
            #expect(events.state("web") == .background)
            try events.pass(.seconds(1))
            #expect(events.state("web") == .suspended)
        }
        #expect(events.mail() == ["keep-alive: didReceiveEvent"], "only the last one is told")
        #expect(events.told("woken by its keep_alive of 10min").count == 3)
    }

    @Test("An app that runs, ends, or is woken by something else meanwhile is left alone until it has slept again")
    func awake() throws {
        let events = try events(("web", 10))
        try events.shell.start("web")
        try events.pass(.seconds(3_600))
        #expect(events.wakeCount() == 0)
        try events.putToSleep("web")
        try events.pass(.seconds(500))
        events.happen(.path)
        try events.pass(.seconds(60))
        #expect(events.state("web") == .suspended)
        try events.pass(.seconds(500))
        #expect(events.wakeCount() == 1)
        try events.pass(.seconds(100))
        #expect(events.wakeCount() == 2)
        try events.shell.request(.stop(.evicted), "web")
        try events.pass(.seconds(3_600))
        #expect(events.state("web") == .notRunning && events.wakeCount() == 2)
    }

    @Test("It counts from when the app fell asleep, whoever supervised it then") func since() throws {
        let events = try events(("web", 10))
        try events.shell.start("web")
        try events.putToSleep("web")
        // The next supervisor knows from the record when that was.
        events.app("web").times.enter(.suspended, at: events.shell.time.now - .seconds(400))
        events.wakes.configure()
        try events.pass(.seconds(200))
        #expect(events.wakeCount() == 1)
    }

    @Test("Apps whose time comes within a minute of each other, and a tenth of theirs, are woken together")
    func together()
        throws
    {
        let events = try events(("a", 30), ("b", 30), ("c", 10), ("d", 30))
        events.app("c").specification.keepAlive = .seconds(300)
        try events.putToSleep("a")
        try events.pass(.seconds(60))
        try events.putToSleep("b")
        try events.pass(.seconds(1))
        try events.putToSleep("d")
        try events.pass(.seconds(1_479))
        // Its time comes 40 s after that of a, which is more than a tenth of five minutes.
        try events.putToSleep("c")
        try events.pass(.seconds(260))
        #expect(["a", "b", "c", "d"].map { events.wakeCount($0) } == [1, 1, 0, 0])
        try events.pass(.seconds(39))
        #expect(["a", "b", "c", "d"].map { events.wakeCount($0) } == [1, 1, 0, 0])
        try events.pass(.seconds(1))
        #expect(["a", "b", "c", "d"].map { events.wakeCount($0) } == [1, 1, 1, 1])
    }

    @Test("An app that is kept down by a storm is woken when it is over") func storm() throws {
        let events = try events(("web", 10))
        events.app("web").specification.wakeStorm = WakeStormRules()
        events.app("web").specification.wakeStorm.limit = 1
        events.app("web").specification.wakeStorm.window = .seconds(3_600)
        events.app("web").specification.wakeStorm.hold = .seconds(1_000)
        try events.putToSleep("web")
        events.happen()
        try events.shell.suspend("web")
        try events.pass(.seconds(600))
        #expect(events.wakeCount() == 1 && events.state("web") == .suspended)
        try events.pass(.seconds(999))
        #expect(events.wakeCount() == 1)
        try events.pass(.seconds(1))
        #expect(events.wakeCount() == 2)
    }

    @Test("An app with a full mailbox is woken all the same: its connection wants to be kept") func full() throws {
        let events = try events(("web", 10))
        try events.putToSleep("web")
        events.host.full = [0]
        try events.pass(.seconds(600))
        #expect(events.wakeCount() == 1 && events.mail() == [])
    }

    @Test("What is configured anew counts for who sleeps already, and without the mode there is nothing to wait for")
    func configured() throws {
        let events = try events(("web", 30), ("db", 30))
        try events.putToSleep("web", "db")
        try events.pass(.seconds(300))
        let at = events.shell.time.now - .seconds(300)
        for name in ["web", "db"] { events.app(name).times.enter(.suspended, at: at) }
        events.configure("web") { $0.keepAlive = .seconds(600) }
        events.configure("db") { $0.backgroundModes = [] }
        try events.pass(.seconds(299))
        #expect(events.wakeCount() == 0)
        try events.pass(.seconds(1))
        #expect(events.wakeCount() == 1)
        events.configure("web") { $0.keepAlive = nil }
        try events.pass(.seconds(60))
        #expect(events.shell.time.next == nil && events.wakeCount("db") == 0)
    }

    @Test("An app that leaves is waited for no more") func leaves() throws {
        let events = try events(("web", 10), ("db", 20))
        try events.putToSleep("web", "db")
        try events.leave("web")
        try events.pass(.seconds(1_199))
        #expect(events.wakeCount("db") == 0)
        try events.pass(.seconds(1))
        #expect(events.wakeCount("db") == 1)
    }
}
