// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

@Suite("Suspended apps that listen for themselves") struct ConnectionWakeTests {
    private static func toml(_ more: String = "wake_on_connect = true", name: String = "web") -> String {
        """
        [apps.web]
        \(Scripts.python)"@D/\(name).py"]
        event_time = "400ms"
        background_time = "none"
        \(more)
        """
    }

    /// Another app, which a connection wakes.
    private static let other = """

        [apps.other]
        \(Scripts.python)"@D/web.py"]
        event_time = "400ms"
        background_time = "none"
        wake_on_connect = true
        """

    @Test("A stopped HTTP server answers curl as if it had been running, and sleeps again")
    func answers() throws {
        try withDaemon(Self.toml(), files: ["web.py": Servers.web]) { daemon in
            let port = try daemon.port(of: "web")
            try daemon.done(.suspend, "web")
            let pid = try #require(daemon.processes(of: "web").first)
            #expect(Truth.isStopped(pid))
            let page = try Spawn.run(["/usr/bin/curl", "-sS", "-m", "10", "http://127.0.0.1:\(port)/"])
            #expect(page.output == "served by \(pid)\n")
            let event = try daemon.waitForEvent("web", "woken by a connection at 127.0.0.1:\(port) after ")
            #expect(event.text.hasSuffix(" ms"))
            #expect(event.reason == "connection")
            try daemon.waitFor("web", "suspended")
            #expect(try daemon.summary("web").incarnation == 1)
            #expect(try daemon.wakes("web").count == 1)
        }
    }

    @Test(
        "With wake_on_connect = foreground it comes to the foreground, and without it sleeps on",
        arguments: [true, false]
    )
    func manner(comes: Bool) throws {
        let more = comes ? "wake_on_connect = \"foreground\"" : ""
        try withDaemon(Self.toml(more) + Self.other, files: ["web.py": Servers.web]) { daemon in
            let peer = Peer(try Sockets.connectTCP(address: "127.0.0.1", port: try daemon.port(of: "web")))
            _ = try peer.get()
            try daemon.done(.suspend, "web")
            let second = try Peer(port: try daemon.port(of: "web"))
            if comes {
                #expect(try second.get().contains("served"))
                try daemon.waitFor("web", "active")
            } else {
                try second.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                // By a connection that comes later the other is woken.
                let port = try daemon.port(of: "other")
                try daemon.done(.suspend, "other")
                #expect(try Peer(port: port).get().contains("served"))
                #expect(try daemon.wakes("web").isEmpty)
                #expect(try daemon.summary("web").state == "suspended")
                try daemon.done(.resume, "web")
                #expect(try second.receive(until: "served").contains("served"))
            }
        }
    }

    @Test(
        "A request on a connection that stayed open wakes it, and so does each of fifty clients that come at once",
        arguments: Way.allCases
    )
    func keptOpen(way: Way) throws {
        try withServer(way) { daemon in
            let port = try daemon.port(of: "web")
            let peer = try Peer(port: port)
            #expect(try peer.get().contains("served"))
            for _ in 0..<3 {
                try daemon.done(.suspend, "web")
                #expect(try peer.get().contains("served"))
                try daemon.waitFor("web", "suspended")
            }
            #expect(try peer.get().contains("served"))
            try daemon.waitForEvent("web", "woken by data on a connection")
            try daemon.waitFor("web", "suspended")
            let before = try daemon.wakes("web").count
            let peers = try (0..<50).map { _ in try Peer(port: port) }
            for peer in peers { #expect(try peer.get().contains("served")) }
            #expect(try daemon.wakes("web").count > before)
        }
    }

    /// How an app listens, and whether its sockets can be copied.
    enum Way: String, CaseIterable { case own, sockets, forbidden }

    private func withServer(
        _ way: Way,
        _ more: String = "",
        eventTime: String = "400ms",
        _ body: (Daemon) throws -> Void
    ) throws {
        let given = "sockets = [{ stream = \"127.0.0.1:\(try TestAddress.port())\" }]"
        let wakes = way == .sockets ? given : "wake_on_connect = true"
        let other = Self.other.replacingOccurrences(of: "web.py", with: "other.py")
        let program = way == .sockets ? Servers.given : Servers.web
        let daemon = try Daemon(
            (Self.toml("\(wakes)\n\(more)") + other).replacingOccurrences(of: "400ms", with: eventTime),
            files: ["web.py": program, "other.py": Servers.web, "forbid.py": Servers.forbid],
            wrapper: way == .forbidden ? ["/usr/bin/python3", "@D/forbid.py"] : []
        )
        try daemon.waitUntilItAnswers()
        try body(daemon)
        try daemon.stop()
    }

    @Test(
        "What takes longer than its time is not stopped in the middle, whether it writes meanwhile or not",
        arguments: ["/slow", "/late"],
        Way.allCases
    )
    func slow(path: String, way: Way) throws {
        // Who gets no processor for all of it is quiet, and sleeps.
        try withServer(way, eventTime: "1s") { daemon in
            let port = try daemon.port(of: "web")
            let other = try daemon.port(of: "other")
            for app in ["web", "other"] { try daemon.done(.suspend, app) }
            let sleeps = try daemon.walk("web").filter { $0 == "suspended" }.count
            let peer = try Peer(port: port)
            try peer.send("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n")
            var page = ""
            if path == "/slow" {
                page = try peer.receive(until: "\r\n\r\n.")
            } else {
                try daemon.waitForRecord("web", "asked")
            }
            // One with the same time has used all of it three times by then.
            for _ in 0..<3 {
                #expect(try Peer(port: other).get().contains("served"))
                try daemon.waitFor("other", "suspended")
            }
            daemon.touch("enough")
            page += try peer.receive(until: "served")
            #expect(page.contains("served"))
            #expect(try daemon.walk("web").filter { $0 == "suspended" }.count == sleeps)
            #expect(try daemon.wakes("web").count == 1)
            try daemon.waitFor("web", "suspended")
        }
    }

    @Test("A client that waits for longer than answer_time does not keep it awake", arguments: [Way.own, .sockets])
    func answerTime(way: Way) throws {
        try withServer(way, "answer_time = \"100ms\"") { daemon in
            let port = try daemon.port(of: "web")
            try daemon.done(.suspend, "web")
            let peer = try Peer(port: port)
            try peer.send("GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
            try daemon.waitForRecord("web", "asked")
            try daemon.waitFor("web", "suspended")
            daemon.touch("enough")
            try daemon.done(.resume, "web")
            #expect(try peer.receive(until: "served").contains("served"))
        }
    }

    @Test("One that is suspended in the middle of an answer is woken to give it, and sleeps then")
    func underWay() throws {
        let toml = Self.toml().replacingOccurrences(of: "event_time = \"400ms\"", with: "event_time = \"10s\"")
        try withDaemon(toml, files: ["web.py": Servers.web]) { daemon in
            let peer = try Peer(port: try daemon.port(of: "web"))
            try peer.send("GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
            try daemon.waitForRecord("web", "asked")
            try daemon.done(.suspend, "web")
            try daemon.waitForEvent("web", "woken by data on a connection with 127.0.0.1:")
            daemon.touch("enough")
            #expect(try peer.receive(until: "served").contains("served"))
            // That was answered: this time it stays asleep.
            try daemon.done(.suspend, "web")
            let sleeps = try daemon.walk("web").filter { $0 == "suspended" }.count
            #expect(sleeps == 2)
            #expect(try peer.get().contains("served"))
            #expect(try daemon.wakes("web").count == 2)
        }
    }

    @Test("suspended_connections = close ends the idle connections of its clients", arguments: [Way.own, .sockets])
    func closes(way: Way) throws {
        try withServer(way, "suspended_connections = \"close\"") { daemon in
            let port = try daemon.port(of: "web")
            let peer = try Peer(port: port)
            #expect(try peer.get().contains("served"))
            try daemon.done(.suspend, "web")
            _ = try peer.receive(until: "its end")
            try daemon.waitFor("web", "suspended")
            // Another connection wakes it, and is ended when it sleeps again.
            let pid = try #require(try daemon.summary("web").pid)
            let other = try Peer(port: port)
            #expect(try (other.get() + other.receive(until: "its end")).hasSuffix("served by \(pid)\n"))
            // What a client waits for, it gets before.
            let waiting = try Peer(port: port)
            try waiting.send("GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
            try daemon.waitForRecord("web", "asked")
            try daemon.done(.suspend, "web")
            daemon.touch("enough")
            #expect(try waiting.receive(until: "served").contains("served"))
            _ = try waiting.receive(until: "its end")
            try daemon.waitFor("web", "suspended")
        }
    }

    @Test("It leaves connections between its own processes alone", arguments: ["tcp", "dual", "unix"])
    func closesNoneOfItsOwn(_ sort: String) throws {
        let program = #"""
            import os, socket, sys, tp
            sort = sys.argv[1]
            def listening():
                if sort == "unix":
                    s = socket.socket(socket.AF_UNIX)
                    s.bind(tp.HERE + "/server")
                elif sort == "dual":
                    s = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
                else:
                    s = socket.create_server(("127.0.0.1", 0))
                s.listen(5)
                return s
            s = listening()
            if os.fork() == 0:
                c = socket.socket(socket.AF_UNIX if sort == "unix" else socket.AF_INET)
                c.connect(tp.HERE + "/server" if sort == "unix" else ("127.0.0.1", s.getsockname()[1]))
                s.close()
                while c.send(c.recv(16)):
                    pass
                os._exit(0)
            own, _ = s.accept()
            c = None
            tp.record("port %s" % (s.getsockname() if sort == "unix" else s.getsockname()[1]))
            while True:
                c, _ = s.accept()
                own.sendall(b"x")
                c.sendall(b"served" if own.recv(16) == b"x" else b"cut off")
            """#
        let toml = Self.toml("wake_on_connect = true\nsuspended_connections = \"close\"")
            .replacingOccurrences(of: "web.py\"", with: "web.py\", \"\(sort)\"")
        try withDaemon(toml, files: ["web.py": program]) { daemon in
            try daemon.eventually("it listens") { !daemon.records("web").isEmpty }
            let connect = {
                try sort == "unix"
                    ? Peer(Sockets.connect(path: daemon.directory + "/server")) : Peer(port: daemon.port(of: "web"))
            }
            let client = try connect()
            #expect(try client.receive(until: "served") == "served")
            try daemon.done(.suspend, "web")
            #expect(try client.receive(until: "its end").isEmpty)
            #expect(try connect().receive(until: "served") == "served")
        }
    }

    @Test("One that is suspended as the next request follows an answer at once is woken to give that answer")
    func followsAtOnce() throws {
        let toml = Self.toml().replacingOccurrences(of: "event_time = \"400ms\"", with: "event_time = \"10s\"")
        try withDaemon(toml, files: ["web.py": Servers.web]) { daemon in
            let peer = try Peer(port: try daemon.port(of: "web"))
            for round in 1...3 {
                #expect(try peer.get().contains("served"))
                try peer.send("GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
                try daemon.eventually("it was asked") {
                    daemon.records("web").filter { $0 == "asked" }.count == round
                }
                try daemon.done(.suspend, "web")
                try daemon.eventually("it is woken") { try daemon.wakes("web").count == round }
                daemon.touch("enough")
                #expect(try peer.receive(until: "served").contains("served"))
                try File.remove(daemon.directory + "/enough")
            }
        }
    }

    @Test("A server at a Unix socket, and one that takes datagrams", arguments: ["unix", "abstract", "udp"])
    func others(sort: String) throws {
        let program = #"""
            import socket, sys, tp
            sort = sys.argv[1]
            if sort == "udp":
                s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                s.bind(("127.0.0.1", 0))
                tp.record("port %d" % s.getsockname()[1])
                while True:
                    data, peer = s.recvfrom(4096)
                    s.sendto(b"served", peer)
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.bind(("\0" if sort == "abstract" else "") + tp.HERE + "/server")
            s.listen(5)
            tp.record("listens")
            while True:
                c, _ = s.accept()
                c.recv(10)
                c.sendall(b"served")
                c.close()
            """#
        let asker = #"""
            import socket, sys
            sort, place = sys.argv[1:]
            if sort == "udp":
                s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                s.connect(("127.0.0.1", int(place)))
            else:
                s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                s.connect(("\0" if sort == "abstract" else "") + place)
            s.settimeout(10)
            s.send(b"x")
            print(s.recv(10).decode())
            """#
        let toml = Self.toml().replacingOccurrences(of: "web.py\"", with: "web.py\", \"\(sort)\"")
        try withDaemon(toml, files: ["web.py": program, "ask.py": asker]) { daemon in
            let place = sort == "udp" ? String(try daemon.port(of: "web")) : daemon.directory + "/server"
            try daemon.eventually("it listens") { !daemon.records("web").isEmpty }
            try daemon.done(.suspend, "web")
            let answer = try Spawn.run(["/usr/bin/python3", daemon.directory + "/ask.py", sort, place])
            #expect(answer.output == "served\n")
            let what =
                sort == "udp"
                ? "a datagram at 127.0.0.1:\(place)" : "a connection at \(sort == "unix" ? "" : "@")\(place)"
            try daemon.waitForEvent("web", "woken by \(what) after ")
        }
    }

    @Test("Its port is free as soon as it is killed in its sleep")
    func portIsFree() throws {
        try withDaemon(Self.toml(), files: ["web.py": Servers.web]) { daemon in
            let port = try daemon.port(of: "web")
            try daemon.done(.suspend, "web")
            try daemon.done(.kill, "web")
            try daemon.waitFor("web", "not-running")
            #expect(throws: Trouble.self) { try Peer(port: port) }
            let other = try Sockets.listenTCP(address: "127.0.0.1", port: port, backlog: 1)
            other.close()
        }
    }

    @Test("One that is to sleep after a restart, its own or torpord's, listens first: nobody is refused")
    func restarted() throws {
        let toml = Self.toml("wake_on_connect = true\nrestart = \"always\"")
            .replacingOccurrences(of: "background_time = \"none\"", with: "background_time = \"5s\"")
        // It needs a while until it listens, and nothing says when.
        let slowly = "import tp\ntp.await_file('listen')\n" + Servers.web
        try withDaemon(toml, files: ["web.py": slowly, "listen": ""]) { daemon in
            let listen = daemon.directory + "/listen"
            let first = try daemon.port(of: "web")
            try daemon.done(.suspend, "web")
            try File.remove(listen)
            try daemon.done(.restart, "web") { $0.wait = false }
            try daemon.eventually("it is to sleep, when its time is over") {
                let status = try daemon.status("web")
                return status.suspendedBy == .launch && status.deadlines.contains { $0.name == "background-time" }
            }
            try daemon.done(.hold, "web")
            #expect(try daemon.status("web").suspendedBy == .asked)
            try daemon.done(.hold, "web") { $0.end = true }
            daemon.touch("listen")
            try daemon.eventually("it listens again") { try daemon.port(of: "web") != first }
            try daemon.waitFor("web", "suspended")
            func answersFromItsSleep() throws {
                let pid = try #require(daemon.processes(of: "web").first)
                #expect(Truth.isStopped(pid))
                #expect(try Peer(port: daemon.port(of: "web")).get().contains("served by \(pid)"))
            }
            try answersFromItsSleep()
            try daemon.waitFor("web", "suspended")
            let second = try daemon.port(of: "web")
            try daemon.stop()
            try File.remove(listen)
            try daemon.startAgain()
            try daemon.waitUntilItAnswers()
            try daemon.eventually("it is launched") { !daemon.processes(of: "web").isEmpty }
            daemon.touch("listen")
            try daemon.eventually("it listens once more") { try daemon.port(of: "web") != second }
            try daemon.waitFor("web", "suspended")
            try answersFromItsSleep()
        }
    }

    @Test("A connection that came while torpord was dead wakes it all the same")
    func afterDeath() throws {
        try withDaemon(Self.toml(), files: ["web.py": Servers.web]) { daemon in
            let port = try daemon.port(of: "web")
            try daemon.done(.suspend, "web")
            let torpord = try daemon.torpord()
            kill(torpord, SIGSTOP)
            let peer = try Peer(port: port)
            try peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            kill(torpord, SIGKILL)
            #expect(try peer.receive(until: "served").contains("served"))
            try daemon.waitForEvent("web", "woken by ")
        }
    }

    @Test("Where copies are forbidden the kernel's tables are looked at", arguments: ["web", "unix"])
    func withoutCopies(sort: String) throws {
        let unix = #"""
            import socket, tp
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.bind(tp.HERE + "/server")
            s.listen(5)
            tp.record("port 0")
            while True:
                c, _ = s.accept()
                c.sendall(b"served")
            """#
        let daemon = try Daemon(
            Self.toml(),
            files: ["web.py": sort == "web" ? Servers.web : unix, "forbid.py": Servers.forbid],
            wrapper: ["/usr/bin/python3", "@D/forbid.py"]
        )
        try daemon.waitUntilItAnswers()
        let port = try daemon.port(of: "web")
        try daemon.done(.suspend, "web")
        try daemon.eventually("it says so") { daemon.log.contains("polled twice a second") }
        let doctor = try Spawn.run([Built.path("torpor"), "--socket", daemon.socket, "doctor"]).output
        #expect(doctor.contains("sockets that apps open themselves cannot be copied"))
        #expect(doctor.contains("seccomp"))
        if sort == "web" {
            let peer = try Peer(port: port)
            #expect(try peer.get().contains("served"))
            try daemon.waitFor("web", "suspended")
            #expect(try peer.get().contains("served"))
        } else {
            let path = daemon.directory + "/server"
            let peer = Peer(try Sockets.connect(path: path, nonBlocking: true))
            #expect(try peer.receive(until: "served").contains("served"))
        }
        try daemon.waitForEvent("web", "woken by a connection")
        try daemon.stop()
    }
}
