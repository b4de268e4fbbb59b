// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Suspended apps with connections to others") struct VoipTests {
    /// What `[supervisor]` goes on with, and the app.
    private static func toml(_ more: String) -> String {
        """
        keep_alive_minimum = "100ms"
        [apps.phone]
        \(Scripts.python)"@D/phone.py"]
        event_time = "300ms"
        background_time = "none"
        \(more)
        """
    }

    /// Connects when the file "open" exists, and sends back what it receives.
    private static let connectsLate = #"""
        import socket, tp
        tp.notify("READY=1")
        tp.record("ready")
        tp.await_file("open")
        s = socket.create_connection(("127.0.0.1", int(open(tp.HERE + "/port").read())))
        tp.record("connected")
        while data := s.recv(100):
            s.sendall(data)
        tp.wait()
        """#

    private static func accept(_ listener: Descriptor) throws -> Peer {
        guard try Descriptor.wait(listener.raw, timeout: Daemon.bound), let socket = try Sockets.accept(listener.raw)
        else { throw Trouble("no app connected") }
        return Peer(socket)
    }

    @Test("One that is launched again to its sleep is not suspended before it is connected", arguments: [false, true])
    func late(isKilled: Bool) throws {
        let listener = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
        let files = ["phone.py": Self.connectsLate, "port": "\(try Sockets.port(listener.raw))"]
        let more = "background_modes = [\"voip\"]\nready = \"notify\"\nrestart = \"always\""
        try withDaemon(Self.toml(more), files: files) { daemon in
            daemon.touch("open")
            let first = try Self.accept(listener)
            try daemon.done(.suspend, "phone")
            try FileManager.default.removeItem(atPath: daemon.directory + "/open")
            if isKilled {
                kill(try #require(daemon.processes(of: "phone").first), SIGKILL)
                try daemon.waitForEvent("phone", "woken by its end while suspended")
            } else {
                _ = try daemon.verb(.restart, "phone") { $0.wait = false }
            }
            try daemon.eventually("it is ready again") { daemon.records("phone").count { $0 == "ready" } == 2 }
            try daemon.eventually("it is awaited") { try daemon.status("phone").suspendedBy == .launch }
            #expect(try daemon.summary("phone").goal == "suspended")
            daemon.touch("open")
            let second = try Self.accept(listener)
            try daemon.waitFor("phone", "suspended")
            #expect(try daemon.status("phone").wokenBy == ["voip"])
            try second.send("ring")
            #expect(try second.receive(until: "ring") == "ring")
            first.close()
        }
    }

    @Test("Status says that no data wakes one without a connection, and health does")
    func unconnected() throws {
        let more = "background_modes = [\"voip\"]\nrestart = \"never\""
        try withDaemon(Apps.sleeper("queue", more)) { daemon in
            try daemon.waitFor("queue", "active")
            try daemon.done(.suspend, "queue")
            try daemon.eventually("its sockets are read") { try daemon.summary("queue").socketTrouble != nil }
            let asleep = try daemon.status("queue")
            #expect(asleep.notWokenBy.contains("voip (it has no connection)") && asleep.wokenBy.isEmpty)
            let health = try Spawn.run([Built.path("torpor"), "health", "--socket", daemon.socket])
            #expect(health.output.contains("queue is suspended and has no connection"), "\(health.output)")
            kill(try #require(daemon.processes(of: "queue").first), SIGKILL)
            try daemon.waitFor("queue", "not-running")
            let gone = try daemon.status("queue")
            #expect(gone.notWokenBy.contains("voip (it has no connection until it is launched)"))
            #expect(gone.wokenBy.isEmpty && gone.summary.incarnation == 1)
        }
    }

    /// Starts the app, and gives the other end of its connection.
    private static func withPhone(
        _ more: String,
        program: String = Servers.client,
        _ body: (Daemon, Peer) throws -> Void
    ) throws {
        let listener = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
        let port = try Sockets.port(listener.raw)
        try withDaemon(toml(more), files: ["phone.py": program, "port": "\(port)"]) { daemon in
            try daemon.waitForRecord("phone", "connected")
            guard try Descriptor.wait(listener.raw, timeout: Daemon.bound),
                let socket = try Sockets.accept(listener.raw)
            else { throw Trouble("nobody connected") }
            let peer = Peer(socket)
            _ = try peer.receive(until: "hello\n")
            try body(daemon, peer)
        }
    }

    @Test("Data on a connection wakes one with the mode voip")
    func data() throws {
        try Self.withPhone(#"background_modes = ["voip"]"#) { daemon, peer in
            try daemon.done(.suspend, "phone")
            try peer.send("ring")
            #expect(try peer.receive(until: "ring") == "ring")
            try daemon.waitForEvent("phone", "woken by data on a connection with 127.0.0.1:")
            try daemon.waitFor("phone", "suspended")
            try peer.send("again")
            #expect(try peer.receive(until: "again") == "again")
            try daemon.waitFor("phone", "suspended")
            // The end is news as well.
            peer.close()
            try daemon.waitForRecord("phone", "ended")
        }
    }

    @Test("Data on a connection does not wake one without the mode voip")
    func dataAlone() throws {
        let listens = """
            import socket, tp
            listener = socket.create_server(("127.0.0.1", 0))
            tp.record("port %d" % listener.getsockname()[1])

            """
        try Self.withPhone("wake_on_connect = true", program: listens + Servers.client) { daemon, peer in
            let port = try daemon.port(of: "phone")
            try daemon.done(.suspend, "phone")
            try peer.send("ring")
            #expect(try daemon.summary("phone").state == "suspended")
            // A connection that comes later does wake it.
            let other = try Peer(port: port)
            #expect(try peer.receive(until: "ring") == "ring")
            let wakes = try daemon.wakes("phone")
            let prefix = "woken by a connection at 127.0.0.1:\(port)"
            #expect(!wakes.isEmpty && wakes.allSatisfy { $0.hasPrefix(prefix) }, "\(wakes)")
            other.close()
        }
    }

    @Test("Data that came just before the stop is not lost")
    func before() throws {
        try Self.withPhone(#"background_modes = ["voip"]"#) { daemon, peer in
            // Stopped from outside it cannot read, and is suspended with what came.
            let pid = try #require(daemon.processes(of: "phone").first)
            kill(pid, SIGSTOP)
            try daemon.eventually("it is stopped") { Truth.isStopped(pid) }
            try peer.send("ring")
            _ = try daemon.verb(.suspend, "phone")
            #expect(try peer.receive(until: "ring") == "ring")
            #expect(try daemon.walk("phone").contains("suspended"))
        }
    }

    @Test("One that never reads what is left on a connection is not woken for it again and again")
    func leftBehind() throws {
        let deaf = #"""
            import socket, tp, time
            tp.await_file("port")
            s = socket.create_connection(("127.0.0.1", int(open(tp.HERE + "/port").read())))
            s.sendall(b"hello\n")
            tp.record("connected")
            time.sleep(1000)
            """#
        let listener = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
        let files = ["phone.py": deaf, "port": "\(try Sockets.port(listener.raw))"]
        try withDaemon(Self.toml(#"background_modes = ["voip"]"#), files: files) { daemon in
            try daemon.waitForRecord("phone", "connected")
            let peer = Peer(try #require(try Sockets.accept(listener.raw)))
            try daemon.done(.suspend, "phone")
            try peer.send("x")
            // For the data, for what is left of it at the next sleep, and from then on ever more seldom.
            try daemon.eventually("it was woken three times") { try daemon.wakes("phone").count == 3 }
            let wakes = try daemon.events("phone").filter { $0.text.hasPrefix("woken by ") }
            #expect(wakes[2].at - wakes[1].at >= 1_000_000)
            // What comes meanwhile wakes it at once: sooner than what is left would, which has to wait for twice as long at
            // each sleep. Where this machine was slower than one of these delays, the next one is looked at.
            var isAtOnce = false
            for delay in [2, 4, 8] as [Int64] where !isAtOnce {
                try daemon.waitFor("phone", "suspended")
                let asleep = try #require(try daemon.events("phone").last { $0.to == "suspended" })
                try peer.send("y")
                var woken: EventRecord?
                try daemon.eventually("it was woken again") {
                    woken = try daemon.events("phone").first {
                        $0.sequence > asleep.sequence && $0.text.hasPrefix("woken by ")
                    }
                    return woken != nil
                }
                isAtOnce = try #require(woken).at - asleep.at < delay * 1_000_000
            }
            #expect(isAtOnce)
        }
    }

    @Test("keep_alive wakes it from time to time, and it is told why")
    func keepAlive() throws {
        let more = """
            background_modes = ["voip"]
            keep_alive = "500ms"
            signals = { didReceiveEvent = "SIGUSR1" }
            """
        let program = "import tp\ntp.on('SIGUSR1')\ntp.record('ready')\ntp.wait()\n"
        try withDaemon(Self.toml(more), files: ["phone.py": program]) { daemon in
            try daemon.waitForRecord("phone", "ready")
            try daemon.done(.suspend, "phone")
            let asleep = try #require(try daemon.events("phone").last { $0.to == "suspended" })
            let event = try daemon.waitForEvent("phone", "woken by its keep_alive of 500ms after ")
            #expect(event.at - asleep.at >= 490_000)
            try daemon.waitForRecord("phone", "SIGUSR1")
            // It has ten seconds, not its event_time.
            let time = try #require(try daemon.status("phone").deadlines.first { $0.name == "background-time" })
            #expect(time.limitMilliseconds == 10_000)
        }
    }
}
