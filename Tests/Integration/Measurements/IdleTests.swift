// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI
import Varlink

@Suite("At rest", .serialized) struct IdleTests {
    /// Without swap torpord would look now and then at how much memory is available.
    private static let withoutMemory = """
        [supervisor.memory]
        warning_available = "0%"
        critical_available = "0%"

        """

    @Test("Keeper and torpord sleep through two seconds with twenty idle apps")
    func apps() throws {
        let toml =
            Self.withoutMemory + """
                [apps.idle]
                exec = ["/bin/sleep", "1000"]
                instances = 20
                """
        try withDaemon(toml) { daemon in
            try Self.waitUntilActive(daemon)
            try daemon.expectRest()
        }
    }

    @Test("A thousand timers that are far away cost no wake-up")
    func timers() throws {
        let timers = (1...50).map { #"{ name = "t\#($0)", every = "1h", calendar = "Sun *-02-29 03:00:00" }"# }
        let toml =
            Self.withoutMemory + """
                [apps.idle]
                exec = ["/bin/sleep", "1000"]
                instances = 20
                signals = { significantTimeChange = "SIGUSR1" }
                timers = [\(timers.joined(separator: ", "))]
                """
        try withDaemon(toml) { daemon in
            try daemon.eventually("the timers have begun") {
                try daemon.call(.timers(apps: []))["timers"]?.arrayValue?.count == 1_000
            }
            try Self.waitUntilActive(daemon)
            try daemon.expectRest()
        }
    }

    @Test("A thousand sockets of apps that sleep or do not run cost no wake-up")
    func sockets() throws {
        let port = try TestAddress.port()
        let sockets = (0..<50).map { "{ stream = \"@torpor-many-\(port)-%i-\($0)\" }" }.joined(separator: ", ")
        let toml =
            Self.withoutMemory + """
                [apps.many]
                exec = ["/bin/sleep", "1000"]
                instances = 20
                launch = "on-demand"
                sockets = [\(sockets)]
                """
        try withDaemon(toml) { daemon in
            let half = (1...10).map { "many@\($0)" }
            #expect(try daemon.verbs(.start, half).allSatisfy(\.ok))
            #expect(try daemon.verbs(.suspend, half).allSatisfy(\.ok))
            #expect(try daemon.status("many@3").sockets.count == 50)
            try daemon.expectRest()
            // And all of them are watched.
            for name in ["@torpor-many-\(port)-1-0", "@torpor-many-\(port)-20-49"] {
                let connection = try Sockets.connect(path: name)
                let app = name.contains("-1-0") ? "many@1" : "many@20"
                try daemon.waitFor(app, "background")
                withExtendedLifetime(connection) {}
            }
        }
    }

    @Test("A thousand quiet paths, devices and the machine's notices cost no wake-up")
    func paths() throws {
        let places = (1...25).map { "{ changed = \"@D/n/%i/\($0)\" }, { not_empty = \"@D/%i/\($0)/in*\" }" }
        let toml = """
            [supervisor.memory]
            enabled = false
            [apps.idle]
            exec = ["/bin/sleep", "1000"]
            instances = 20
            paths = [\(places.joined(separator: ", "))]
            settings_files = ["@D/%i.conf", "/etc/passwd"]
            devices = [{ subsystem = "tty", on = ["appear", "data"] }, { node = "@D/fifo", on = ["data"] }]
            notifications = ["battery", "power", "locale", "screens", "accessories", "low-power"]

            """
        let files = Dictionary(uniqueKeysWithValues: (1...20).map { ("\($0).conf", "x") })
        try withDaemon(toml, files: files) { daemon in
            try Self.waitUntilActive(daemon)
            try daemon.expectRest()
            // And torpord does see them.
            let torpord = try daemon.torpord()
            let before = try #require(Truth.voluntarySwitches(torpord))
            try File.makeDirectory(daemon.directory + "/n")
            try daemon.eventually("torpord is woken by what comes") { Truth.voluntarySwitches(torpord) != before }
        }
    }

    @Test("A thousand sockets that a suspended app listens at itself cost no wake-up")
    func ownSockets() throws {
        let program = #"""
            import resource, socket, tp
            resource.setrlimit(resource.RLIMIT_NOFILE, (2000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            all = []
            for _ in range(1000):
                s = socket.socket()
                s.bind(("127.0.0.1", 0))
                s.listen(5)
                all.append(s)
            tp.record("port %d" % s.getsockname()[1])
            while True:
                c, _ = s.accept()
                c.sendall(b"served")
                c.close()
            """#
        let toml = """
            [supervisor.memory]
            enabled = false
            [apps.web]
            \(Scripts.python)"@D/web.py"]
            event_time = "400ms"
            background_time = "none"
            wake_on_connect = true
            """
        try withDaemon(toml, files: ["web.py": program]) { daemon in
            let port = try daemon.port(of: "web")
            try daemon.done(.suspend, "web")
            let torpord = try daemon.torpord()
            func copies() throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/\(torpord)/fd").count
            }
            try daemon.eventually("they are copied") { try copies() > 1_000 }
            try daemon.expectRest()
            #expect(try Peer(port: port).receive(until: "served") == "served")
            try daemon.eventually("copies are given back") { try copies() < 1_000 }
        }
    }

    @Test("torpor-gateway sleeps while nobody asks it")
    func gateway() throws {
        let token = String(repeating: "0123456789abcdef", count: 2)
        try withDaemon(Posting.head, files: Delegates.files()) { daemon in
            let folder = daemon.directory
            try File.makeDirectory(folder + "/gateway-secrets", mode: 0o700)
            try File.write(folder + "/gateway-secrets/ci", token + "\n")
            let toml = """
                [gateway]
                socket = "\(daemon.socket)"
                [gateway.http]
                listen = "\(folder)/http"
                [[gateway.http.tokens]]
                name = "ci"
                secret = "ci"
                """
            try File.write(folder + "/gateway.toml", toml)
            let words = [Built.path("torpor-gateway"), "--config", folder + "/gateway.toml"]
            let pid = try Spawn.start(words, environment: [:], output: folder + "/gateway.log")
            defer {
                kill(pid, SIGKILL)
                waitpid(pid, nil, 0)
            }
            try daemon.eventually("it listens") { try File.readString(folder + "/gateway.log").contains(": started") }
            // It has asked torpord by then, and keeps the connection.
            let curl = ["/usr/bin/curl", "-sS", "--max-time", "20", "-o", "/dev/null", "-w", "%{http_code}"]
            let request = ["-H", "Authorization: Bearer \(token)", "-d", "x", "http://x/apps/web/t"]
            #expect(try Spawn.run(curl + ["--unix-socket", folder + "/http"] + request).output == "202")
            try Rest.expect(of: [Rest.Sleeper("torpor-gateway", pid, Truth.voluntarySwitchesOfThreads)])
        }
    }

    @Test("When it has released its memory, torpord keeps almost none of its program's code")
    func code() throws {
        let toml =
            Self.withoutMemory + """
                [apps.idle]
                exec = ["/bin/sleep", "1000"]
                """
        try withDaemon(toml) { daemon in
            try daemon.waitFor("idle", "active")
            let torpord = try daemon.torpord()
            // Nothing is asked after this one, which would bring code back.
            try daemon.apply()
            try daemon.eventually("the code is returned to the page cache") { try Self.code(of: torpord) < 256 << 10 }
        }
    }

    /// How many bytes of its program's code a process has in memory.
    private static func code(of pid: Int32) throws -> Int {
        var size = 0
        var (isCode, isFound) = (false, false)
        for line in try File.readString("/proc/\(pid)/smaps").split(separator: "\n") {
            if line.contains("-"), line.contains("/") { isCode = line.contains(" r-xp ") && line.hasSuffix("/torpord") }
            guard isCode, line.hasPrefix("Rss:") else { continue }
            isFound = true
            size += try #require(Int(line.split(separator: " ")[1])) << 10
        }
        try #require(isFound, "its program is in no line of smaps")
        return size
    }

    /// Waits until twenty apps are active.
    private static func waitUntilActive(_ daemon: Daemon) throws {
        try daemon.eventually("all apps are active") {
            try daemon.list().filter { $0.state == "active" }.count == 20
        }
    }
}
