// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Foundation
import Lifecycle
import Linux
import Mailbox
import MockLogind
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
        notices.found(["card0-eDP-1": []])
        #expect(events.mail() == [])
        notices.found(["card0-HDMI-A-1": [], "card0-DP-2": []])
        let payloads = events.host.mail(for: events.app("web")).map(\.draft.payload)
        #expect(payloads.map { $0["screen"]?.stringValue } == ["card0-DP-2", "card0-HDMI-A-1", "card0-eDP-1"])
        #expect(payloads.map { $0["after"]?.boolValue } == [true, true, false])
        notices.found(["card0-DP-2": []])
        #expect(events.host.mail(for: events.app("web")).compactMap(\.draft.key) == ["card0-DP-2", "card0-eDP-1"])
    }

    @Test("Another display at the same connector is told by its modes, and nothing where they are as before again")
    func modes() throws {
        let (events, notices) = try running("\"screens\"")
        notices.found(["card0-DP-1": ["1920x1080", "1280x720"], "card0-DP-2": []])
        notices.found(["card0-DP-1": ["2560x1440"], "card0-DP-2": []])
        let mail = events.host.mail(for: events.app("web"))
        #expect(mail.map(\.draft.key) == ["card0-DP-1 modes"])
        #expect(
            mail.first?.draft.payload
                == ["screen": "card0-DP-1", "before": ["1920x1080", "1280x720"], "after": ["2560x1440"]]
        )
        notices.found(["card0-DP-1": ["1920x1080", "1280x720"], "card0-DP-2": []])
        #expect(events.mail() == [])
        // One that is removed and comes back with other modes is told as connected.
        notices.found(["card0-DP-2": []])
        notices.found(["card0-DP-1": ["800x600"], "card0-DP-2": []])
        #expect(events.mail() == [])
    }

    @Test("Displays and modes are read as the kernel lists them, a bounded number of each")
    func readScreens() throws {
        let folder = NSTemporaryDirectory() + "/torpor-drm-\(UUID().uuidString)"
        defer { try? File.removeTree(folder) }
        func connector(_ name: String, _ status: String?, _ modes: String?) throws {
            try File.makeDirectories("\(folder)/\(name)")
            if let status { try File.write("\(folder)/\(name)/status", status) }
            if let modes { try File.write("\(folder)/\(name)/modes", modes) }
        }
        try connector("card0", nil, nil)
        try connector("card0-DP-1", "connected\n", "1920x1080\n1920x1080\n1280x720\n")
        try connector("card0-DP-2", "disconnected\n", "")
        try connector("card0-eDP-1", "connected\n", nil)
        try connector("card0-HDMI-A-1", "connected\n", (0..<500).map { "\($0)x1\n" }.joined())
        let found = Screens.connected(folder)
        #expect(found.keys.sorted() == ["card0-DP-1", "card0-HDMI-A-1", "card0-eDP-1"])
        #expect(found["card0-DP-1"] == ["1920x1080", "1280x720"] && found["card0-eDP-1"] == [])
        #expect(found["card0-HDMI-A-1"]?.count == Screens.mostModes)
    }

    @Test("What changed while nobody wanted to know is no news, also where a look was under way when they ceased to")
    func unwanted() throws {
        let (events, notices) = try running("\"power\", \"screens\"")
        notices.found(power(.mains))
        notices.found(["card0-DP-1": []])
        events.configure("web") { $0.notifications = [] }
        // The looks that had been begun before.
        notices.found(power(.mains))
        notices.found(["card0-DP-1": []])
        events.configure("web") { $0.notifications = [.power, .screens] }
        notices.found(power(.battery))
        notices.found(["card0-DP-2": []])
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

    @Test("A turn is told, and what comes near, and nothing where it is as before again") func sensors() throws {
        let (events, notices) = try running("\"orientation\", \"proximity\"")
        notices.found(side: "normal")
        notices.found(isNear: false)
        #expect(events.mail() == [], "what is so at first is no news")
        notices.found(side: "left-up")
        #expect(try events.payload() == JSON.parse(#"{"before": "normal", "after": "left-up"}"#))
        notices.found(isNear: true)
        #expect(try events.payload() == JSON.parse(#"{"before": false, "after": true}"#))
        notices.found(side: "normal")
        #expect(events.mail() == ["proximity: didReceiveNotification"])
        events.configure("web") { $0.notifications = [] }
        notices.found(isNear: false)
        #expect(events.mail() == ["proximity: didReceiveNotification"])
    }

    @Test(
        "iio-sensor-proxy may come, go and return, and is asked for what apps want only",
        .enabled(if: MockLogind.obstacle == nil, "python3-dbusmock and dbus are needed: make deps")
    )
    func sensorProxy() throws {
        let mock = try MockLogind()
        try mock.run(MockLogind.sensors)
        let loop = try EventLoop()
        let sensors = SensorProxy(loop, [.accelerometer], address: mock.address)
        var sides: [String] = []
        // What has not changed is reported again.
        sensors.onOrientation = { if sides.last != $0 { sides.append($0) } }
        func wait(_ expected: String...) throws {
            let end = Clock.monotonic() + .seconds(30)
            while sides != expected {
                try #require(Clock.monotonic() < end, "\(sides) and not \(expected)")
                _ = try loop.runOnce(timeout: .milliseconds(10))
            }
        }
        try mock.run("start_proxy('normal')")
        try wait("normal")
        let claims = "ret = [len(proxy.accelerometer_owners), len(proxy.proximity_owners)]"
        #expect(try mock.run(claims).filter { !$0.isWhitespace } == "[1,0]")
        try mock.run("proxy.SetInternalProperty('net.hadess.SensorProxy', 'AccelerometerOrientation', 'undefined')")
        try mock.run("proxy.SetInternalProperty('net.hadess.SensorProxy', 'AccelerometerOrientation', 'right-up')")
        try wait("normal", "right-up")
        try mock.run("stop_proxy()")
        try mock.run("start_proxy('bottom-up')")
        try wait("normal", "right-up", "bottom-up")
    }
}
