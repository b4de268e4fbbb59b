// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Mailbox
import Testing
import Varlink

@testable import EventSources

@Suite("Power and screens") struct MachineNoticesTests {
    private func running(_ topics: String) throws -> (FakeEvents, MachineNotices) {
        let events = try FakeEvents(NotificationsTests.toml(topics, "web"))
        try events.shell.start("web")
        let notices = events.wakes.sources.compactMap { $0 as? MachineNotices }.first
        return (events, try #require(notices))
    }

    private func power(_ source: Power.Source, _ percent: UInt32? = nil) -> Power {
        var power = Power(root: "/nonexistent")
        power.source = source
        power.percent = percent
        return power
    }

    @Test("Power that becomes another one is told, what it was before, and nothing where it is as before again")
    func sources() throws {
        let (events, notices) = try running("\"power\"")
        notices.found(power(.mains))
        #expect(events.mail() == [], "where it comes from at first is no news")
        notices.found(power(.battery, 90))
        #expect(try events.payload() == JSON.parse(#"{"before": "mains", "after": "battery"}"#))
        notices.found(power(.battery, 80))
        #expect(events.mail().count == 1)
        notices.found(power(.unknown))
        #expect(try events.payload() == JSON.parse(#"{"before": "mains", "after": "unknown"}"#))
        notices.found(power(.mains))
        #expect(events.mail() == [])
    }

    @Test("Of the charge the last one is told, and it is told too when the power changes") func battery() throws {
        let (events, notices) = try running("\"battery\"")
        notices.found(power(.battery, 50))
        notices.found(power(.battery, 50))
        #expect(events.mail() == [])
        notices.found(power(.battery, 49))
        notices.found(power(.battery, 48))
        #expect(try events.payload() == JSON.parse(#"{"percent": 48, "source": "battery"}"#))
        notices.found(power(.mains, 48))
        #expect(try events.payload() == JSON.parse(#"{"percent": 48, "source": "mains"}"#))
        #expect(events.mail() == ["battery: didReceiveNotification"])
        notices.found(power(.mains))
        #expect(
            events.host.mail(for: events.app("web")).first?.count == 3,
            "of a battery that is taken out nothing is told"
        )
    }

    @Test("Each screen is told for itself, and one that came and went is nothing") func screens() throws {
        let (events, notices) = try running("\"screens\"")
        notices.found(["card0-eDP-1"])
        #expect(events.mail() == [])
        notices.found(["card0-HDMI-A-1", "card0-DP-2"])
        let payloads = events.host.mail(for: events.app("web")).map(\.draft.payload)
        #expect(payloads.map { $0["screen"]?.stringValue } == ["card0-DP-2", "card0-HDMI-A-1", "card0-eDP-1"])
        #expect(payloads.map { $0["after"]?.boolValue } == [true, true, false])
        notices.found(["card0-DP-2"])
        #expect(events.host.mail(for: events.app("web")).compactMap(\.draft.key) == ["card0-DP-2", "card0-eDP-1"])
    }

    @Test("What changed while nobody wanted to know is no news, also where a look was under way when they ceased to")
    func unwanted() throws {
        let (events, notices) = try running("\"power\", \"screens\"")
        notices.found(power(.mains))
        notices.found(["card0-DP-1"])
        events.configure("web") { $0.notifications = [] }
        // The looks that had been begun before.
        notices.found(power(.mains))
        notices.found(["card0-DP-1"])
        events.configure("web") { $0.notifications = [.power, .screens] }
        notices.found(power(.battery))
        notices.found(["card0-DP-2"])
        #expect(events.mail() == [])
    }

    private func accessory(_ name: String) -> MachineNotices.Accessory {
        MachineNotices.Accessory(path: "/devices/\(name)", name: name, kind: "usb", key: "usb:\(name)")
    }

    /// What was told of accessories, oldest first, such as `+mouse`.
    private func told(_ events: FakeEvents) -> [String] {
        (events.host.drafts[events.app("web").id] ?? []).map { draft in
            (draft.payload["after"]?.boolValue == true ? "+" : "-") + (draft.payload["accessory"]?.stringValue ?? "")
        }
    }

    @Test("An app with the mode has no accessories in the background, and is told what there is when it returns")
    func accessories() throws {
        let (events, notices) = try running("\"accessories\"")
        events.configure("web") { $0.backgroundModes = [.externalAccessory] }
        notices.found([accessory("keyboard"), accessory("scanner")])
        events.shell.engine.touch(events.app("web").id)
        #expect(told(events) == [], "what is there is no news")
        try events.shell.request(.background, "web")
        #expect(told(events) == ["-keyboard", "-scanner"])
        // What happens there concerns it no longer.
        notices.plugged(accessory("scanner"), false)
        notices.plugged(accessory("mouse"), true)
        try events.shell.suspend("web")
        #expect(told(events).count == 2)
        try events.shell.request(.foreground, "web")
        #expect(told(events) == ["-keyboard", "-scanner", "+keyboard", "+mouse"])
        notices.plugged(accessory("mouse"), true)
        notices.plugged(accessory("mouse"), false)
        #expect(told(events).dropFirst(4) == ["-mouse"])
        // The mode is taken from it while it is away.
        try events.shell.request(.background, "web")
        #expect(told(events).dropFirst(5) == ["-keyboard"])
        events.configure("web") { $0.backgroundModes = [] }
        events.shell.engine.touch(events.app("web").id)
        notices.plugged(accessory("pen"), true)
        #expect(told(events).dropFirst(6) == ["+pen"])
    }

    @Test("An app without the mode is told what happens wherever it is, and no return") func plainAccessories() throws {
        let (events, notices) = try running("\"accessories\"")
        notices.found([accessory("keyboard")])
        try events.shell.request(.background, "web")
        notices.plugged(accessory("mouse"), true)
        try events.shell.request(.foreground, "web")
        #expect(told(events) == ["+mouse"])
    }
}
