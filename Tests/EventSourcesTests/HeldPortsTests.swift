// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Testing

@testable import EventSources

@Suite("Ports of apps that were ended in their sleep", .serialized) struct HeldPortsTests {
    private static func web(_ more: String = "") -> String {
        "[apps.web]\nexec = [\"/bin/true\"]\nwake_on_connect = true\n" + more
    }

    /// An app that listens there has been ended in its sleep.
    private func gone(_ port: TestPort, _ more: String = "") throws -> FakeEvents {
        let listener = try port.listen()
        let events = try FakeEvents(real: Self.web(more))
        try events.fallAsleep("web")
        try events.pass(.zero)
        try events.evict("web")
        listener.close()
        return events
    }

    @Test("are held, with the keeper too, until the first connection launches the app") func firstConnection() throws {
        let port = try TestPort()
        let events = try gone(port)
        #expect(events.ports("web") == [port.text])
        #expect(events.host.held["ports:web"]?.count == 1)
        try events.pass(.seconds(3_600))
        #expect(events.shell.state("web") == .notRunning)
        let client = try port.connect()
        try events.wait(for: .background, of: "web")
        #expect(events.woken("web") == ["a connection at \(port.text)"])
        // It can bind the address itself.
        #expect(events.ports("web") == [] && events.host.held["ports:web"] == nil)
        _ = try port.listen()
        _ = client
    }

    @Test("launch the app into the foreground where that is how connections wake it") func foreground() throws {
        let port = try TestPort()
        let listener = try port.listen()
        let events = try FakeEvents(real: Self.web().replacing("= true", with: "= \"foreground\""))
        try events.fallAsleep("web")
        try events.evict("web")
        listener.close()
        _ = try port.connect()
        try events.wait(for: .active, of: "web")
    }

    @Test("are 32 at most") func atMost() throws {
        let ports = try (0..<40).map { _ in try TestPort() }
        let listeners = try ports.map { try $0.listen() }
        let events = try FakeEvents(real: Self.web())
        try events.fallAsleep("web")
        try events.pass(.zero)
        try events.evict("web")
        for listener in listeners { listener.close() }
        #expect(events.ports("web").count == 32)
        #expect(events.host.held["ports:web"]?.count == 32)
        let clients = ports.map { try? $0.connect() }
        #expect(clients.count { $0 != nil } == 32)
    }

    @Test("are given up when a person stops the app, or it leaves", arguments: [true, false])
    func givenUp(leaves: Bool) throws {
        let port = try TestPort()
        let events = try gone(port)
        if leaves {
            try events.remove("web")
        } else {
            try events.shell.request(.stop(.stopped), "web")
        }
        try events.pass(.zero)
        #expect(throws: Errno.connectionRefused) { try port.connect() }
        #expect(events.host.held["ports:web"] == nil)
    }

    @Test("that nobody could hold have the app launched and suspended again, when there is memory for it")
    func lost() throws {
        let port = try TestPort()
        let listener = try port.listen()
        let events = try FakeEvents(real: Self.web())
        try events.fallAsleep("web")
        try events.pass(.zero)
        events.host.isMemoryShort = true
        // Many programs do so when they end.
        try Sockets.shutdownReading(listener.raw)
        try events.evict("web")
        try events.pass(.seconds(60))
        #expect(events.shell.state("web") == .notRunning)
        #expect(events.ports("web") == [])
        events.host.isMemoryShort = false
        events.wakes.connectionWatch.memoryIsEnough()
        try events.wait("it is launched again") { events.woken("web") == ["the loss of its port"] }
        try events.wait("it sleeps", passing: .seconds(1)) { events.shell.state("web") == .suspended }
    }

    @Test(
        "of an app that another process killed wait for no connection, unless it is never restarted",
        arguments: [true, false]
    )
    func killed(isRestarted: Bool) throws {
        let port = try TestPort()
        let listener = try port.listen()
        let events = try FakeEvents(real: Self.web(isRestarted ? "restart = \"always\"" : "restart = \"never\""))
        try events.fallAsleep("web")
        try events.pass(.zero)
        let web = events.shell.app("web")
        web.wasCutShort = true
        web.wasKilledAsleep = true
        try events.shell.request(.evict, "web")
        listener.close()
        try events.pass(.seconds(1))
        #expect(events.woken("web") == (isRestarted ? ["its end while suspended"] : []))
        #expect(events.ports("web") == (isRestarted ? [] : [port.text]))
    }

    @Test("have a connection that came too often launch the app when it may be") func storm() throws {
        let port = try TestPort()
        let more = "wake_storm = { limit = 1, window = \"10min\", hold = \"60s\" }"
        let events = try gone(port, more)
        let first = try port.connect()
        try events.wait(for: .background, of: "web")
        let listener = try port.listen()
        try events.fallAsleep("web")
        try events.pass(.zero)
        try events.evict("web")
        listener.close()
        let second = try port.connect()
        try events.wait("it is held back") { events.shell.told(of: "web").contains { $0.contains("wake_storm") } }
        try events.pass(.seconds(59))
        #expect(events.shell.state("web") == .notRunning)
        try events.pass(.seconds(1))
        #expect(events.shell.state("web") == .background)
        _ = (first, second)
    }

    @Test("that an earlier torpord held are held on, and launch the app") func takenOver() throws {
        let port = try TestPort()
        let listener = try port.listen()
        let left = [("ports:web", [try listener.duplicate()])]
        listener.close()
        let events = try FakeEvents(real: Self.web(), left: left) { shell, _ in
            try shell.start("web")
            try shell.request(.forceSuspend, "web")
            try shell.request(.evict, "web")
            shell.app("web").wasCutShort = true
        }
        #expect(events.ports("web") == [port.text])
        try events.pass(.seconds(10))
        #expect(events.shell.state("web") == .notRunning)
        let client = try port.connect()
        try events.wait("it waits to be looked at again") {
            events.wakes.lookAgain()
            return events.shell.state("web") == .background
        }
        _ = client
    }

    @Test("that an earlier torpord held for an app that does not want them are closed, with the keeper too")
    func notWanted() throws {
        let port = try TestPort()
        let listener = try port.listen()
        let left = [("ports:web", [try listener.duplicate()])]
        listener.close()
        let events = try FakeEvents(real: Self.web(), left: left) { _, host in
            host.hold("ports:web", [1], replacing: true)
        }
        #expect(events.host.held["ports:web"] == nil)
        #expect(throws: Errno.connectionRefused) { try port.connect() }
    }
}
