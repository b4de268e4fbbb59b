// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// What a stop and a signal leave behind.
@Suite("A stop that is taken back, and a signal to an app that sleeps") struct TakenBackTests {
    private static let job = """
        [apps.job]
        exec = ["/bin/sh", "-c", "echo run >> @D/runs"]
        type = "oneshot"
        restart = "never"
        launch = "on-demand"
        timers = [{ name = "often", every = "1s" }]

        """

    private func runs(_ daemon: Daemon) -> Int {
        ((try? File.readString(daemon.directory + "/runs")) ?? "").split(separator: "\n").count
    }

    @Test("A reset lets timers launch a job again that was stopped", arguments: [Verb.stop, .kill])
    func reset(verb: Verb) throws {
        try withDaemon(Self.job) { daemon in
            try daemon.eventually("its timer launches it") { runs(daemon) > 0 }
            try daemon.done(verb, "job")
            let before = runs(daemon)
            let result = try daemon.done(.reset, "job")
            #expect(
                result.message == "job was reset: no longer counts as stopped, and is launched by timer often",
                "\(result)"
            )
            #expect(try daemon.summary("job").lastExit == nil)
            try daemon.eventually("its timer launches it again") { runs(daemon) > before }
        }
    }

    @Test("A reset of an app that was stopped counts at the next start, one of a running app changes nothing")
    func start() throws {
        let toml = """
            [apps.down]
            exec = ["/bin/sleep", "1000"]
            [apps.up]
            exec = ["/bin/sleep", "1000"]
            """
        let daemon = try Daemon(toml)
        try daemon.waitFor("down", "active")
        try daemon.waitFor("up", "active")
        try daemon.done(.stop, "down")
        try daemon.stop()
        try daemon.startAgain()
        try daemon.waitFor("up", "active")
        #expect(try daemon.summary("down").state == "not-running")
        let result = try daemon.done(.reset, "down")
        let text = "down was reset: no longer counts as stopped, and is launched by the next start of the supervisor"
        #expect(result.message == text, "\(result)")
        #expect(try daemon.done(.reset, "up").message == "up was reset")
        try daemon.stop()
        try daemon.startAgain()
        try daemon.waitFor("down", "active")
        try daemon.waitFor("up", "active")
        try daemon.stop()
    }

    private static let sleeper = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        ready = "notify"
        restart = "never"
        event_time = "200ms"
        background_time = "200ms"

        """

    private static func program(_ handler: String) -> [String: String] {
        ["app.py": "import sys\nfrom tp import *\n\(handler)\nnotify(\"READY=1\")\nwait()\n"]
    }

    private func torpor(_ daemon: Daemon, _ words: String...) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor"), "--socket", daemon.socket] + words)
    }

    @Test("SIGTERM by ‘torpor signal’ ends a suspended app now, not when the next client wakes it")
    func ends() throws {
        let files = Self.program("on(\"SIGTERM\", lambda: (record(\"SIGTERM\"), sys.exit(0)))")
        try withDaemon(Self.sleeper, files: files) { daemon in
            try daemon.waitFor("web", "active")
            try daemon.done(.suspend, "web")
            let sent = try torpor(daemon, "signal", "TERM", "web")
            #expect(sent.code == 0 && sent.output == "web was suspended and is resumed for SIGTERM\n", "\(sent)")
            try daemon.eventually("it has ended") { try daemon.summary("web").state == "not-running" }
            #expect(try daemon.summary("web").lastExit?.reason == "exit-success")
        }
    }

    @Test("Of SIGTERM by another process, ‘torpor status’ says that it waits")
    func waits() throws {
        try withDaemon(Self.sleeper, files: Self.program("on(\"SIGTERM\")")) { daemon in
            try daemon.waitFor("web", "active")
            try daemon.done(.suspend, "web")
            #expect(try torpor(daemon, "status", "web").code == 0)
            kill(try #require(try daemon.summary("web").pid), SIGTERM)
            let text = "was sent SIGTERM while suspended, and gets it when the next event resumes it: "
            let page = try torpor(daemon, "status", "web").output
            #expect(page.contains(text + "‘torpor stop web’ ends it now"), "\(page)")
            #expect(try daemon.summary("web").state == "suspended")
            try daemon.done(.resume, "web")
            try daemon.waitForRecord("web", "SIGTERM")
            try daemon.done(.suspend, "web")
            #expect(try !torpor(daemon, "status", "web").output.contains(text))
        }
    }

    @Test("A signal without a handler ends a suspended app now, one with a handler waits")
    func handlers() throws {
        try withDaemon(Self.sleeper, files: Self.program("on(\"SIGUSR1\")")) { daemon in
            try daemon.waitFor("web", "active")
            try daemon.done(.suspend, "web")
            let waits = try torpor(daemon, "signal", "USR1", "web")
            #expect(waits.code == 0 && waits.output == "web is suspended and gets SIGUSR1 when resumed\n", "\(waits)")
            #expect(try daemon.summary("web").state == "suspended")
            let ends = try torpor(daemon, "signal", "USR2", "web")
            #expect(ends.code == 0 && ends.output == "web was suspended and is resumed for SIGUSR2\n", "\(ends)")
            try daemon.eventually("it has ended") { try daemon.summary("web").state == "not-running" }
            #expect(try daemon.summary("web").lastExit?.signal == "SIGUSR2")
        }
    }

    @Test("An app that handles SIGTERM and stays is suspended again")
    func stays() throws {
        try withDaemon(Self.sleeper, files: Self.program("on(\"SIGTERM\")")) { daemon in
            try daemon.waitFor("web", "active")
            try daemon.done(.suspend, "web")
            let pid = try daemon.summary("web").pid
            _ = try torpor(daemon, "signal", "TERM", "web")
            try daemon.waitForRecord("web", "SIGTERM")
            try daemon.waitFor("web", "suspended")
            #expect(try daemon.summary("web").pid == pid)
        }
    }
}
