// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

@Suite("Sockets that apps are given") struct SocketTests {
    private static func app(_ socket: String = "", keys: String = "", port: UInt16) -> String {
        """
        [apps.web]
        \(SocketServer.exec)
        launch = "on-demand"
        event_time = "none"
        \(keys)

        [[apps.web.sockets]]
        name = "http"
        stream = "127.0.0.1:\(port)"
        \(socket)

        """
    }

    @Test("an app that a person stopped is not woken: connections wait until it is started")
    func stoppedByPerson() throws {
        let port = try TestAddress.port()
        try withDaemon(Self.app(port: port), files: SocketServer.files) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.stop, "web")
            let waiting = try (0..<3).map { try daemon.connection(port, sending: "c\($0)") }
            try daemon.waitForEvent(
                "web",
                "is not woken by a connection at http (127.0.0.1:\(port)): it is not launched by events"
            )
            #expect(try daemon.answer(waiting[0], within: .zero) == nil)
            #expect(try daemon.summary("web").state == "not-running")
            let shown = try #require(try daemon.status("web").sockets.first)
            #expect((shown.name, shown.kind, shown.address) == ("http", "stream", "127.0.0.1:\(port)"))
            #expect(shown.waiting == 3)
            // Said once, however many come.
            #expect(try daemon.events("web").count { $0.text.contains("is not woken by") } == 1)
            try daemon.done(.start, "web")
            for (index, socket) in waiting.enumerated() { #expect(try daemon.answer(socket)?.text == "c\(index)") }
        }
    }

    @Test("a Unix socket whose file somebody has removed is bound again for the next launch, or by an apply")
    func fileGone() throws {
        let toml = """
            [apps.web]
            \(SocketServer.exec)
            launch = "on-demand"

            [[apps.web.sockets]]
            stream = "@D/web.sock"

            """
        try withDaemon(toml, files: SocketServer.files) { daemon in
            let path = daemon.directory + "/web.sock"
            func expectServed() throws {
                let peer = Peer(try Sockets.connect(path: path))
                try peer.send("hello")
                #expect(try peer.receive(until: "hello").hasSuffix("hello"))
            }
            try daemon.done(.start, "web")
            try expectServed()
            try File.remove(path)
            try daemon.done(.restart, "web")
            try expectServed()
            try daemon.done(.stop, "web")
            try File.remove(path)
            try daemon.apply(toml)
            try daemon.eventually("it is bound again") { File.exists(path) }
            try daemon.done(.start, "web")
            try expectServed()
        }
    }

    @Test("a connection that waits when the app is suspended wakes it at once")
    func suspendedWithConnection() throws {
        let port = try TestAddress.port()
        // Takes nothing before it is told to.
        let deaf = """
            import socket, tp
            taken = []
            def take():
                peer, _ = socket.socket(fileno=3).accept()
                peer.send(b"1 http late")
                taken.append(peer)
            tp.on("SIGUSR1", take)
            tp.record("up")
            tp.wait()
            """
        let toml = Self.app(port: port).replacingOccurrences(of: "server.py", with: "deaf.py")
        try withDaemon(toml, files: SocketServer.files.merging(["deaf.py": deaf]) { $1 }) { daemon in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            let waiting = try daemon.connection(port, sending: "x")
            try daemon.done(.suspend, "web") { $0.wait = false }
            try daemon.waitForEvent("web", "woken by a connection at http")
            try daemon.waitFor("web", "background")
            kill(try #require(try daemon.summary("web").pid), SIGUSR1)
            #expect(try daemon.answer(waiting)?.text == "late")
        }
    }

    @Test("a socket with wake = \"foreground\" brings the app there, one with \"none\" wakes nobody")
    func howItWakes() throws {
        let (front, none) = (try TestAddress.port(), try TestAddress.port())
        let toml =
            Self.app("wake = \"foreground\"", port: front) + """
                [[apps.web.sockets]]
                name = "quiet"
                stream = "127.0.0.1:\(none)"
                wake = "none"
                """
        try withDaemon(toml, files: SocketServer.files) { daemon in
            let quiet = try daemon.connection(none, sending: "q")
            #expect(try daemon.summary("web").state == "not-running")
            // One that comes later wakes it.
            #expect(try daemon.answer(daemon.connection(front, sending: "f"))?.text == "f")
            let wakes = try daemon.wakes("web")
            #expect(wakes.count == 1 && wakes[0].contains("127.0.0.1:\(front)"), "\(wakes)")
            try daemon.waitFor("web", "active")
            #expect(try daemon.answer(quiet)?.text == "q")
        }
    }

    @Test("an app that only a connection woke sleeps again when its time is over")
    func sleepsAgain() throws {
        let port = try TestAddress.port()
        let toml = Self.app(port: port).replacingOccurrences(of: "\"none\"", with: "\"100ms\"")
        try withDaemon(toml, files: SocketServer.files) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            for text in ["a", "b"] {
                #expect(try daemon.answer(daemon.connection(port, sending: text))?.text == text)
                try daemon.waitFor("web", "suspended")
            }
        }
    }

    @Test("sockets come before stored descriptors, with their names")
    func beforeStored() throws {
        let port = try TestAddress.port()
        let keeping = """
            import os, socket, tp
            tp.record("%s %s" % (os.environ["LISTEN_FDS"], os.environ["LISTEN_FDNAMES"]))
            if os.environ["LISTEN_FDS"] == "1":
                tp.notify("FDSTORE=1\\nFDNAME=kept", [os.memfd_create("kept")])
            tp.notify("READY=1")
            tp.wait()
            """
        let toml = Self.app(keys: "ready = \"notify\"", port: port).replacingOccurrences(
            of: "server.py",
            with: "keeping.py"
        )
        try withDaemon(toml, files: ["keeping.py": keeping]) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.restart, "web")
            #expect(daemon.records("web") == ["1 http", "2 http:kept"])
        }
    }

    @Test(
        "options and rights are what the configuration says, and the path is gone when torpord is",
        .enabled(if: Users.isRoot, "only root can give files to a group that it is not in")
    )
    func options() throws {
        let toml = """
            [apps.web]
            \(SocketServer.exec)
            launch = "on-demand"

            [[apps.web.sockets]]
            stream = "@D/s/web.sock"
            mode = "0640"
            group = "1234"
            directory_mode = "0750"
            symlinks = ["@D/web.link"]
            pass_credentials = true
            """
        let daemon = try Daemon(toml, files: SocketServer.files)
        try daemon.waitUntilItAnswers()
        let path = daemon.directory + "/s/web.sock"
        let status = try File.status(path)
        #expect(status.mode & 0o777 == 0o640)
        if Users.isRoot { #expect(status.gid == 1234) }
        #expect(try File.status(daemon.directory + "/s").mode & 0o777 == 0o750)
        #expect(try daemon.ask("stream", daemon.directory + "/web.link").name == "0")
        try daemon.stop()
        #expect(!File.exists(path))
        #expect((try? File.readLink(daemon.directory + "/web.link")) == nil)
    }
}
