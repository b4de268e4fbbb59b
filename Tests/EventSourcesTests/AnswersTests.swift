// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Testing

@testable import EventSources

@Suite("An app that an event woke, while clients wait for its answers", .serialized) struct AnswersTests {
    private static let hour = Duration.seconds(3_600)

    /// So long that what this process uses of a processor is next to nothing.
    private static func web(_ more: String = "wake_on_connect = true") -> String {
        """
        [apps.web]
        exec = ["/bin/true"]
        event_time = "1h"
        answer_time = "150min"
        \(more)
        """
    }

    /// An app that a connection has woken, and that connection.
    private func served(
        _ path: String,
        by listener: Descriptor
    ) throws -> (events: FakeEvents, client: Descriptor, served: Descriptor) {
        let events = try FakeEvents(real: Self.web())
        try events.fallAsleep("web")
        let client = try Sockets.connect(path: path)
        try events.wait(for: .background, of: "web")
        return (events, client, try listener.accepted())
    }

    @Test("It stays awake while a connection is open of which nobody can tell, for the time of an answer at most")
    func open() throws {
        let folder = try TestFolder()
        let listener = try Sockets.listen(path: folder("s"))
        let (events, client, served) = try served(folder("s"), by: listener)
        try events.pass(Self.hour * 2.9)
        #expect(events.shell.state("web") == .background)
        try events.pass(Self.hour * 0.1)
        #expect(events.shell.state("web") == .suspended)
        _ = (listener, client, served)
    }

    @Test("It sleeps when its time is over where no connection is open") func over() throws {
        let folder = try TestFolder()
        let listener = try Sockets.listen(path: folder("s"))
        let (events, client, served) = try served(folder("s"), by: listener)
        served.close()
        client.close()
        try events.pass(Self.hour - .seconds(1))
        #expect(events.shell.state("web") == .background)
        try events.pass(.seconds(1))
        #expect(events.shell.state("web") == .suspended)
        _ = listener
    }

    @Test("It stays awake as long as something moves on a connection that came in") func moving() throws {
        let port = try TestPort()
        let listener = try port.listen()
        let events = try FakeEvents(real: Self.web())
        try events.fallAsleep("web")
        let client = try port.connect()
        try events.wait(for: .background, of: "web")
        let served = try listener.accepted()
        for _ in 0..<6 {
            try Descriptor.writeAll(served.raw, [1])
            try events.pass(Self.hour)
            #expect(events.shell.state("web") == .background)
        }
        client.close()
        served.close()
        try events.pass(Self.hour)
        #expect(events.shell.state("web") == .suspended)
        _ = listener
    }

    @Test("Connections to sockets that torpord bound count, whatever woke the app") func givenSockets() throws {
        let folder = try TestFolder()
        let events = try FakeEvents(real: Self.web("sockets = [{ stream = \"\(folder("s"))\" }]"))
        let listener = try #require(events.sockets("web").first?.descriptor)
        let client = try Sockets.connect(path: folder("s"))
        let served = try listener.accepted()
        try events.fallAsleep("web")
        events.wakes.tell(
            WakeEvent(.timer, "t", "its timer t", at: events.shell.time.now),
            for: events.shell.app("web")
        )
        try events.wait(for: .background, of: "web")
        try events.pass(Self.hour * 1.5)
        #expect(events.shell.state("web") == .background)
        served.close()
        client.close()
        try events.pass(Self.hour)
        #expect(events.shell.state("web") == .suspended)
    }

    @Test("Connections that it made itself do not count") func itsOwn() throws {
        let folder = try TestFolder()
        let listener = try Sockets.listen(path: folder("elsewhere"))
        let client = try Sockets.connect(path: folder("elsewhere"))
        let served = try listener.accepted()
        listener.close()
        let events = try FakeEvents(real: Self.web())
        try events.fallAsleep("web")
        events.wakes.tell(
            WakeEvent(.timer, "t", "its timer t", at: events.shell.time.now),
            for: events.shell.app("web")
        )
        try events.wait(for: .background, of: "web")
        try events.pass(Self.hour)
        #expect(events.shell.state("web") == .suspended)
        _ = (listener, client, served)
    }

    @Test("Where somebody wants it in the background, its connections are no matter") func wanted() throws {
        let folder = try TestFolder()
        let listener = try Sockets.listen(path: folder("s"))
        let (events, client, served) = try served(folder("s"), by: listener)
        try events.shell.request(.suspend, "web")
        try events.wait(for: .suspended, of: "web")
        try events.pass(Self.hour * 2)
        #expect(events.shell.state("web") == .suspended, "a person's word is not undone by an open connection")
        _ = (listener, client, served)
    }
}
