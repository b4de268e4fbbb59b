// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import MockBlueZ
import Testing
import TorporAPI
import Varlink

@Suite(
    "The Bluetooth background modes",
    .enabled(if: MockBlueZ.obstacle == nil, "python3-dbusmock and dbus are needed: make deps")
)
struct BluetoothModeTests {
    static let watch = "AA:BB:CC:DD:EE:01"
    static let other = "AA:BB:CC:DD:EE:02"
    static let heartRate = "0000180d-0000-1000-8000-00805f9b34fb"
    static let measurement = "00002a37-0000-1000-8000-00805f9b34fb"

    static func toml(_ more: String) -> String {
        """
        [defaults]
        launch = "background"
        restart = "never"
        event_time = "200ms"
        \(more)
        """
    }

    private func scene(_ more: String, files: [String: String] = [:], _ body: (MockBlueZ, Daemon) throws -> Void) throws
    {
        let mock = try MockBlueZ { work in try Spawn.lock.withLock { try work() } }
        try mock.start()
        try mock.add(Self.watch, "watch", services: [Self.heartRate])
        try mock.add(Self.other, "other")
        let environment = ["DBUS_SYSTEM_BUS_ADDRESS": mock.address]
        try withDaemon(Self.toml(more), files: files, environment: environment) { daemon in
            try daemon.eventually("BlueZ was looked at") {
                let checks = try Spawn.run([Built.path("torpor"), "--socket", daemon.socket, "doctor"]).output
                return checks.contains("2 devices known")
            }
            try body(mock, daemon)
        }
    }

    static let runner = ["app.py": "import tp\ntp.on('SIGUSR1')\ntp.record('runs')\ntp.notify('READY=1')\ntp.wait()\n"]

    @Test("A device that connects wakes who waits for it, by its address or a service, and nobody else")
    func connects() throws {
        let more = """
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            ready = "notify"
            signals = { didReceiveEvent = "SIGUSR1" }
            background_modes = ["bluetooth-central"]
            [apps.address]
            bluetooth = [{ device = "aa:bb:cc:dd:ee:01", on = ["connect", "disconnect"] }]
            [apps.service]
            bluetooth = [{ name = "heart", service = "180d" }]
            [apps.stranger]
            bluetooth = [{ device = "AA:BB:CC:DD:EE:09" }]
            """
        try scene(more, files: Self.runner) { mock, daemon in
            for app in ["address", "service", "stranger"] {
                try daemon.waitForRecord(app, "runs")
                try daemon.done(.suspend, app)
            }
            try mock.connect(Self.other)
            try mock.connect(Self.watch)
            let text = "woken by the connection of the Bluetooth device watch (\(Self.watch))"
            for app in ["address", "service"] {
                #expect(try daemon.waitForEvent(app, text).reason == "bluetooth")
                try daemon.waitForRecord(app, "SIGUSR1")
            }
            #expect(daemon.isStopped("stranger"))
            try daemon.done(.kill, "stranger")
            // It sleeps again after ten seconds; who is gone is told too.
            try daemon.done(.suspend, "address")
            try daemon.done(.suspend, "service")
            try mock.connect(Self.watch, false)
            try daemon.waitForEvent("address", "woken by the loss of the Bluetooth device watch")
            #expect(daemon.isStopped("service"), "it did not ask for that")
            #expect(try daemon.events("service").filter { $0.text.contains("woken by") }.count == 1)
            // BlueZ goes and comes back: who is connected then does not connect.
            try daemon.done(.suspend, "address")
            try mock.connect(Self.watch)
            try daemon.eventually("it came again") {
                try daemon.events("address").filter { $0.text.contains("woken by the connection") }.count == 2
            }
            try daemon.done(.suspend, "address")
            try mock.stop()
            try daemon.eventually("it went with BlueZ") {
                try daemon.events("address").filter { $0.text.contains("woken by the loss") }.count == 2
            }
        }
    }

    @Test("A device's values wake a sleeping app, each of them is told, and they are asked for")
    func values() throws {
        let more = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            ready = "delegate"
            background_modes = ["bluetooth-central"]
            bluetooth = [{ name = "heart", device = "\(Self.watch)", service = "180d", characteristic = "2a37" }]
            """
        try scene(more, files: Delegates.files()) { mock, daemon in
            try daemon.waitFor("web", "background")
            try mock.connect(Self.watch)
            try mock.add(Self.measurement, in: Self.heartRate, of: Self.watch)
            try daemon.eventually("its values are asked for") { try mock.isNotifying(Self.watch) }
            try daemon.done(.suspend, "web")
            try mock.say([0, 71], of: Self.watch)
            try mock.say([0, 72], of: Self.watch)
            try daemon.waitForEvent("web", "woken by a value of the Bluetooth device watch")
            let second = try daemon.waitForMessage("didReceiveEvent", count: 2)
            #expect(second.parameters["topic"]?.stringValue == "bluetooth:heart")
            #expect(second.parameters["payload"]?["value"]?.stringValue == "AEg=")
            #expect(second.parameters["payload"]?["characteristic"]?.stringValue == Self.measurement)
            // One that is gone is launched for it.
            try daemon.done(.suspend, "web")
            let pid = try #require(daemon.processes(of: "web").first)
            kill(pid, SIGKILL)
            try daemon.waitFor("web", "not-running")
            try mock.say([0, 99], of: Self.watch)
            let third = try daemon.waitForMessage("didReceiveEvent", count: 3)
            #expect(third.parameters["payload"]?["value"]?.stringValue == "AGM=")
        }
    }

    /// A GATT application, as far as BlueZ asks it: it records what, and under which name it is on the bus.
    static let peripheral = """
        import os, sys, tp
        import dbus, dbus.bus, dbus.mainloop.glib, dbus.service
        from gi.repository import GLib
        dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
        bus = dbus.bus.BusConnection(os.environ["DBUS_SYSTEM_BUS_ADDRESS"])
        class Value(dbus.service.Object):
            @dbus.service.method("org.bluez.GattCharacteristic1", in_signature="a{sv}", out_signature="ay")
            def ReadValue(self, options):
                tp.record("asked")
                return [1]
        Value(bus, "/app/service0/char0")
        tp.record(bus.get_unique_name())
        GLib.MainLoop().run()
        """

    @Test("What a device asks of a sleeping app wakes it, and it answers")
    func requests() throws {
        let more = """
            [apps.peripheral]
            exec = ["/usr/bin/python3", "@D/peripheral.py"]
            background_modes = ["bluetooth-peripheral"]
            environment = { DBUS_SYSTEM_BUS_ADDRESS = "@BUS" }
            [apps.bystander]
            exec = ["/bin/sleep", "1000"]
            background_modes = ["bluetooth-peripheral"]
            """
        let mock = try MockBlueZ { work in try Spawn.lock.withLock { try work() } }
        try mock.start()
        let toml = Self.toml(more.replacingOccurrences(of: "@BUS", with: mock.address))
        let environment = ["DBUS_SYSTEM_BUS_ADDRESS": mock.address]
        try withDaemon(toml, files: ["peripheral.py": Self.peripheral], environment: environment) { daemon in
            try daemon.eventually("it is on the bus") { !daemon.records("peripheral").isEmpty }
            let name = try #require(daemon.records("peripheral").first)
            try daemon.eventually("requests are seen") {
                let checks = try Spawn.run([Built.path("torpor"), "--socket", daemon.socket, "doctor"]).output
                return checks.contains("their requests are seen")
            }
            try daemon.done(.suspend, "peripheral")
            try daemon.done(.suspend, "bystander")
            try mock.ask("ReadValue", of: name)
            try daemon.waitForEvent("peripheral", "woken by a Bluetooth device that asks it to read a value")
            try daemon.waitForRecord("peripheral", "asked")
            #expect(daemon.isStopped("bystander"))
        }
    }
}
