// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import MockDevices
import Testing
import TorporAPI
import Varlink

/// A daemon that sees the devices of a mock and no others.
struct DeviceScene {
    let mock: MockDevices
    let daemon: Daemon

    init(_ toml: String, _ prepare: String = "", files: [String: String]) throws {
        mock = try MockDevices { body in try Spawn.lock.withLock { try body() } }
        if !prepare.isEmpty { try mock.run(prepare) }
        daemon = try Daemon(toml, files: files, environment: mock.environment)
        try daemon.waitUntilItAnswers()
    }

    /// An app with a delegate.
    static func toml(_ keys: String) -> String { Delegates.head + keys + "\n" }

    /// The payloads of what the app was told under a topic, in order.
    func told(_ topic: String, _ message: String = "didReceiveEvent", app: String = "web") throws -> [JSON] {
        try daemon.heard(app).filter { $0.what == "message" && $0.name == message }
            .filter { $0.parameters["topic"]?.stringValue == topic }
            .compactMap { $0.parameters["payload"] }
    }

    /// Has the app hear what was there before it is looked at.
    func settle(at location: SourceLocation = #_sourceLocation) throws {
        try daemon.done(.foreground, "web", at: location)
    }
}

/// The name of a device's happening, as Python of the mock makes it.
private let stick = """
    add('tty', 'ttyUSB0', attributes={'dev': '188:0'}, properties={'DEVNAME': '/dev/ttyUSB0', 'ID_MODEL': 'Stick', \
    'ID_VENDOR_ID': '0403', 'DEVLINKS': '/dev/serial/by-id/stick'})
    """

@Suite(
    "Devices that wake apps",
    .enabled(if: MockDevices.obstacle == nil, "umockdev is needed: make deps")
)
struct DeviceTests {
    private static let trigger = """
        devices = [{ name = "stick", subsystem = "tty", node = "/dev/ttyUSB*", properties = { ID_VENDOR_ID = "04*" }, \
        on = ["appear", "remove", "change"] }]
        event_time = "300ms"
        """

    @Test("an app that was never started is launched when its device is plugged in, and told which")
    func plugged() throws {
        let scene = try DeviceScene(DeviceScene.toml(Self.trigger), files: Delegates.files())
        try scene.mock.run("path = \(stick)\nbed.uevent(path, 'add')")
        let woken = try scene.daemon.waitForEvent("web", "woken by the appearance of /dev/ttyUSB0 (Stick)")
        #expect(woken.reason == "device")
        let heard = try scene.daemon.waitForMessage("didReceiveEvent")
        #expect(heard.parameters["topic"]?.stringValue == "device:stick")
        let payload = heard.parameters["payload"]
        #expect(payload?["action"]?.stringValue == "appear")
        #expect(payload?["device"]?["node"]?.stringValue == "/dev/ttyUSB0")
        #expect(payload?["device"]?["model"]?.stringValue == "Stick")
        try scene.daemon.stop()
    }

    @Test("a suspended app is continued when its device changes or goes, and suspended again")
    func changesAndGoes() throws {
        let scene = try DeviceScene(DeviceScene.toml(Self.trigger), "path = \(stick)", files: Delegates.files())
        // It is there when the machine starts: that launches the app.
        try scene.daemon.waitForMessage("didReceiveEvent")
        try scene.daemon.done(.suspend, "web")
        try scene.mock.run("set(path, speed='9600')")
        let change = try scene.daemon.waitForMessage("didReceiveEvent", count: 2)
        #expect(change.parameters["payload"]?["action"]?.stringValue == "change")
        try scene.daemon.waitFor("web", "suspended")
        // Announced again, it has not appeared again.
        try scene.mock.run("bed.uevent(path, 'add')\nbed.uevent(path, 'remove')")
        let removal = try scene.daemon.waitForMessage("didReceiveEvent", count: 3)
        #expect(removal.parameters["payload"]?["action"]?.stringValue == "remove")
        try scene.daemon.waitFor("web", "suspended")
        try scene.daemon.stop()
    }

    @Test("a device that does not fit wakes nobody")
    func another() throws {
        let scene = try DeviceScene(DeviceScene.toml(Self.trigger), files: Delegates.files())
        try scene.mock.run("again('tty', 'ttyUSB1', properties={'DEVNAME': '/dev/ttyUSB1', 'ID_VENDOR_ID': '1111'})")
        try scene.mock.run("again('tty', 'ttyS0', properties={'DEVNAME': '/dev/ttyS0', 'ID_VENDOR_ID': '0403'})")
        try scene.mock.run("path = \(stick)\nbed.uevent(path, 'add')")
        try scene.daemon.waitForMessage("didReceiveEvent")
        try scene.settle()
        #expect(try scene.told("device:stick").count == 1)
        #expect(try scene.told("device:stick").first?["device"]?["node"]?.stringValue == "/dev/ttyUSB0")
        try scene.daemon.stop()
    }

    @Test("what was plugged in and out again while an app slept that is not woken for it is nothing")
    func net() throws {
        let keys = """
            devices = [{ name = "stick", subsystem = "tty", on = ["appear", "remove"], wake = "none" }]
            [apps.last]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            devices = [{ node = "/dev/ttyACM0" }]
            """
        let scene = try DeviceScene(DeviceScene.toml(keys), files: Delegates.files())
        try scene.daemon.done(.start, "web")
        try scene.daemon.done(.suspend, "web")
        try scene.mock.run("path = \(stick)\nbed.uevent(path, 'add')\nbed.uevent(path, 'remove')")
        try scene.mock.run("again('tty', 'ttyACM0', properties={'DEVNAME': '/dev/ttyACM0'})")
        // In the order of udev: when the last one was seen, all were.
        try scene.daemon.waitFor("last", "background")
        #expect(try scene.daemon.summary("web").state == "suspended")
        try scene.daemon.done(.resume, "web")
        let heard = try scene.daemon.waitForMessage("didReceiveEvent")
        #expect(heard.parameters["payload"]?["device"]?["node"]?.stringValue == "/dev/ttyACM0")
        try scene.settle()
        #expect(try scene.told("device:stick").count == 1)
        try scene.daemon.stop()
    }

    @Test("a device that came while torpord was dead has appeared to the next one, and the others have not")
    func missed() throws {
        let scene = try DeviceScene(DeviceScene.toml(Self.trigger), "path = \(stick)", files: Delegates.files())
        try scene.daemon.waitForMessage("didReceiveEvent")
        try scene.daemon.done(.suspend, "web")
        let torpord = try scene.daemon.torpord()
        kill(scene.daemon.pid, SIGSTOP)
        kill(torpord, SIGKILL)
        let other = stick.replacingOccurrences(of: "USB0", with: "USB1")
        try scene.mock.run("path = \(other)\nbed.uevent(path, 'add')")
        kill(scene.daemon.pid, SIGCONT)
        try scene.daemon.waitUntilItAnswers()
        let heard = try scene.daemon.waitForMessage("didReceiveEvent", count: 2)
        #expect(heard.parameters["payload"]?["device"]?["node"]?.stringValue == "/dev/ttyUSB1")
        try scene.settle()
        #expect(try scene.told("device:stick").count == 2)
        try scene.daemon.stop()
    }
}

@Suite("Data that wakes apps")
struct DeviceDataTests {
    /// A terminal whose other end is ours.
    private final class Terminal {
        let master: Int32
        let node: String

        init() throws {
            master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
            var number: Int32 = 0
            var lock: Int32 = 0
            // TIOCSPTLCK, TIOCGPTN: posix_openpt and its like are not imported.
            guard master >= 0, ioctl(master, 0x4004_5431, &lock) == 0, ioctl(master, 0x8004_5430, &number) == 0 else {
                throw Trouble("no pty: \(errno)")
            }
            node = "/dev/pts/\(number)"
        }

        deinit { close(master) }

        func say(_ text: String) { _ = text.withCString { write(master, $0, strlen($0)) } }
    }

    /// Reads lines of the terminal.
    private static let app = """
        from tp import *
        tty = os.open(os.environ["NODE"], os.O_RDWR | os.O_NOCTTY)
        record("up")
        while True:
            record("read " + os.read(tty, 4096).decode().strip())
        """

    private func toml(_ node: String) -> String {
        """
        [apps.web]
        \(Scripts.python)"@D/app.py"]
        launch = "on-demand"
        environment = { NODE = "\(node)" }
        devices = [{ name = "line", node = "\(node)", on = ["data"] }]

        """
    }

    @Test("a line on a terminal launches its app, and later continues it; nothing of what is said is lost")
    func terminal() throws {
        let terminal = try Terminal()
        try withDaemon(toml(terminal.node), files: ["app.py": Self.app]) { daemon in
            terminal.say("one\n")
            try daemon.waitForRecord("web", "read one")
            try daemon.waitForEvent("web", "woken by data on \(terminal.node)")
            try daemon.done(.suspend, "web")
            terminal.say("two\n")
            try daemon.waitForRecord("web", "read two")
            // So long an accessory has, and no longer.
            #expect(try daemon.status("web").deadlines.map(\.limitMilliseconds) == [10_000])
            try daemon.done(.suspend, "web")
            terminal.say("three\nfour\n")
            try daemon.waitForRecord("web", "read four")
            let read = daemon.records("web").filter { $0.hasPrefix("read ") }
            #expect(read == ["read one", "read two", "read three", "read four"])
        }
    }

    @Test("what was said to an app that a person stopped is there when it is started, and wakes nobody until then")
    func stopped() throws {
        let terminal = try Terminal()
        try withDaemon(toml(terminal.node), files: ["app.py": Self.app]) { daemon in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            try daemon.done(.stop, "web")
            terminal.say("late\n")
            try daemon.waitForEvent("web", "is not woken by")
            let count = try daemon.events("web").filter { $0.text.contains("is not woken") }.count
            #expect(count == 1)
            #expect(!daemon.records("web").contains("read late"))
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "read late")
        }
    }

    @Test("what was said to an evicted app while torpord was replaced is read by its next run")
    func replaced() throws {
        let terminal = try Terminal()
        let toml = toml(terminal.node).replacingOccurrences(of: "[apps.web]", with: "[apps.web]\nrestart = \"never\"")
        let once = """
            from tp import *
            tty = os.open(os.environ["NODE"], os.O_RDWR | os.O_NOCTTY)
            record("read " + os.read(tty, 4096).decode().strip())
            """
        try withDaemon(toml, files: ["app.py": once]) { daemon in
            terminal.say("one\n")
            try daemon.waitForRecord("web", "read one")
            try daemon.waitFor("web", "not-running")
            let torpord = try daemon.torpord()
            kill(daemon.pid, SIGSTOP)
            kill(torpord, SIGKILL)
            terminal.say("two\n")
            kill(daemon.pid, SIGCONT)
            try daemon.waitForRecord("web", "read two")
        }
    }

    @Test("a FIFO wakes its app each time that something is written into it")
    func fifo() throws {
        let script = """
            from tp import *
            fifo = os.open(os.environ["NODE"], os.O_RDWR)
            record("up")
            while True:
                record("read " + os.read(fifo, 4096).decode().strip())
            """
        try withDaemon(toml("@D/fifo"), files: ["app.py": script]) { daemon in
            // It is not there when torpord starts: it is found when something about the app changes.
            try File.makeFIFO(daemon.directory + "/fifo")
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            try daemon.done(.suspend, "web")
            let fifo = try File.open(daemon.directory + "/fifo", [.write])
            try Descriptor.writeAll(fifo.raw, Array("one".utf8))
            try daemon.waitForRecord("web", "read one")
            fifo.close()
            try daemon.done(.suspend, "web")
            let again = try File.open(daemon.directory + "/fifo", [.write])
            try Descriptor.writeAll(again.raw, Array("two".utf8))
            try daemon.waitForRecord("web", "read two")
        }
    }
}
