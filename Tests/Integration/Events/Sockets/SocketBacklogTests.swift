// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

@Suite("What waits at sockets") struct SocketBacklogTests {
    @Test("a backlog that fills up while nobody is woken is told once, before it is full")
    func nearlyFull() throws {
        let port = try TestAddress.port()
        let toml = """
            [apps.web]
            \(SocketServer.exec)
            launch = "on-demand"

            [[apps.web.sockets]]
            name = "tcp"
            stream = "127.0.0.1:\(port)"
            backlog = 5
            wake = "none"

            [[apps.web.sockets]]
            name = "unix"
            stream = "@D/u.sock"
            backlog = 5
            wake = "none"

            [[apps.web.sockets]]
            name = "dgram"
            datagram = "127.0.0.1:\(port)"
            receive_buffer = "16KiB"
            wake = "none"
            """
        try withDaemon(toml, files: SocketServer.files) { daemon in
            func told() throws -> [String] {
                try daemon.events("web").map(\.text).filter { $0.contains("its backlog is nearly full") }
            }
            var waiting = try (0..<3).map { try daemon.connection(port, sending: "t\($0)") }
            for _ in 0..<3 { waiting.append(try Sockets.connect(path: daemon.directory + "/u.sock")) }
            try daemon.eventually("three of each wait") {
                try daemon.status("web").sockets.prefix(2).map(\.waiting) == [3, 3]
            }
            #expect(try told() == [])
            for _ in 0..<2 {
                waiting.append(try daemon.connection(port, sending: "more"))
                waiting.append(try Sockets.connect(path: daemon.directory + "/u.sock"))
            }
            try daemon.waitForEvent("web", "connections wait at tcp (127.0.0.1:\(port))")
            try daemon.waitForEvent("web", "connections wait at unix (\(daemon.directory)/u.sock)")
            let script = """
                import socket
                s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                for _ in range(200):
                    s.sendto(b"x" * 400, ("127.0.0.1", \(port)))
                """
            #expect(try Spawn.run(["/usr/bin/python3", "-S", "-c", script]).code == 0)
            try daemon.waitForEvent("web", "bytes wait at dgram (127.0.0.1:\(port))")
            #expect(try told().count == 3)
            let datagrams = try #require(try daemon.status("web").sockets.last)
            #expect((datagrams.dropped ?? 0) > 0)
            #expect(datagrams.text.contains("datagrams were lost"))
            #expect(try daemon.summary("web").state == "not-running")
            // What waits for the app is still there for it.
            try daemon.done(.start, "web")
            #expect(try daemon.answer(waiting[0])?.text == "t0")
        }
    }

    private static let late = """
        import tp
        tp.record("up")
        tp.await_file("go")
        tp.notify("READY=1")
        exec(open(tp.HERE + "/server.py").read())
        """

    private static func lateServer(people: UInt16, others: UInt16) -> String {
        """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/late.py"]
        launch = "on-demand"
        ready = "notify"
        launch_deadline = "none"

        [[apps.web.sockets]]
        name = "people"
        stream = "127.0.0.1:\(people)"
        user = true

        [[apps.web.sockets]]
        name = "others"
        stream = "127.0.0.1:\(others)"
        """
    }

    /// Some kernels let only root attach a filter to a socket.
    private static let canHoldBack: Bool = {
        guard let socket = try? Sockets.listenTCP(address: "127.0.0.1", port: 0) else { return false }
        return (try? Sockets.holdBack(socket.raw, true)) != nil
    }()

    @Test(
        "where the kernel holds no connections back, that is said once, and they come in",
        .enabled(if: !canHoldBack, "the kernel lets this user hold connections back")
    )
    func userUnheld() throws {
        let (people, others) = (try TestAddress.port(), try TestAddress.port())
        let files = SocketServer.files.merging(["late.py": Self.late]) { $1 }
        try withDaemon(Self.lateServer(people: people, others: others), files: files) { daemon in
            try daemon.done(.start, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "up")
            let person = try daemon.connection(people, sending: "p")
            try File.write(daemon.directory + "/go", "")
            try daemon.waitFor("web", "active")
            #expect(try daemon.answer(person)?.text == "p")
            try daemon.done(.interrupt, "web")
            #expect(daemon.log.components(separatedBy: "cannot be held back while it is inactive").count == 2)
        }
    }

    @Test(
        "new connections to a socket for people wait while the app is launched, others do not",
        .enabled(if: canHoldBack, "the kernel does not let this user hold connections back (SO_ATTACH_FILTER)")
    )
    func user() throws {
        let (people, others) = (try TestAddress.port(), try TestAddress.port())
        let files = SocketServer.files.merging(["late.py": Self.late]) { $1 }
        try withDaemon(Self.lateServer(people: people, others: others), files: files) { daemon in
            try daemon.done(.start, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "up")
            let person = try Sockets.connectTCP(address: "127.0.0.1", port: people)
            // One that begins later has its connection.
            let other = try daemon.connection(others, sending: "o")
            #expect(try !Descriptor.wait(person.raw, writable: true, timeout: .zero))
            try File.write(daemon.directory + "/go", "")
            try daemon.waitFor("web", "active")
            #expect(try daemon.answer(other)?.text == "o")
            #expect(try Descriptor.wait(person.raw, writable: true, timeout: .seconds(60)))
            #expect(Sockets.pendingError(person.raw) == nil)
            _ = try Descriptor.write(person.raw, Array("p".utf8))
            #expect(try daemon.answer(person)?.name == "people")

            // While it is interrupted they wait again.
            try daemon.done(.interrupt, "web")
            let second = try Sockets.connectTCP(address: "127.0.0.1", port: people)
            let third = try daemon.connection(others, sending: "t")
            #expect(try !Descriptor.wait(second.raw, writable: true, timeout: .zero))
            #expect(try daemon.answer(third)?.text == "t")
            try daemon.done(.interrupt, "web") { $0.end = true }
            #expect(try Descriptor.wait(second.raw, writable: true, timeout: .seconds(60)))
        }
    }
}
