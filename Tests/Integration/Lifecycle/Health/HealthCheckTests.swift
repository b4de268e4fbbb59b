// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

@Suite("Apps that are checked while they run: `health`") struct HealthCheckTests {
    private static func toml(_ health: String, keys: String = "") -> String {
        """
        [apps.web]
        exec = ["/bin/sleep", "1000"]
        health = \(health)
        background_time = "1min"
        restart = "always"
        restart_backoff = { initial = "1ms", limit = 100 }
        \(keys)
        """
    }

    private static func touch(_ path: String) throws { try File.write(path, "") }

    @Test("One failure is told and forgiven; too many in a row end it, and it is restarted")
    func failing() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let well = folder + "/well"
        try Self.touch(well)
        let toml = Self.toml("{ file = \"\(well)\", interval = \"20ms\", failures = 1000 }")
        try withDaemon(toml) { daemon throws in
            try daemon.waitFor("web", "active")
            try daemon.eventually("it is checked") { try daemon.status("web").health?.isKnown == true }
            let first = try #require(daemon.summary("web").pid)
            unlink(well)
            try daemon.eventually("it is unhealthy") { try daemon.summary("web").unhealthy == "has no file \(well)" }
            let (code, output) = try Spawn.run([Built.path("torpor"), "health", "--socket", daemon.socket])
            #expect(code == 1 && output == "torpor: web has no file \(well)\n", "\(output)")
            try Self.touch(well)
            try daemon.eventually("it is healthy again") {
                try daemon.summary("web").unhealthy == nil
                    && daemon.events().contains { $0.text.contains("passes its health check again") }
            }
            #expect(try daemon.summary("web").pid == first)
            // At once, without a new launch.
            try daemon.apply(Self.toml("{ file = \"\(well)\", interval = \"20ms\", failures = 3 }"))
            unlink(well)
            try daemon.eventually("another one runs") {
                let summary = try daemon.summary("web")
                return summary.incarnation == 2 && summary.state == "active"
            }
            #expect(!Truth.isAlive(first))
            let report = try #require(daemon.status("web").reports.first)
            #expect(report.reason == "watchdog", "\(report)")
            #expect(report.text?.contains("failed its health check 3 times in a row: it has no file") == true)
            try Self.touch(well)
        }
    }

    @Test("What a check leaves running is ended, also in a session of its own")
    func remains() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let script = "setsid sleep 1000 & echo $! >> \(folder)/pids"
        try withDaemon(Self.toml("{ command = [\"/bin/sh\", \"-c\", \"\(script)\"], interval = \"20ms\" }")) { daemon in
            try daemon.waitFor("web", "active")
            guard try daemon.status("web").cgroup != nil else { return print("skipped: no cgroups here") }
            func pids() -> [Int32] {
                let text = (try? String(contentsOfFile: folder + "/pids", encoding: .utf8)) ?? ""
                return text.split(separator: "\n").compactMap { Int32($0) }
            }
            try daemon.eventually("it is checked some times") { pids().count >= 3 }
            let those = pids().prefix(3)
            try daemon.eventually("what these left is gone") { those.allSatisfy { !Truth.isAlive($0) } }
            #expect(try daemon.summary("web").unhealthy == nil)
        }
    }

    @Test("It is not checked while it sleeps")
    func asleep() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (well, ticks) = (folder + "/well", folder + "/ticks")
        try Self.touch(well)
        // Another app's check shows that time for checks goes by.
        let toml =
            Self.toml("{ file = \"\(well)\", interval = \"20ms\", failures = 2 }") + """

                [apps.clock]
                exec = ["/bin/sleep", "1000"]
                health = { command = ["/bin/sh", "-c", "echo tick >> \(ticks)"], interval = "20ms" }
                """
        try withDaemon(toml) { daemon throws in
            try daemon.waitFor("web", "active")
            try daemon.waitFor("clock", "active")
            try daemon.eventually("it is checked") { try daemon.status("web").health?.isKnown == true }
            try daemon.done(.suspend, "web")
            let pid = try #require(daemon.summary("web").pid)
            unlink(well)
            func count() -> Int { ((try? File.readString(ticks)) ?? "").split(separator: "\n").count }
            let before = count()
            try daemon.eventually("ten checks of the other one") { count() > before + 10 }
            let summary = try daemon.summary("web")
            #expect(summary.state == "suspended" && summary.pid == pid && summary.unhealthy == nil)
            #expect(try ProcFS.stat(pid).state == "T")
            try Self.touch(well)
            try daemon.done(.foreground, "web")
            try daemon.eventually("it is checked again") { try daemon.status("web").health?.isKnown == true }
            #expect(try daemon.summary("web").pid == pid)
        }
    }

    @Test(
        "A check by HTTP or TCP leaves nothing that counts as use; a wrong status is a failure",
        arguments: [true, false]
    )
    func network(isHTTP: Bool) throws {
        let port = try TestAddress.port()
        let server = """
            import http.server, os
            class H(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    well = not os.path.exists('sick')
                    self.send_response(200 if well else 503)
                    self.end_headers()
                    self.wfile.write(b'x' * 100000)
                def log_message(self, *a): open('asked', 'a').write('x')
            http.server.HTTPServer.address_family = 2
            http.server.HTTPServer(('127.0.0.1', \(port)), H).serve_forever()
            """
        let check = isHTTP ? "http = \"http://127.0.0.1:\(port)/well\"" : "tcp = \"127.0.0.1:\(port)\""
        let toml = Self.toml(
            "{ \(check), interval = \"20ms\", failures = 1000 }",
            keys: "directory = \".\""
        ).replacingOccurrences(of: "[\"/bin/sleep\", \"1000\"]", with: "[\"python3\", \"server.py\"]")
        try withDaemon(toml, files: ["server.py": server]) { daemon throws in
            try daemon.waitFor("web", "active")
            try daemon.eventually("it is healthy") {
                try daemon.status("web").health?.isKnown == true && daemon.summary("web").unhealthy == nil
            }
            guard isHTTP else { return }
            let asked = daemon.directory + "/asked"
            try daemon.eventually("it was asked some times") { ((try? File.read(asked))?.count ?? 0) > 10 }
            let hexadecimal = String(port, radix: 16, uppercase: true)
            let digits = String(repeating: "0", count: 4 - hexadecimal.count) + hexadecimal
            // 06 is TIME_WAIT.
            let left = try File.readString("/proc/net/tcp").split(separator: "\n").filter { line in
                line.contains(":\(digits) ") && line.split(separator: " ").dropFirst(3).first == "06"
            }
            #expect(left.isEmpty, "\(left)")
            try Self.touch(daemon.directory + "/sick")
            try daemon.eventually("it is unhealthy") {
                try daemon.summary("web").unhealthy == "answers /well with status 503"
            }
        }
    }

    @Test("An app that fails its check is not put to sleep before the verdict, and its failures survive a suspension")
    func hangs() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let port = try TestAddress.port()
        // It never accepts. Sixty failures take longer than its time for an event.
        let toml = Self.toml(
            "{ file = \"\(folder)/well\", interval = \"50ms\", failures = 60 }",
            keys: """
                event_time = "200ms"
                sockets = [{ stream = "127.0.0.1:\(port)" }]
                """
        )
        try withDaemon(toml) { daemon throws in
            try daemon.waitFor("web", "active")
            func failures() throws -> [Int] {
                try daemon.events().compactMap { event in
                    event.text.components(separatedBy: "(failure ").dropFirst().first?.prefix { $0 != " " }
                }.compactMap { Int($0) }
            }
            try daemon.eventually("it has failed some times") { try failures().count >= 2 }
            try daemon.done(.suspend, "web")
            #expect(try daemon.summary("web").unhealthy == "has no file \(folder)/well")
            let client = try Sockets.connectTCP(address: "127.0.0.1", port: port)
            let ending = try daemon.waitForEvent("web", "failed its health check 60 times in a row")
            #expect(ending.incarnation == 1)
            #expect(try !daemon.events().contains { $0.text.contains("is suspended again") })
            #expect(try failures().prefix(60) == ArraySlice(1...60))
            withExtendedLifetime(client) {}
        }
    }
}
