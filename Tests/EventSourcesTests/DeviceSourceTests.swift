// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Testing

@testable import EventSources

@Suite("Devices that wake apps", .serialized) struct DeviceSourceTests {
    private static func web(_ trigger: String, more: String = "") -> String {
        """
        [apps.web]
        exec = ["/bin/true"]
        launch = "on-demand"
        signals = { didReceiveEvent = "SIGUSR1" }
        devices = [{ name = "it", \(trigger) }]
        \(more)
        """
    }

    private static func fifo(_ folder: TestFolder) throws -> String {
        try File.makeFIFO(folder("fifo"))
        return folder("fifo")
    }

    private func isOpen(_ events: FakeEvents, _ node: String) -> Bool { events.host.held["node" + node] != nil }

    private func write(_ node: String) throws {
        let writer = try File.open(node, [.write, .nonBlocking])
        try Descriptor.writeAll(writer.raw, [1])
    }

    @Test("data of a node that udev does not know wakes the app while it sleeps, for its ten seconds") func data()
        throws
    {
        let folder = try TestFolder()
        let node = try Self.fifo(folder)
        let events = try FakeEvents(real: Self.web("node = \"\(node)\", on = [\"data\"]"))
        try events.wait("it is open") { isOpen(events, node) }
        try write(node)
        try events.wait(for: .background, of: "web")
        #expect(events.woken("web") == ["data on \(node)"])
        #expect(events.topics("web") == ["device:it"])
        try events.pass(.seconds(5))
        try events.shell.request(.forceSuspend, "web")
        try events.wait("what it left there wakes it again") { events.woken("web").count == 2 }
    }

    @Test("data that wakes nobody is told once for each sleep, whatever else becomes of the app") func toldOnce() throws
    {
        let folder = try TestFolder()
        let node = try Self.fifo(folder)
        let events = try FakeEvents(real: Self.web("node = \"\(node)\", on = [\"data\"], wake = \"none\""))
        try events.fallAsleep("web")
        try events.wait("it is open") { isOpen(events, node) }
        try write(node)
        try events.wait("it is told") { events.topics("web") == ["device:it"] }
        for _ in 0..<3 { events.wakes.lookAgain() }
        try events.pass(.seconds(1))
        #expect(events.topics("web") == ["device:it"])
        try events.shell.request(.resume, "web")
        try events.fallAsleep("web")
        try events.wait("it is told again") { events.topics("web").count == 2 }
    }

    @Test("data is not told while the app runs") func runs() throws {
        let folder = try TestFolder()
        let node = try Self.fifo(folder)
        let events = try FakeEvents(real: Self.web("node = \"\(node)\", on = [\"data\"]"))
        try events.wait("it is open") { isOpen(events, node) }
        try events.shell.start("web")
        try write(node)
        try events.pass(.seconds(1))
        #expect(events.topics("web") == [])
    }

    @Test("data of one that was woken too often wakes it when it may be, and not before")
    func heldBack() throws {
        let folder = try TestFolder()
        let node = try Self.fifo(folder)
        let more = "wake_storm = { limit = 1, window = \"10h\", hold = \"60s\" }"
        let events = try FakeEvents(real: Self.web("node = \"\(node)\", on = [\"data\"]", more: more))
        try events.wait("it is open") { isOpen(events, node) }
        try write(node)
        try events.wait(for: .background, of: "web")
        try events.fallAsleep("web")
        try events.wait("it is held back") { events.shell.told(of: "web").contains { $0.contains("wake_storm") } }
        try events.pass(.seconds(59))
        #expect(events.shell.state("web") == .suspended)
        try events.pass(.seconds(1))
        #expect(events.shell.state("web") == .background)
    }

    @Test("data of an app that a person stopped is refused once, and waits until it has run") func stopped() throws {
        let folder = try TestFolder()
        let node = try Self.fifo(folder)
        let events = try FakeEvents(real: Self.web("node = \"\(node)\", on = [\"data\"]"))
        try events.shell.start("web")
        try events.shell.request(.stop(.stopped), "web")
        try events.wait("it is open") { isOpen(events, node) }
        try write(node)
        func refusals() -> Int { events.shell.told(of: "web").count { $0.contains("is not woken") } }
        try events.wait("it is refused") { refusals() == 1 }
        for _ in 0..<3 { events.wakes.lookAgain() }
        try events.pass(.seconds(10))
        #expect(refusals() == 1 && events.shell.state("web") == .notRunning)
        try events.shell.start("web")
        try events.shell.request(.forceSuspend, "web")
        try events.wait("it was woken") { events.woken("web") == ["data on \(node)"] }
    }

    @Test("what waits in a FIFO is not lost when only the rest of its entry is another") func configured() throws {
        let folder = try TestFolder()
        let node = try Self.fifo(folder)
        let events = try FakeEvents(real: Self.web("node = \"\(node)\", on = [\"data\"], wake = \"none\""))
        try events.fallAsleep("web")
        try events.wait("it is open") { isOpen(events, node) }
        // Nobody else has it open.
        try write(node)
        try events.wait("it is told") { !events.topics("web").isEmpty }
        try events.configure(Self.web("node = \"\(node)\", on = [\"data\"], wake = \"background\""))
        try events.wait(for: .background, of: "web")
        #expect(isOpen(events, node))
    }

    @Test("what was opened is closed when the entry or the app goes, with the keeper too", arguments: [true, false])
    func letGo(leaves: Bool) throws {
        let folder = try TestFolder()
        let node = try Self.fifo(folder)
        let events = try FakeEvents(real: Self.web("node = \"\(node)\", on = [\"data\"]"))
        try events.wait("it is open") { isOpen(events, node) }
        if leaves {
            try events.remove("web")
        } else {
            try events.configure("[apps.web]\nexec = [\"/bin/true\"]")
        }
        #expect(!isOpen(events, node))
        #expect(throws: Errno(rawValue: 6), "nobody reads there") { try write(node) }
    }

    @Test("an earlier torpord's FIFO is gone on with, with what came to it meanwhile") func takenOver() throws {
        let folder = try TestFolder()
        let node = try Self.fifo(folder)
        let earlier = try File.openNode(node)
        try write(node)
        let left = [("node" + node, [try earlier.duplicate()])]
        earlier.close()
        let events = try FakeEvents(real: Self.web("node = \"\(node)\", on = [\"data\"]"), left: left)
        try events.wait(for: .background, of: "web")
    }

    @Test(
        "an earlier torpord's FIFO that no trigger waits for any longer is closed, with the keeper too",
        arguments: [nil, "node = \"/dev/null\", on = [\"data\"]"]
    )
    func unwanted(trigger: String?) throws {
        let folder = try TestFolder()
        let node = try Self.fifo(folder)
        let toml = trigger.map { Self.web($0) } ?? "[apps.web]\nexec = [\"/bin/true\"]"
        // No other copy of it is left when it is handed over.
        let events = try FakeEvents(real: toml, left: [("node" + node, [File.openNode(node)])])
        try events.wait("it is closed") {
            do {
                try write(node)
                return false
            } catch {
                return error as? Errno == Errno(rawValue: 6)
            }
        }
        #expect(!isOpen(events, node))
    }

    // MARK: Devices that are there

    private static let null = "/dev/null"
    private static let isListed = File.exists("/sys/class/mem/null")

    @Test(
        "a device that is there appears once for each entry, and goes when the next torpord misses it",
        .enabled(if: isListed)
    )
    func appears() throws {
        let trigger = "subsystem = \"mem\", node = \"\(Self.null)\", on = [\"appear\", \"remove\"]"
        let first = try FakeEvents(real: Self.web(trigger), isStarted: false)
        try first.pass(.seconds(1))
        #expect(first.topics("web") == [], "nothing is told before the start")
        try first.begin()
        try first.wait(for: .background, of: "web")
        #expect(first.woken("web") == ["the appearance of \(Self.null)"])
        first.wakes.configure()
        try first.pass(.seconds(1))
        #expect(first.topics("web") == ["device:it"])
        let memory = try #require(first.host.held["devices"]?.first)
        let bytes = try File.read(memory, at: 0, maximum: 1 << 16)
        let gone = Array("web/it\0/sys/devices/virtual/mem/of-torpor\0".utf8)
        let next = try Memory.file(named: "devices")
        try File.write(next.raw, at: 0, bytes + gone)
        let events = try FakeEvents(real: Self.web(trigger), left: [("devices", [next])])
        try events.wait("it is told") { !events.topics("web").isEmpty }
        try events.pass(.seconds(1))
        #expect(events.woken("web") == ["the removal of of-torpor"])
        #expect(events.topics("web") == ["device:it"], "the other one is not new")
    }

    @Test(
        "a device that fits no pattern of an entry is none of it",
        .enabled(if: isListed),
        arguments: ["node = \"/dev/nul\"", "type = \"disk\"", "properties = { DEVNAME = \"/dev/zero\" }"]
    )
    func fits(pattern: String) throws {
        let bell = """
            [apps.bell]
            exec = ["/bin/true"]
            devices = [{ subsystem = "mem", node = "/dev/nul*" }]
            """
        let events = try FakeEvents(real: Self.web("subsystem = \"mem\", \(pattern)") + bell)
        try events.wait(for: .background, of: "bell")
        try events.pass(.seconds(1))
        let expected = pattern.hasPrefix("prop") ? ["the appearance of /dev/zero"] : []
        #expect(events.woken("web") == expected)
    }

    @Test(
        "A device launches an app that a person force-quit if it has the mode and wake_after_force_quit names it",
        arguments: [(true, true), (true, false), (false, true)]
    )
    func afterForceQuit(_ hasMode: Bool, _ isNamed: Bool) throws {
        let folder = try TestFolder()
        let node = try Self.fifo(folder)
        let more =
            (hasMode ? "background_modes = [\"external-accessory\"]\n" : "")
            + (isNamed ? "wake_after_force_quit = [\"external-accessory\"]\n" : "")
        let events = try FakeEvents(real: Self.web("node = \"\(node)\", on = [\"data\"]", more: more))
        try events.shell.start("web")
        try events.shell.request(.forceQuit, "web")
        try events.wait("it is open") { isOpen(events, node) }
        try write(node)
        guard hasMode, isNamed else {
            try events.wait("it is refused") { events.shell.told(of: "web").contains { $0.contains("is not woken") } }
            #expect(events.shell.state("web") == .notRunning)
            return
        }
        try events.wait(for: .background, of: "web")
        #expect(events.woken("web") == ["data on \(node)"])
    }
}
