// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Testing

@testable import EventSources

@Suite("A port of several apps", .serialized) struct SocketSharingTests {
    private func events(_ port: TestPort, _ more: String = "", names: [String] = ["a", "b"]) throws -> FakeEvents {
        let apps = names.map { name in
            """
            [apps.\(name)]
            exec = ["/bin/true"]
            sockets = [{ stream = "\(port.text)", reuse_port = true \(more) }]
            """
        }
        return try FakeEvents(real: apps.joined(separator: "\n"))
    }

    private func isBound(_ events: FakeEvents, _ app: String) -> Bool { events.sockets(app).first?.descriptor != nil }

    @Test("is closed by one that a person stopped while another takes connections, and bound again with it")
    func stopped() throws {
        let port = try TestPort()
        let events = try events(port)
        for name in ["a", "b"] { try events.shell.start(name) }
        #expect(isBound(events, "a") && isBound(events, "b"))
        try events.shell.request(.stop(.stopped), "a")
        try events.pass(.zero)
        #expect(!isBound(events, "a") && isBound(events, "b"))
        #expect(events.host.held.count == 1)
        #expect(events.shell.told(of: "a").contains { $0.contains("others listen there") })
        let a = events.shell.app("a")
        #expect(events.wakes.sockets.trouble(of: a) == nil, "nothing is wrong with it")
        try events.pass(.seconds(600))
        #expect(!isBound(events, "a"))
        #expect(try events.wakes.sockets.passed(to: a).count == 1)
        #expect(isBound(events, "a"))
    }

    @Test("keeps connections waiting when all of them are stopped") func allStopped() throws {
        let port = try TestPort()
        let events = try events(port)
        for name in ["a", "b"] { try events.shell.start(name) }
        for name in ["a", "b"] {
            try events.shell.request(.stop(.stopped), name)
            try events.pass(.zero)
        }
        #expect(isBound(events, "a") && isBound(events, "b"))
        let clients = try (0..<8).map { _ in try port.connect() }
        try events.pass(.seconds(1))
        #expect(events.shell.state("a") == .notRunning && events.shell.state("b") == .notRunning)
        _ = clients
    }

    @Test("is bound again by one that was stopped when the other leaves, or is stopped at the same time")
    func theOtherLeaves() throws {
        let port = try TestPort()
        let events = try events(port)
        for name in ["a", "b"] { try events.shell.start(name) }
        try events.shell.request(.stop(.stopped), "a")
        try events.pass(.zero)
        #expect(!isBound(events, "a"))
        try events.remove("b")
        #expect(isBound(events, "a"))
    }

    @Test("stays with one that was stopped where nothing of the others takes connections or is woken for them")
    func nobodyTakes() throws {
        let port = try TestPort()
        let events = try events(port, ", wake = \"none\"")
        try events.shell.start("a")
        try events.fallAsleep("b")
        try events.shell.request(.stop(.stopped), "a")
        try events.pass(.zero)
        #expect(isBound(events, "a"))
    }

    @Test("that three have is shared on by the two that are left") func three() throws {
        let port = try TestPort()
        let events = try events(port, names: ["a", "b", "c"])
        for name in ["a", "b", "c"] { try events.shell.start(name) }
        try events.shell.request(.stop(.stopped), "b")
        try events.pass(.zero)
        #expect(["a", "b", "c"].map { isBound(events, $0) } == [true, false, true])
        try events.shell.start("b")
        try events.pass(.zero)
        #expect(["a", "b", "c"].allSatisfy { isBound(events, $0) })
    }
}
