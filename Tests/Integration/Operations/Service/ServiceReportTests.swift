// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("What a service manager is told") struct ServiceReportTests {
    /// Ready when the file `ready.APP` is there, and ends when `end.APP` is.
    static let program = """
        import os, tp
        def end():
            while not os.path.exists(tp.HERE + "/end." + tp.APP):
                tp.time.sleep(0.003)
            os._exit(0)
        tp.on("SIGTERM", end)
        tp.record("up")
        while not os.path.exists(tp.HERE + "/ready." + tp.APP):
            tp.time.sleep(0.003)
        tp.notify("READY=1")
        tp.wait()
        """

    static func app(_ name: String, _ more: String = "") -> String {
        """
        [apps.\(name)]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        ready = "notify"
        launch_deadline = "30s"
        grace = "30s"
        \(more)

        """
    }

    private func with(_ toml: String, _ body: (Daemon, ListeningManager) throws -> Void) throws {
        let manager = try ListeningManager()
        let daemon = try Daemon(toml, files: ["app.py": Self.program], environment: manager.environment)
        try daemon.waitUntilItAnswers()
        try body(daemon, manager)
        try manager.stop(daemon)
    }

    @Test(
        "READY comes when the apps of the start are up and those that they require, and longer is asked for meanwhile"
    )
    func ready() throws {
        try with(Self.app("db", "launch = \"on-demand\"") + Self.app("web", "requires = [\"db\"]")) {
            daemon,
            manager throws in
            try daemon.waitForRecord("db", "up")
            try manager.wait(for: "that the start takes longer", of: daemon) { $0.hasPrefix("EXTEND_TIMEOUT_USEC=") }
            try Daemon.write(["ready.db": ""], in: daemon.directory)
            try daemon.waitForRecord("web", "up")
            #expect(!manager.heard { $0 == "READY=1" }, "web is not ready yet")
            try Daemon.write(["ready.web": ""], in: daemon.directory)
            try manager.wait(for: "READY=1", of: daemon)
            try manager.wait(for: "STATUS=2 apps: 1 active, 1 background", of: daemon)
            try Daemon.write(["end.db": "", "end.web": ""], in: daemon.directory)
        }
    }

    @Test("Apps that fail, those that wait for them, and one that nothing bounds hold no start up")
    func failing() throws {
        let toml = """
            [apps.bad]
            exec = ["/bin/false"]
            restart_backoff = { initial = "1min" }
            [apps.waits]
            exec = ["/bin/sleep", "1000"]
            requires = ["bad"]
            [apps.missing]
            exec = ["/nonexistent"]

            """
        try with(toml + Self.app("endless").replacingOccurrences(of: "\"30s\"", with: "\"none\"")) {
            daemon,
            manager throws in
            try manager.wait(for: "READY=1", of: daemon)
            try Daemon.write(["ready.endless": "", "end.endless": ""], in: daemon.directory)
        }
    }

    @Test("STATUS follows the apps, and names those that were given up")
    func status() throws {
        let toml = """
            [apps.a]
            exec = ["/bin/sleep", "1000"]
            [apps.bad]
            exec = ["/bin/false"]
            launch = "on-demand"
            restart_backoff = { initial = "0s", limit = 1 }

            """
        try with(toml) { daemon, manager throws in
            try manager.wait(for: "STATUS=2 apps: 1 active, 1 not-running", of: daemon)
            try daemon.done(.suspend, "a")
            try manager.wait(for: "STATUS=2 apps: 1 suspended, 1 not-running", of: daemon)
            _ = try daemon.verb(.start, "bad")
            try manager.wait(for: "STATUS=2 apps: 1 suspended, 1 not-running; failed: bad", of: daemon)
        }
    }

    @Test("RELOADING comes with the time, READY after it, and STATUS says that what is on disk is not valid")
    func reload() throws {
        let toml = Apps.sleeper("a")
        try with(toml) { daemon, manager throws in
            try manager.wait(for: "READY=1", of: daemon)
            for toml in [toml + Apps.sleeper("b"), "wrong"] {
                let mark = manager.lines.count
                let before = Clock.monotonic().microseconds
                _ = try? daemon.apply(toml)
                try manager.wait(for: "READY=1", of: daemon, since: mark)
                let lines = Array(manager.lines[mark...])
                let reloading = try #require(lines.firstIndex(of: "RELOADING=1"), "\(lines)")
                #expect(reloading < lines.firstIndex(of: "READY=1") ?? 0)
                let time = lines.first { $0.hasPrefix("MONOTONIC_USEC=") }.flatMap { Int64($0.dropFirst(15)) } ?? 0
                #expect(time >= before && time <= Clock.monotonic().microseconds)
                let status = lines.last { $0.hasPrefix("STATUS=") }
                #expect(status?.contains("is not valid") == (toml == "wrong"), "\(lines)")
            }
        }
    }

    @Test("STOPPING comes at once, and longer is asked for as long as an app has its grace")
    func stopping() throws {
        try with(Self.app("web")) { daemon, manager throws in
            try Daemon.write(["ready.web": ""], in: daemon.directory)
            try manager.wait(for: "READY=1", of: daemon)
            let mark = manager.lines.count
            kill(daemon.pid, SIGTERM)
            try manager.wait(for: "that the stop takes longer", of: daemon, since: mark) {
                $0.hasPrefix("EXTEND_TIMEOUT_USEC=")
            }
            #expect(manager.lines[mark...].first == "STOPPING=1")
            try manager.wait(for: "what it waits for", of: daemon, since: mark) {
                $0 == "STATUS=stopping: 1 app: 1 terminating"
            }
            try Daemon.write(["end.web": ""], in: daemon.directory)
        }
    }

    @Test("A torpord that was stopped while it slept is replaced, and no app notices")
    func stoppedAsleep() throws {
        let manager = try ListeningManager()
        let environment = manager.environment.merging(
            ["WATCHDOG_USEC": "3000000", "TORPOR_LOOP_WATCHDOG_MS": "3000"]
        ) { $1 }
        let daemon = try Daemon(Apps.sleeper("a"), environment: environment)
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("a", "active")
        let app = daemon.processes(of: "a")
        try manager.wait(for: "READY=1", of: daemon)
        let torpord = try daemon.torpord()
        // Its loop sleeps then: nothing is under way.
        try daemon.eventually("it sleeps") { (try? ProcFS.stat(torpord))?.state == "S" }
        kill(torpord, SIGSTOP)
        try daemon.eventually("another one is there") { ((try? daemon.torpord()) ?? torpord) != torpord }
        try daemon.waitUntilItAnswers()
        #expect(daemon.processes(of: "a") == app)
        let mark = manager.lines.count
        try manager.wait(for: "WATCHDOG=1", of: daemon, since: mark)
        try manager.stop(daemon)
    }

    @Test("A stop that finds torpord stopped is carried out by the next one")
    func stopOfStopped() throws {
        let daemon = try Daemon(Apps.sleeper("a"), environment: ["TORPOR_LOOP_WATCHDOG_MS": "3000"])
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("a", "active")
        let torpord = try daemon.torpord()
        kill(torpord, SIGSTOP)
        try daemon.eventually("it is stopped") { (try? ProcFS.stat(torpord))?.state == "T" }
        try daemon.stop()
    }
}
