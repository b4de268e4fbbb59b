// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

/// Servers that listen for themselves, and are ended in their sleep: their ports stay.
@Suite("Apps that are ended in their sleep") struct PortTests {
    private static let program = Servers.web.replacingOccurrences(
        of: ", 0), Handler",
        with: ", int(tp.sys.argv[1])), Handler"
    )

    private static func toml(_ port: UInt16, _ restart: String = "never") -> String {
        """
        [apps.web]
        \(Scripts.python)"@D/web.py", "\(port)"]
        event_time = "400ms"
        background_time = "none"
        wake_on_connect = true
        restart = "\(restart)"

        """
    }

    /// Sends it to its sleep and kills it there; torpord knows of it.
    private func killAsleep(_ daemon: Daemon) throws {
        try daemon.done(.suspend, "web")
        try daemon.waitUntilWatched("web")
        let pid = try #require(daemon.processes(of: "web").first)
        #expect(Truth.isStopped(pid))
        kill(pid, SIGKILL)
        try daemon.waitFor("web", "not-running")
        #expect(try daemon.summary("web").lastExit?.reason == "evicted")
    }

    /// A client that tries again, as people do: its first connection may be the one that has the app launched.
    private func served(_ daemon: Daemon, _ port: UInt16) throws {
        try daemon.eventually("it is served") {
            guard let peer = try? Peer(port: port) else { return false }
            defer { peer.close() }
            return (try? peer.get().contains("served")) ?? false
        }
    }

    /// Nobody else can have its port, and who connects is not refused.
    private func expectHeld(_ port: UInt16, at location: SourceLocation = #_sourceLocation) {
        #expect(throws: Errno.addressInUse, sourceLocation: location) {
            try Sockets.listenTCP(address: "127.0.0.1", port: port).close()
        }
    }

    @Test(
        "Who kills it has it restarted, as one that runs: it listens and sleeps again",
        arguments: ["always", "on-failure"]
    )
    func restarted(_ restart: String) throws {
        let port = try TestAddress.port()
        try withDaemon(Self.toml(port, restart), files: ["web.py": Self.program]) { daemon in
            _ = try daemon.port(of: "web")
            try daemon.done(.suspend, "web")
            kill(try #require(daemon.processes(of: "web").first), SIGKILL)
            try daemon.waitForEvent("web", "woken by its end while suspended")
            try daemon.waitFor("web", "suspended")
            #expect(try daemon.summary("web").incarnation == 2)
            #expect(try Peer(port: port).get().contains("served"))
            #expect(try daemon.summary("web").incarnation == 2)
        }
    }

    @Test("One that torpord connects to, to see whether it is ready, sleeps on after that")
    func probed() throws {
        let port = try TestAddress.port()
        let toml = Self.toml(port, "always") + "ready = { tcp = \"127.0.0.1:\(port)\", interval = \"50ms\" }\n"
        let slower = toml.replacingOccurrences(of: "background_time = \"none\"", with: "background_time = \"1s\"")
        try withDaemon(slower, files: ["web.py": Self.program]) { daemon in
            _ = try daemon.port(of: "web")
            try daemon.done(.suspend, "web")
            try daemon.waitUntilWatched("web")
            kill(try #require(daemon.processes(of: "web").first), SIGKILL)
            try daemon.waitForEvent("web", "woken by its end while suspended")
            try daemon.waitFor("web", "suspended")
            try daemon.waitUntilWatched("web")
            #expect(try daemon.wakes("web").count == 1)
            #expect(try Peer(port: port).get().contains("served"))
            #expect(try daemon.wakes("web").count == 2)
        }
    }

    @Test("One that is launched again to its sleep is not suspended before it listens", arguments: [false, true])
    func late(isKilled: Bool) throws {
        let port = try TestAddress.port()
        let program = """
            import socket, tp
            tp.notify("READY=1")
            tp.record("ready")
            tp.await_file("open")
            server = socket.create_server(("127.0.0.1", \(port)))
            tp.record("port \(port)")
            while True:
                client, _ = server.accept()
                client.sendall(b"served")
                client.close()
            """
        let toml = Self.toml(port, "always") + "ready = \"notify\"\n"
        try withDaemon(toml, files: ["web.py": program]) { daemon in
            daemon.touch("open")
            _ = try daemon.port(of: "web")
            try daemon.done(.suspend, "web")
            try FileManager.default.removeItem(atPath: daemon.directory + "/open")
            if isKilled {
                kill(try #require(daemon.processes(of: "web").first), SIGKILL)
            } else {
                _ = try daemon.verb(.restart, "web") { $0.wait = false }
            }
            try daemon.eventually("it is ready again") { daemon.records("web").count { $0 == "ready" } == 2 }
            // It stays awake, and is to be suspended.
            try daemon.eventually("it is awaited") { try daemon.status("web").suspendedBy == .launch }
            #expect(try daemon.summary("web").goal == "suspended")
            daemon.touch("open")
            try daemon.waitFor("web", "suspended")
            #expect(try Peer(port: port).receive(until: "served").contains("served"))
        }
    }

    @Test("Health and status name one that sleeps and listens nowhere")
    func deaf() throws {
        try withDaemon(Apps.sleeper("worker", "wake_on_connect = true")) { daemon in
            try daemon.waitFor("worker", "active")
            try daemon.done(.suspend, "worker")
            try daemon.eventually("its sockets are read") { try daemon.summary("worker").socketTrouble != nil }
            func health() throws -> (code: Int32, output: String) {
                try Spawn.run([Built.path("torpor"), "health", "--socket", daemon.socket])
            }
            let ill = try health()
            #expect(ill.code == 1 && ill.output.contains("worker is suspended and listens on no port"), "\(ill.output)")
            let status = try daemon.status("worker")
            #expect(status.notWokenBy.contains("connections (it listens on no port)") && status.wokenBy.isEmpty)
            try daemon.done(.resume, "worker")
            #expect(try health().code == 0)
        }
    }

    @Test("Where it is not restarted its port stays all the same, and the first connection launches it")
    func killed() throws {
        let port = try TestAddress.port()
        try withDaemon(Self.toml(port), files: ["web.py": Self.program]) { daemon in
            _ = try daemon.port(of: "web")
            try killAsleep(daemon)
            expectHeld(port)
            #expect(try daemon.status("web").wokenBy == ["connections to 127.0.0.1:\(port)"])
            #expect(try daemon.summary("web").incarnation == 1, "nobody wanted anything of it")
            // It may be reset as soon as it is there, when the app is launched for it.
            let first = try? Peer(port: port)
            try daemon.waitForEvent("web", "woken by a connection at 127.0.0.1:\(port)")
            #expect(try daemon.summary("web").incarnation == 2)
            try served(daemon, port)
            first?.close()
            #expect(try daemon.summary("web").incarnation == 2)
        }
    }

    @Test("Of one that listens at very many ports some are kept, so that it takes few descriptors when it is gone")
    func many() throws {
        let program = """
            import socket, time, tp
            held = [socket.create_server(("127.0.0.1", 0)) for _ in range(300)]
            tp.record("up")
            while True: time.sleep(1000)
            """
        try withDaemon(Self.toml(0), files: ["web.py": program]) { daemon in
            try daemon.waitForRecord("web", "up")
            try killAsleep(daemon)
            let torpord = try daemon.livingTorpord()
            let listening = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(torpord)/fd").count
            #expect(listening < 150, "\(listening) descriptors")
            #expect(try daemon.status("web").wokenBy.first?.hasPrefix("connections to 127.0.0.1:") == true)
        }
    }

    @Test("What a person stops then has its port no more")
    func stopped() throws {
        let port = try TestAddress.port()
        try withDaemon(Self.toml(port), files: ["web.py": Self.program]) { daemon in
            _ = try daemon.port(of: "web")
            try killAsleep(daemon)
            expectHeld(port)
            try daemon.done(.stop, "web")
            try daemon.eventually("its port is free") {
                (try? Sockets.listenTCP(address: "127.0.0.1", port: port).close()) != nil
            }
            #expect(throws: Trouble.self) { try Peer(port: port) }
            #expect(try daemon.status("web").wokenBy.isEmpty)
        }
    }

    @Test("Who supervises it meanwhile does not matter", arguments: [Loss.killed, .upgraded, .keeper])
    func replaced(_ loss: Loss) throws {
        let port = try TestAddress.port()
        try withRecovery(Self.toml(port), files: ["web.py": Self.program], loss: loss) { daemon throws in
            _ = try daemon.port(of: "web")
            try killAsleep(daemon)
            try daemon.lose(loss)
            expectHeld(port)
            #expect(try daemon.summary("web").incarnation == 1)
            try served(daemon, port)
            #expect(try daemon.summary("web").incarnation == 2)
        }
    }

    @Test("Where its port went with torpord and the keeper it is launched again, to its sleep")
    func lost() throws {
        let port = try TestAddress.port()
        try withRecovery(Self.toml(port), files: ["web.py": Self.program]) { daemon throws in
            _ = try daemon.port(of: "web")
            try killAsleep(daemon)
            try daemon.lose(.both)
            try daemon.waitForEvent("web", "woken by the loss of its port")
            try daemon.waitFor("web", "suspended")
            #expect(try daemon.summary("web").incarnation == 2)
            try served(daemon, port)
        }
    }

    @Test("So is one that was killed while no torpord was there")
    func unseen() throws {
        let port = try TestAddress.port()
        try withRecovery(Self.toml(port), files: ["web.py": Self.program]) { daemon throws in
            _ = try daemon.port(of: "web")
            try daemon.done(.suspend, "web")
            let pid = try #require(daemon.processes(of: "web").first)
            try daemon.lose(.killed) {
                kill(pid, SIGKILL)
                try daemon.eventually("it is gone") { !Truth.isAlive(pid) }
            }
            try daemon.waitForEvent("web", "woken by the loss of its port")
            try daemon.waitFor("web", "suspended")
            try served(daemon, port)
        }
    }

    @Test("Health names one that is to run always, was killed in its sleep and is woken by nothing")
    func stranded() throws {
        let toml = Apps.sleeper("worker", "restart = \"always\"") + Apps.sleeper("other")
        try withDaemon(toml) { daemon in
            for app in ["worker", "other"] {
                try daemon.waitFor(app, "active")
                try daemon.done(.suspend, app)
                kill(try #require(daemon.processes(of: app).first), SIGKILL)
                try daemon.waitFor(app, "not-running")
            }
            func health() throws -> (code: Int32, output: String) {
                try Spawn.run([Built.path("torpor"), "health", "--socket", daemon.socket])
            }
            let ill = try health()
            #expect(ill.code == 1)
            let text = "was evicted, and nothing launches it again: start it, or have something wake it"
            #expect(ill.output.contains("worker \(text)") && !ill.output.contains("other \(text)"), "\(ill.output)")
            try daemon.done(.start, "worker")
            #expect(try health().code == 0)
        }
    }
}
