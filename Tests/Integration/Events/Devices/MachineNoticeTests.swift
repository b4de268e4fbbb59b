// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import MockDevices
import MockLogind
import Testing
import TorporAPI
import Varlink

@Suite(
    "What apps are told of the machine",
    .enabled(if: MockDevices.obstacle == nil, "umockdev is needed: make deps")
)
struct MachineNoticeTests {
    private static let supplies = """
        mains = add('power_supply', 'AC', attributes={'type': 'Mains', 'online': '1'})
        battery = add('power_supply', 'BAT0', attributes={'type': 'Battery', 'present': '1', 'status': 'Full', \
        'capacity': '100'})
        """

    /// An app that hears of these, and one that is launched by the last thing that a test does.
    private static func toml(_ topics: String) -> String {
        DeviceScene.toml(
            """
            notifications = \(topics)
            [apps.last]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            devices = [{ node = "/dev/last" }]
            """
        )
    }

    private func notices(_ scene: DeviceScene, _ topic: String) throws -> [JSON] {
        try scene.told(topic, "didReceiveNotification")
    }

    /// What is told of `step` to an app that sleeps meanwhile; several devices' news are awaited by `isSeen`.
    private func asleep(_ scene: DeviceScene, _ step: String) throws {
        try scene.daemon.done(.suspend, "web")
        try scene.mock.run(step)
    }

    @Test("running on batteries, and their charge, are told to an app that runs")
    func power() throws {
        let scene = try DeviceScene(Self.toml(#"["power", "battery"]"#), Self.supplies, files: Delegates.files())
        try scene.daemon.done(.start, "web")
        try scene.mock.run("bed.set_attribute(battery, 'status', 'Discharging')\nset(mains, online='0')")
        try scene.daemon.eventually("power is told") { try notices(scene, "power").count == 1 }
        let power = try notices(scene, "power")[0]
        #expect(power["before"]?.stringValue == "mains")
        #expect(power["after"]?.stringValue == "battery")
        try scene.mock.run("set(battery, capacity='42')")
        try scene.daemon.eventually("the charge is told") {
            try notices(scene, "battery").last?["percent"]?.intValue == 42
        }
        try scene.daemon.stop()
    }

    @Test("a suspended app is not woken, and told the last charge alone, and of power that is as before nothing")
    func suspendedPower() throws {
        let scene = try DeviceScene(Self.toml(#"["power", "battery"]"#), Self.supplies, files: Delegates.files())
        try scene.daemon.done(.start, "web")
        try scene.daemon.done(.suspend, "web")
        for charge in [90, 80, 70] as [Int64] {
            let (online, status) = charge == 70 ? (1, "Charging") : (0, "Discharging")
            try scene.mock.run("bed.set_attribute(battery, 'status', '\(status)')\nset(mains, online='\(online)')")
            try scene.mock.run("set(battery, capacity='\(charge)')")
            // Supplies are read beside the loop: without this several news might be seen as one.
            try scene.daemon.eventually("\(charge) % was seen") {
                let battery = try scene.daemon.mailbox().mail.first { $0.topic == "battery" }
                return battery?.payload["percent"]?.intValue == charge
            }
        }
        #expect(try scene.daemon.summary("web").state == "suspended")
        try scene.daemon.done(.resume, "web")
        try scene.daemon.eventually("the charge is told") { try !notices(scene, "battery").isEmpty }
        try scene.settle()
        let names = try scene.daemon.messages()
        // Before anything else that came after it woke.
        #expect(names.last != "didReceiveNotification")
        #expect(try notices(scene, "battery").map { $0["percent"]?.intValue } == [70])
        #expect(try notices(scene, "power").isEmpty)
        try scene.daemon.stop()
    }

    @Test("accessories that are plugged in are told, hubs and what was removed again are not")
    func accessories() throws {
        let scene = try DeviceScene(Self.toml(#"["accessories"]"#), files: Delegates.files())
        try scene.daemon.done(.start, "web")
        try scene.daemon.done(.suspend, "web")
        try scene.mock.run(
            """
            mouse = {'ID_INPUT_MOUSE': '1', 'NAME': '"Some Mouse"', 'PHYS': '"usb-1"'}
            path = again('input', 'input7', properties=mouse)
            remove(path)
            path = again('input', 'input8', properties=mouse)
            bed.uevent(path, 'remove')
            again('input', 'input9', properties={'ID_INPUT_KEYBOARD': '1', 'NAME': '"Some Keyboard"'})
            again('usb', 'usb1', properties={'DEVTYPE': 'usb_device', 'TYPE': '9/0/1', 'ID_MODEL': 'Hub'})
            again('tty', 'last', attributes={'dev': '4:99'}, properties={'DEVNAME': '/dev/last'})
            """
        )
        try scene.daemon.waitFor("last", "background")
        try scene.daemon.done(.resume, "web")
        try scene.daemon.eventually("the keyboard is told") { try !notices(scene, "accessories").isEmpty }
        try scene.settle()
        let told = try notices(scene, "accessories")
        #expect(told.map { $0["accessory"]?.stringValue } == ["Some Keyboard"])
        #expect(told.first?["after"] == .bool(true))
        try scene.daemon.stop()
    }

    @Test("screens that are connected are told")
    func screens() throws {
        let prepare = """
            card = add('drm', 'card0', properties={'DEVTYPE': 'drm_minor'})
            screen = add('drm', 'card0-HDMI-A-1', parent=card, attributes={'status': 'disconnected'})
            """
        let scene = try DeviceScene(Self.toml(#"["screens"]"#), prepare, files: Delegates.files())
        try scene.daemon.done(.start, "web")
        try scene.mock.run("bed.set_attribute(screen, 'status', 'connected')\nbed.uevent(card, 'change')")
        try scene.daemon.eventually("the screen is told") { try !notices(scene, "screens").isEmpty }
        let told = try notices(scene, "screens")[0]
        #expect(told["screen"]?.stringValue == "card0-HDMI-A-1")
        #expect(told["after"] == .bool(true))
        try scene.daemon.stop()
    }

    @Test("who did not ask for it is told nothing, and nothing is followed")
    func unasked() throws {
        let scene = try DeviceScene(Self.toml("[]"), Self.supplies, files: Delegates.files())
        try scene.daemon.done(.start, "web")
        try scene.mock.run(
            """
            set(mains, online='0')
            again('tty', 'last', attributes={'dev': '4:99'}, properties={'DEVNAME': '/dev/last'})
            """
        )
        try scene.daemon.waitFor("last", "background")
        try scene.settle()
        #expect(try !scene.daemon.messages().contains("didReceiveNotification"))
        try scene.daemon.stop()
    }
}

@Suite(
    "What apps are told of the bus's services",
    .serialized,
    .enabled(if: MockLogind.obstacle == nil, "python3-dbusmock and dbus are needed: make deps")
)
struct BusNoticeTests {
    private func scene(_ keys: String, _ prepare: String) throws -> (MockLogind, Daemon) {
        let mock = try MockLogind { body in try Spawn.lock.withLock { try body() } }
        try mock.run(prepare)
        let daemon = try Daemon(
            "session = \"c1\"\n" + Delegates.head + keys,
            files: Delegates.files(),
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": mock.address]
        )
        try daemon.waitUntilItAnswers()
        try daemon.done(.start, "web")
        return (mock, daemon)
    }

    private func told(_ daemon: Daemon, _ topic: String) throws -> [JSON] {
        try daemon.heard().filter { $0.name == "didReceiveNotification" && $0.what == "message" }
            .filter { $0.parameters["topic"]?.stringValue == topic }.compactMap { $0.parameters["payload"] }
    }

    private static let profiles = """
        HADESS = 'net.hadess.PowerProfiles'
        def start_profiles():
            global power
            power = mockobject.DBusMockObject(connection, '/net/hadess/PowerProfiles', HADESS, {}, logfile=os.devnull)
            power.AddTemplate('power_profiles_daemon', {})
            connection.request_name(HADESS)
        def profile(name):
            power.UpdateProperties(HADESS, {'ActiveProfile': name})

        """

    @Test("saving power is told when it begins and ends, also where the service comes later")
    func lowPower() throws {
        let (mock, daemon) = try scene(#"notifications = ["low-power"]"#, Self.profiles)
        try mock.run("start_profiles()\nprofile('power-saver')")
        try daemon.eventually("it is told") { try told(daemon, "low-power").count == 1 }
        try mock.run("profile('performance')")
        try daemon.eventually("the end is told") { try told(daemon, "low-power").count == 2 }
        #expect(try told(daemon, "low-power").map { $0["after"] } == [.bool(true), .bool(false)])
        try daemon.stop()
    }

    @Test("what was saved and is saved no longer is nothing to an app that slept meanwhile")
    func lowPowerAsleep() throws {
        let (mock, daemon) = try scene(#"notifications = ["low-power"]"#, Self.profiles + "start_profiles()\n")
        try mock.run("profile('power-saver')")
        try daemon.eventually("it is told") { try told(daemon, "low-power").count == 1 }
        try daemon.done(.suspend, "web")
        try mock.run("profile('balanced')")
        try daemon.eventually("the end is seen") { try daemon.mailbox().mail.map(\.topic) == ["low-power"] }
        try mock.run("profile('power-saver')")
        try daemon.eventually("all is as before") { try daemon.mailbox().mail.isEmpty }
        try daemon.done(.foreground, "web")
        #expect(try told(daemon, "low-power").count == 1)
        try daemon.stop()
    }

    @Test("an app is told that protected data go with the session's lock, and come with its end")
    func protectedData() throws {
        let (mock, daemon) = try scene(
            #"notifications = ["protected-data"]"#,
            "start_logind()\nadd_session('c1', 1000)\n"
        )
        try daemon.eventually("logind is followed") {
            let checks = try (daemon.call(.doctor)["checks"]?.arrayValue ?? []).map { try DoctorCheck(json: $0) }
            return checks.contains { $0.name == "logind" && $0.ok }
        }
        try mock.hint("c1", true)
        try daemon.waitForMessage("protectedDataWillBecomeUnavailable")
        try daemon.waitFor("web", "background")
        try mock.hint("c1", false)
        try daemon.waitForMessage("protectedDataDidBecomeAvailable")
        try daemon.waitFor("web", "active")
        // Locked and unlocked again while it sleeps is nothing.
        try daemon.done(.background, "web")
        try daemon.done(.suspend, "web")
        try mock.hint("c1", true)
        try daemon.eventually("it is locked") {
            try daemon.events().filter { $0.text.contains("is locked") }.count == 2
        }
        try mock.hint("c1", false)
        try daemon.eventually("it is unlocked") {
            try daemon.events().filter { $0.text.contains("is unlocked: ") }.count == 2
        }
        try daemon.done(.foreground, "web")
        let names = try daemon.messages().filter { $0.hasPrefix("protectedData") }
        #expect(names == ["protectedDataWillBecomeUnavailable", "protectedDataDidBecomeAvailable"])
        try daemon.stop()
    }
}
