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

@testable import Bluetooth
@testable import EventSources

@Suite("The background modes for Bluetooth") struct BluetoothModeTests {
    private static func toml(_ trigger: String, _ rest: String = "") -> String {
        """
        [apps.heart]
        exec = ["/bin/true"]
        launch = "on-demand"
        restart = "never"
        background_modes = ["bluetooth-central", "bluetooth-peripheral"]
        signals = { didReceiveEvent = "SIGUSR1" }
        \(rest)
        [[apps.heart.bluetooth]]
        name = "strap"
        \(trigger)

        """
    }

    private static let strap = "AA:BB:CC:DD:EE:FF"

    private func device(_ isConnected: Bool, _ address: String = Self.strap) -> BlueZ.Device {
        BlueZ.Device(address: address, name: "Strap", services: [], isConnected: isConnected)
    }

    private func connect(_ events: FakeEvents, _ connects: Bool, _ address: String = Self.strap, isNews: Bool = true) {
        events.wakes.bluetoothMode.changed(device(!connects, address), device(connects, address), isNews)
    }

    @Test("A device that connects launches the app for 10 s, and is told; others do not") func connects() throws {
        let events = try FakeEvents(Self.toml("device = \"\(Self.strap)\"\non = [\"connect\", \"disconnect\"]"))
        connect(events, true, "11:22:33:44:55:66")
        connect(events, true, isNews: false)
        #expect(events.state("heart") == .notRunning && events.mail("heart") == [])
        connect(events, true)
        #expect(events.state("heart") == .background)
        #expect(
            try events.payload("heart")
                == JSON.parse(#"{"device": "AA:BB:CC:DD:EE:FF", "name": "Strap", "change": "connected"}"#)
        )
        try events.putToSleep("heart")
        events.wakes.bluetoothMode.changed(device(true), nil, true)
        #expect(events.payload("heart")?["change"]?.stringValue == "disconnected")
        #expect(events.mail("heart") == ["bluetooth:strap: didReceiveEvent"], "only the last one is told")
        try events.pass(.seconds(9))
        #expect(events.state("heart") == .background)
        try events.pass(.seconds(1))
        #expect(events.state("heart") == .suspended)
    }

    @Test("Of an app in a sandbox, only one with the permission is told", arguments: ["ask", "deny", "allow"])
    func permission(_ answer: String) throws {
        let sandbox = "sandbox = true\npermissions.bluetooth = { purpose = \"Why\", default = \"\(answer)\" }"
        let events = try FakeEvents(Self.toml("device = \"\(Self.strap)\"", sandbox))
        connect(events, true)
        #expect(events.mail("heart").count == (answer == "allow" ? 1 : 0))
        #expect((events.state("heart") == .background) == (answer == "allow"))
    }

    @Test("What a trigger does not name is nothing to it, nor is a device that was so before") func occasions() throws {
        let events = try FakeEvents(Self.toml("device = \"\(Self.strap)\"\non = [\"disconnect\"]"))
        connect(events, true)
        events.wakes.bluetoothMode.changed(device(true), device(true), true)
        events.wakes.bluetoothMode.changed(device(false), nil, true)
        events.wakes.bluetoothMode.changed(nil, nil, true)
        #expect(events.mail("heart") == [])
        connect(events, false)
        #expect(events.mail("heart").count == 1)
    }

    @Test("Each value of a characteristic is told, in Base64, whichever device it is of") func values() throws {
        let events = try FakeEvents(Self.toml("service = \"180d\"\ncharacteristic = \"2a37\"\non = [\"notify\"]"))
        let long = ["180d", "2a37", "2a38"].map { "0000\($0)-0000-1000-8000-00805f9b34fb" }
        let rate = BlueZ.Characteristic(identifier: long[1], service: long[0], device: "/d")
        let other = BlueZ.Characteristic(identifier: long[2], service: long[0], device: "/d")
        let elsewhere = BlueZ.Characteristic(identifier: long[1], service: nil, device: "/d")
        events.wakes.bluetoothMode.said(other, device(true), [1])
        events.wakes.bluetoothMode.said(elsewhere, device(true), [1])
        connect(events, true)
        #expect(events.mail("heart") == [])
        events.wakes.bluetoothMode.said(rate, device(true), [0, 72])
        events.wakes.bluetoothMode.said(rate, nil, [])
        let mail = events.host.mail(for: events.app("heart"))
        #expect(mail.map { $0.draft.payload["value"]?.stringValue } == ["AEg=", ""])
        #expect(mail.map { $0.draft.payload["device"]?.stringValue } == [Self.strap, nil])
        #expect(events.wakeCount("heart") == 1)
    }

    @Test(
        "An app that is asked something is woken for 10 s to answer, where it sleeps and the question is for it",
        .enabled(if: FakeEvents.hasProcess)
    )
    func asked() throws {
        let events = try FakeEvents(Self.toml("device = \"\(Self.strap)\"\non = [\"connect\"]"))
        events.wakes.bluetoothMode.asked("ReadValue", by: FakeEvents.process)
        #expect(events.state("heart") == .notRunning)
        try events.putToSleep("heart")
        events.wakes.bluetoothMode.asked("ReadValue", by: 1)
        #expect(events.state("heart") == .suspended)
        events.wakes.bluetoothMode.asked("ReadValue", by: FakeEvents.process)
        #expect(events.state("heart") == .background && events.mail("heart") == [])
        #expect(events.told("a Bluetooth device that asks it to read a value", of: "heart").count == 1)
        try events.pass(.seconds(9))
        events.wakes.bluetoothMode.asked("WriteValue", by: FakeEvents.process)
        try events.pass(.seconds(1))
        #expect(events.state("heart") == .suspended, "who runs sees for itself")
    }

    @Test("After a force quit it is woken where wake_after_force_quit says so", arguments: [true, false])
    func forceQuit(_ isWoken: Bool) throws {
        let events = try FakeEvents(
            Self.toml(
                "device = \"\(Self.strap)\"\non = [\"connect\"]",
                isWoken ? "wake_after_force_quit = [\"bluetooth-central\"]" : ""
            )
        )
        try events.shell.start("heart")
        try events.shell.request(.forceQuit, "heart")
        connect(events, true)
        #expect(events.state("heart") == (isWoken ? .background : .notRunning))
    }

    @Test("A full mailbox is said, and an app that leaves or leaves the mode is told nothing") func untold() throws {
        let events = try FakeEvents(Self.toml("device = \"\(Self.strap)\"\non = [\"connect\"]"))
        events.host.full = [0]
        connect(events, true)
        #expect(events.told("is not notified of the connection of the Bluetooth device Strap", of: "heart").count == 1)
        events.host.full = []
        let heart = events.app("heart")
        events.configure("heart") { $0.backgroundModes = [] }
        connect(events, true)
        events.configure("heart") { $0.backgroundModes = [.bluetoothCentral] }
        try events.leave("heart")
        connect(events, true)
        #expect(events.host.mail(for: heart).isEmpty && events.wakes.bluetoothMode.check == nil)
    }
}
