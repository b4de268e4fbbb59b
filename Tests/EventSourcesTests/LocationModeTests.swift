// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import KernelFiles
import Lifecycle
import Linux
import Location
import Mailbox
import Testing
import TorporAPI
import Varlink

@testable import EventSources

@Suite("The background mode for positions") struct LocationModeTests {
    private static func toml(_ location: String, _ rest: String = "") -> String {
        """
        [apps.guide]
        exec = ["/bin/true"]
        launch = "on-demand"
        restart = "never"
        background_modes = ["location"]
        location = { \(location) }
        signals = { didReceiveEvent = "SIGUSR1" }
        \(rest)

        """
    }

    private static let region = """
        [[apps.guide.regions]]
        name = "home"
        latitude = 52.5
        longitude = 13.4
        radius = 200
        """

    /// So many metres north of home.
    private func north(_ metres: Double) -> Position {
        Position(latitude: 52.5 + metres / 111_195, longitude: 13.4, accuracy: 5)
    }

    private func hear(_ events: FakeEvents, _ metres: Double) { events.wakes.locationMode.found(north(metres)) }

    /// How often something was told to the app.
    private func count(_ events: FakeEvents) -> Int64 {
        events.host.mail(for: events.app("guide")).reduce(0) { $0 + $1.count }
    }

    private func holds(_ events: FakeEvents) -> Bool { events.machine("guide").modes.contains(.location) }

    @Test("Of an app in a sandbox, only one with the permission is told", arguments: ["ask", "deny", "allow"])
    func permission(_ answer: String) throws {
        let sandbox = "sandbox = true\npermissions.location = { purpose = \"Why\", default = \"\(answer)\" }"
        let events = try FakeEvents(Self.toml("updates = \"continuous\"", sandbox))
        try events.putToSleep("guide")
        hear(events, 1)
        #expect((count(events) > 0) == (answer == "allow"))
        #expect((events.state("guide") == .background) == (answer == "allow"))
    }

    @Test("While positions come again and again the app is not suspended, and it may be when they end")
    func continuous()
        throws
    {
        let events = try FakeEvents(Self.toml("updates = \"continuous\""))
        hear(events, 0)
        #expect(events.state("guide") == .notRunning && events.mail("guide") == [], "it launches nobody")
        try events.putToSleep("guide")
        hear(events, 1)
        #expect(events.state("guide") == .background && holds(events) && events.wakeCount("guide") == 1)
        for metre in 2...60 {
            try events.pass(.seconds(1))
            hear(events, Double(metre))
        }
        #expect(events.state("guide") == .background)
        #expect(events.mail("guide") == ["location: didReceiveEvent"])
        #expect(events.payload("guide")?["latitude"]?.doubleValue == north(60).latitude)
        events.wakes.locationMode.isSilent()
        #expect(!holds(events))
        try events.pass(.seconds(30))
        #expect(events.state("guide") == .suspended && events.wakeCount("guide") == 1)
    }

    @Test("Positions in the foreground are told while the app is active, and hold nothing", arguments: [true, false])
    func foreground(hasMode: Bool) throws {
        let toml = Self.toml("updates = \"foreground\"")
        let events = try FakeEvents(hasMode ? toml : toml.replacing("background_modes = [\"location\"]", with: ""))
        hear(events, 0)
        #expect(events.state("guide") == .notRunning && events.mail("guide") == [], "it launches nobody")
        #expect(events.wakes.locationMode.check?.value?.contains("not in use") == true)
        try events.shell.start("guide")
        hear(events, 1)
        hear(events, 2)
        #expect(count(events) == 2 && !holds(events))
        #expect(events.wakes.locationMode.check?.value?.contains("not in use") == false)
        try events.shell.request(.background, "guide")
        hear(events, 3)
        #expect(events.wakes.locationMode.check?.value?.contains("not in use") == true)
        try events.shell.suspend("guide")
        hear(events, 4)
        #expect(events.state("guide") == .suspended && count(events) == 2 && events.wakeCount("guide") == 0)
        try events.shell.request(.foreground, "guide")
        hear(events, 4)
        #expect(count(events) == 3)
    }

    @Test("Of positions that are near each other in place or time one is told") func sparse() throws {
        let events = try FakeEvents(Self.toml("updates = \"continuous\", distance = 100, interval = \"10s\""))
        try events.shell.request(.start(background: true), "guide")
        var told: [Double] = []
        for (second, metres) in [0.0, 50, 99, 150, 400, 450, 460, 470, 480, 490, 700, 701].enumerated() {
            if second > 0 { try events.pass(.seconds(1)) }
            let before = count(events)
            hear(events, metres)
            if count(events) > before { told.append(metres) }
        }
        #expect(told == [0, 700])
        try events.shell.request(.stop(.evicted), "guide")
        hear(events, 701)
        #expect(count(events) == 2)
        try events.shell.request(.start(background: true), "guide")
        hear(events, 702)
        #expect(count(events) == 3, "whoever is there anew is told the first")
        try events.pass(.seconds(9))
        hear(events, 801)
        #expect(count(events) == 3, "and goes on from that")
    }

    @Test("A significant change launches the app, at most once in its interval") func significant() throws {
        let events = try FakeEvents(Self.toml("updates = \"significant\""))
        hear(events, 0)
        hear(events, 499)
        #expect(events.state("guide") == .notRunning)
        hear(events, 501)
        #expect(events.state("guide") == .background && events.mail("guide") == ["location: didReceiveEvent"])
        #expect(!holds(events))
        try events.shell.request(.stop(.evicted), "guide")
        try events.pass(.seconds(299))
        hear(events, 5_000)
        #expect(events.state("guide") == .notRunning)
        try events.pass(.seconds(1))
        hear(events, 5_000)
        #expect(events.state("guide") == .background)
    }

    @Test("After a force quit too, where wake_after_force_quit says so", arguments: [true, false])
    func forceQuit(_ isWoken: Bool) throws {
        let words = isWoken ? "" : "wake_after_force_quit = []"
        let events = try FakeEvents(Self.toml("updates = \"significant\"", words))
        try events.shell.start("guide")
        try events.shell.request(.forceQuit, "guide")
        hear(events, 0)
        hear(events, 1_000)
        #expect(events.state("guide") == (isWoken ? .background : .notRunning))
        #expect(events.mail("guide").count == 1)
    }

    @Test("An app that may not be woken by positions that begin is tried again with the next one") func heldBack()
        throws
    {
        let events = try FakeEvents(Self.toml("updates = \"continuous\"", "before_first_unlock = \"none\""))
        try events.putToSleep("guide")
        events.host.isBeforeFirstUnlock = true
        hear(events, 0)
        #expect(events.state("guide") == .suspended && !holds(events))
        events.host.isBeforeFirstUnlock = false
        hear(events, 0)
        #expect(events.state("guide") == .background && holds(events))
    }

    // MARK: Regions

    /// Positions for so many seconds.
    private func stay(_ events: FakeEvents, _ metres: Double, _ seconds: Int) throws {
        for _ in 0..<seconds {
            hear(events, metres)
            try events.pass(.seconds(1))
        }
    }

    @Test(
        "A region that is entered or left wakes the app, when that is certain",
        arguments: ["both", "enter", "leave"]
    )
    func regions(_ crossing: String) throws {
        let events = try FakeEvents(Self.toml("updates = \"none\"", Self.region + "\non = \"\(crossing)\""))
        try stay(events, 1_000, 30)
        #expect(events.mail("guide") == [], "where it is at first is no crossing")
        try stay(events, 0, 20)
        #expect(events.mail("guide") == [])
        try stay(events, 0, 1)
        #expect(events.payload("guide")?["change"]?.stringValue == (crossing == "leave" ? nil : "entered"))
        #expect(events.state("guide") == (crossing == "leave" ? .notRunning : .background))
        try stay(events, 1_000, 21)
        #expect(events.payload("guide")?["change"]?.stringValue == (crossing == "enter" ? "entered" : "left"))
        #expect(events.mail("guide") == ["region:home: didReceiveEvent"])
        #expect(events.payload("guide")?["region"]?.stringValue == "home")
    }

    @Test("What a torpord knew of regions the next one goes on from, so that it tells a crossing in between")
    func between()
        throws
    {
        let kernel = try KernelFiles()
        let toml = Self.toml("updates = \"none\"", Self.region)
        let events = try FakeEvents(toml) { host, _ in host.runtimeDirectory = kernel.root }
        try stay(events, 0, 1)
        let next = try FakeEvents(toml) { host, _ in host.runtimeDirectory = kernel.root }
        try stay(next, 1_000, 21)
        #expect(next.payload("guide")?["change"]?.stringValue == "left")
        let third = try FakeEvents(toml) { host, _ in host.runtimeDirectory = kernel.root }
        try stay(third, 1_000, 30)
        #expect(third.mail("guide") == [])
        let other = try FakeEvents(toml.replacing("13.4", with: "13.5")) { host, _ in
            host.runtimeDirectory = kernel.root
        }
        try stay(other, 0, 30)
        #expect(other.mail("guide") == [], "another circle of that name is another region")
    }

    @Test("With another configuration the regions that stay where they are go on") func configured() throws {
        let events = try FakeEvents(Self.toml("updates = \"none\"", Self.region))
        try stay(events, 0, 1)
        events.configure("guide") { $0.location.updates = .significant }
        try stay(events, 1_000, 21)
        #expect(events.mail("guide").contains("region:home: didReceiveEvent"))
        let before = count(events)
        events.configure("guide") { $0.location.regions[0].radius = 5_000 }
        try stay(events, 1_000, 30)
        #expect(count(events) == before, "where it is at first is no crossing")
    }

    @Test("gpsd is asked while somebody wants to know") func asked() throws {
        let events = try FakeEvents(Self.toml("updates = \"continuous\""))
        let mode = events.wakes.locationMode
        #expect(mode.check?.value?.hasPrefix("not in use") == true)
        try events.shell.start("guide")
        #expect(mode.check?.value?.hasPrefix("not in use") == false)
        try events.shell.request(.stop(.stopped), "guide")
        #expect(mode.check?.value?.hasPrefix("not in use") == true)
        events.configure("guide") { $0.location.updates = .significant }
        #expect(mode.check?.value?.hasPrefix("not in use") == false)
        try events.leave("guide")
        #expect(mode.check == nil)
        hear(events, 0)
    }
}
