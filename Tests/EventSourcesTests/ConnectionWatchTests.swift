// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Testing

@testable import EventSources

@Suite("Sockets that apps open themselves, while they sleep", .serialized) struct ConnectionWatchTests {
    private static func web(_ more: String = "wake_on_connect = true") -> String {
        "[apps.web]\nexec = [\"/bin/true\"]\n" + more
    }

    /// A client, and its connection at the other side.
    private func connection(
        at port: TestPort,
        _ listener: Descriptor
    ) throws -> (client: Descriptor, served: Descriptor) {
        let client = try port.connect()
        return (client, try listener.accepted())
    }

    @Test("a connection wakes the app, and the copies are closed: its port is its own again", arguments: [true, false])
    func connection(isUnix: Bool) throws {
        let folder = try TestFolder()
        let port = try TestPort()
        let listener = try isUnix ? Sockets.listen(path: folder("s")) : port.listen()
        let connect = { try isUnix ? Sockets.connect(path: folder("s")) : port.connect() }
        let events = try FakeEvents(real: Self.web())
        try events.fallAsleep("web")
        try events.pass(.seconds(100))
        #expect(events.shell.state("web") == .suspended)
        let client = try connect()
        try events.wait(for: .background, of: "web")
        #expect(events.woken("web") == ["a connection at " + (isUnix ? folder("s") : port.text)])
        listener.close()
        #expect(throws: Errno.connectionRefused) { try connect() }
        client.close()
    }

    @Test("what waits when the app falls asleep wakes it at once, and later each time that it leaves it there")
    func leftBehind() throws {
        let port = try TestPort()
        let listener = try port.listen()
        let events = try FakeEvents(real: Self.web())
        let client = try port.connect()
        try listener.awaitInput()
        for (count, delay) in [Duration.zero, .seconds(1), .seconds(2), .seconds(4)].enumerated() {
            // It has time enough to see what waits.
            if count == 0 { try events.shell.start("web") } else { try events.pass(.seconds(1)) }
            try events.shell.request(.forceSuspend, "web")
            // The delay begins when it is known which connections wait.
            var passed = Duration.zero
            try events.wait("it was woken \(count + 1) times", passing: delay / 20) {
                passed += delay / 20
                return events.woken("web").count == count + 1
            }
            #expect(passed >= delay, "\(passed)")
        }
        // Anything new wakes it at once all the same.
        try events.pass(.seconds(1))
        try events.fallAsleep("web")
        let other = try port.connect()
        try events.wait("it was woken") { events.woken("web").count == 5 }
        _ = (client, other)
    }

    /// What wakes an app: data on a connection that came in, data on one that it made, a connection.
    private static let cases: [(String, [Bool])] = [
        ("wake_on_connect = true", [true, false, true]),
        ("background_modes = [\"voip\"]", [true, true, false]),
        ("wake_on_connect = true\nbackground_modes = [\"voip\"]", [true, true, true]),
    ]

    @Test("data and connections wake those that say so, and no others", arguments: cases.indices)
    func wishes(_ index: Int) throws {
        let (more, wakes) = Self.cases[index]
        let port = try TestPort()
        let elsewhere = try TestPort()
        let events = try FakeEvents(real: Self.web(more))
        let listener = try port.listen()
        let (client, served) = try connection(at: port, listener)
        // The other side of what it makes is of this process too, and listens nowhere any more.
        let server = try elsewhere.listen()
        let (made, remote) = try connection(at: elsewhere, server)
        server.close()
        let (pair, far) = try Sockets.pair(.stream)
        try events.fallAsleep("web")
        try Descriptor.writeAll(far.raw, [1])
        try pair.awaitInput()
        try events.pass(.seconds(1))
        #expect(events.shell.state("web") == .suspended, "a connection that it made to a Unix socket wakes nobody")
        try Descriptor.writeAll(remote.raw, [1])
        try made.awaitInput()
        try events.pass(.seconds(1))
        #expect((events.shell.state("web") == .background) == wakes[1])
        #expect(try Descriptor.read(made.raw, maximum: 10) == [1])
        try events.fallAsleep("web")
        let before = events.woken("web").count
        try Descriptor.writeAll(client.raw, [1])
        try served.awaitInput()
        try events.pass(.seconds(1))
        #expect((events.woken("web").count == before + 1) == wakes[0])
        let name = try SocketFacts(wakes[0] ? client.raw : remote.raw).local
        #expect(events.woken("web").last == "data on a connection with \(name)")
        _ = listener
    }

    @Test("the end of a connection wakes whoever listens for itself") func theEnd() throws {
        let port = try TestPort()
        let listener = try port.listen()
        let events = try FakeEvents(real: Self.web())
        let (client, served) = try connection(at: port, listener)
        let name = try SocketFacts(client.raw).local
        try events.fallAsleep("web")
        client.close()
        try served.awaitInput()
        try events.wait("it was woken") { !events.woken("web").isEmpty }
        #expect(events.woken("web") == ["the end of input on a connection with \(name)"])
        _ = listener
    }

    @Test("of a connection to a socket that torpord bound data wake the app as that socket says, and its end does not")
    func givenSockets() throws {
        let port = try TestPort()
        let socket = "sockets = [{ name = \"http\", stream = \"\(port.text)\", wake = \"foreground\" }]"
        let events = try FakeEvents(real: Self.web(socket))
        let listener = try #require(events.sockets("web").first?.descriptor)
        let (client, served) = try connection(at: port, listener)
        let (other, leaving) = try connection(at: port, listener)
        try events.fallAsleep("web")
        other.close()
        try leaving.awaitInput()
        try events.pass(.seconds(1))
        #expect(events.shell.state("web") == .suspended)
        try Descriptor.writeAll(client.raw, [1])
        try events.wait(for: .active, of: "web")
        #expect(events.woken("web") == ["data on a connection with \(try SocketFacts(client.raw).local)"])
        _ = served
    }

    @Test("a connection at a socket that torpord bound is one event, of that socket") func oneEvent() throws {
        let port = try TestPort()
        let more = "wake_on_connect = true\nsockets = [{ name = \"http\", stream = \"\(port.text)\" }]"
        let events = try FakeEvents(real: Self.web(more))
        try events.fallAsleep("web")
        let client = try port.connect()
        try events.wait("it was woken") { !events.woken("web").isEmpty }
        try events.pass(.seconds(1))
        #expect(events.woken("web") == ["a connection at http (\(port.text))"])
        _ = client
    }

    @Test("room on a connection that was full wakes whoever was stopped while it wrote") func roomAgain() throws {
        let port = try TestPort()
        let listener = try port.listen()
        let events = try FakeEvents(real: Self.web())
        let (client, served) = try connection(at: port, listener)
        try Descriptor.setNonBlocking(served.raw)
        try Descriptor.setNonBlocking(client.raw)
        let piece = [UInt8](repeating: 1, count: 1 << 16)
        while Descriptor.readiness(served.raw).contains(.writable) { _ = try Descriptor.write(served.raw, piece) }
        try events.fallAsleep("web")
        try events.pass(.seconds(1))
        #expect(events.shell.state("web") == .suspended)
        try events.wait("it was woken") {
            _ = try Descriptor.read(client.raw, maximum: 1 << 20)
            return !events.woken("web").isEmpty
        }
        #expect(events.woken("web") == ["room for more on a connection with \(try SocketFacts(client.raw).local)"])
        _ = listener
    }

    @Test("an app that is suspended while a client waits for its answer is woken at once to give it")
    func owedAnswer() throws {
        let port = try TestPort()
        let listener = try port.listen()
        let events = try FakeEvents(real: Self.web("wake_on_connect = true\nanswer_time = \"none\""))
        let (client, served) = try connection(at: port, listener)
        try events.shell.start("web")
        try Descriptor.writeAll(client.raw, [1])
        try served.awaitInput()
        _ = try Descriptor.read(served.raw, maximum: 10)
        try events.shell.request(.forceSuspend, "web")
        try events.wait("it was woken") { events.woken("web").count == 1 }
        // It answers: when the answer was written later than the question came, by the kernel's clock, it sleeps.
        try events.wait("nothing is owed") {
            try Descriptor.writeAll(served.raw, [2])
            let reading = try SocketCopyReading(ThisProcess.pid, pidfd: Pidfd.open(ThisProcess.pid))
            _ = try reading.read()
            let inode = try File.status(descriptor: served.raw).inode
            let traffic = reading.copies.first { UInt64($0.inode) == inode }?.traffic
            return traffic.map { $0.unanswered == nil && $0.tied == nil } ?? false
        }
        try events.fallAsleep("web")
        try events.pass(.seconds(1))
        #expect(events.shell.state("web") == .suspended)
        _ = listener
    }

    @Test("one that is held back for too many wakes is woken when that is over") func storm() throws {
        let port = try TestPort()
        let listener = try port.listen()
        let more = "wake_on_connect = true\nwake_storm = { limit = 1, window = \"10min\", hold = \"60s\" }"
        let events = try FakeEvents(real: Self.web(more))
        try events.fallAsleep("web")
        _ = try port.connect()
        try events.wait(for: .background, of: "web")
        _ = try listener.accepted()
        try events.fallAsleep("web")
        let client = try port.connect()
        try listener.awaitInput()
        try events.pass(.seconds(59))
        #expect(events.shell.state("web") == .suspended)
        try events.pass(.seconds(1))
        #expect(events.shell.state("web") == .background)
        _ = client
    }

    @Test(
        "nothing of it is kept when the app leaves, or is to be woken by connections no more",
        arguments: [true, false]
    )
    func letGo(leaves: Bool) throws {
        let port = try TestPort()
        let listener = try port.listen()
        let events = try FakeEvents(real: Self.web())
        try events.fallAsleep("web")
        try events.pass(.zero)
        if leaves {
            try events.remove("web")
        } else {
            try events.configure(Self.web(""))
        }
        listener.close()
        #expect(throws: Errno.connectionRefused) { try port.connect() }
    }

    @Test("more sockets than are copied are looked at twice a second instead") func tooMany() throws {
        let port = try TestPort()
        let listener = try port.listen()
        let pairs = try (0..<520).map { _ in try Sockets.pair(.datagram) }
        let events = try FakeEvents(real: Self.web())
        try events.fallAsleep("web")
        for _ in 0..<4 { try events.pass(.milliseconds(500)) }
        #expect(events.shell.state("web") == .suspended)
        let client = try port.connect()
        try listener.awaitInput()
        try events.wait("it was woken", passing: .milliseconds(500)) { !events.woken("web").isEmpty }
        #expect(events.woken("web") == ["a connection at port \(port.number)"])
        _ = (pairs.count, client)
    }

    @Test(
        "a socket of its own that torpord could not bind, since the app itself still has it, wakes it all the same",
        arguments: [false, true],
        [false, true]
    )
    func lost(isUnix: Bool, isPolled: Bool) throws {
        let folder = try TestFolder()
        let port = try TestPort()
        let address = isUnix ? folder("s") : port.text
        let listener = try isUnix ? Sockets.listen(path: address) : port.listen()
        let events = try FakeEvents(real: Self.web("sockets = [{ stream = \"\(address)\" }]"))
        let web = events.shell.app("web")
        if isPolled {
            events.wakes.connectionWatch.newFinder = { tree, loop, _, done in
                SocketFinder(tree, loop, obstacle: .notPermitted, done)
            }
        }
        #expect(events.sockets("web").first?.descriptor == nil)
        try events.shell.start("web")
        #expect(events.wakes.sockets.unbound(of: web).count == 1)
        try events.fallAsleep("web")
        try events.wait("it is known that it listens itself", passing: .milliseconds(100)) {
            events.wakes.sockets.unbound(of: web).isEmpty
        }
        #expect(events.shell.state("web") == .suspended && events.woken("web").isEmpty)
        let client = try isUnix ? Sockets.connect(path: address) : port.connect()
        try listener.awaitInput()
        try events.wait("it was woken", passing: .milliseconds(500)) { !events.woken("web").isEmpty }
        #expect(events.wakes.sockets.unbound(of: web).count == 1)
        // Another socket of the app, which its configuration does not have, wakes it as little as before.
        _ = try listener.accepted()
        client.close()
        let own = try TestPort()
        let other = try own.listen()
        try events.fallAsleep("web")
        let stranger = try own.connect()
        try other.awaitInput()
        for _ in 0..<4 { try events.pass(.milliseconds(500)) }
        #expect(events.shell.state("web") == .suspended && events.woken("web").count == 1)
        _ = stranger
    }

    @Test("of an app whose sockets can neither be copied nor listed, it is unknown whether it has a connection")
    func unlisted() throws {
        let port = try TestPort()
        let events = try FakeEvents(
            real: Self.web("background_modes = [\"voip\"]\nsockets = [{ stream = \"\(port.text)\" }]")
        )
        let watch = events.wakes.connectionWatch
        watch.newFinder = { tree, loop, _, done in
            let finder = SocketFinder(tree, loop, obstacle: .notPermitted, done)
            finder.list = { (_: Int32) throws(Errno) -> SocketReading in throw .permissionDenied }
            return finder
        }
        try events.fallAsleep("web")
        let web = events.shell.app("web")
        // Those that torpord bound are polled by their ports.
        try events.wait("its sockets are polled") { watch.told.contains(web.id) }
        #expect(!watch.isUnconnected(web))
    }
}
