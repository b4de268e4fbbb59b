// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Each test kills torpord while `torpor` waits for it.
@Suite("Verbs whose supervisor dies") struct ReplacedTests {
    /// Ready when there is `ready`, gone after a SIGTERM when there is `gone`.
    private static let toml = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        ready = "notify"
        launch = "on-demand"
        launch_deadline = "30s"
        grace = "30s"
        """
    private static let files = [
        "app.py": """
        import os, tp
        def end():
            tp.await_file("gone")
            os._exit(0)
        tp.on("SIGTERM", end)
        tp.on("SIGUSR1")
        tp.record("up")
        tp.await_file("ready")
        tp.notify("READY=1")
        tp.wait()
        """
    ]

    @Test("start: the app is launched once, and the verb ends when it is ready")
    func start() throws {
        try withKilledDaemon(Self.toml, files: Self.files) { daemon throws in
            let client = try Client(daemon, "start", "web")
            try daemon.waitForRecord("web", "up")
            for _ in 0..<2 { try daemon.replaceTorpord() }
            #expect(client.reap() == nil)
            daemon.touch("ready")
            #expect(try client.finish(daemon) == 0)
            let pid = try #require(daemon.processes(of: "web").first)
            #expect(client.output == "web: active (pid \(pid))\n")
            #expect(try daemon.summary("web").incarnation == 1)
            #expect(daemon.records("web") == ["up"])
            daemon.touch("gone")
        }
    }

    @Test("stop: the app runs no second time, and the verb ends when it is gone")
    func stop() throws {
        try withKilledDaemon(Self.toml, files: Self.files) { daemon throws in
            daemon.touch("ready")
            try daemon.done(.start, "web")
            let client = try Client(daemon, "stop", "web")
            try daemon.waitForRecord("web", "SIGTERM")
            for _ in 0..<2 { try daemon.replaceTorpord() }
            #expect(client.reap() == nil)
            daemon.touch("gone")
            #expect(try client.finish(daemon) == 0)
            #expect(client.output.hasPrefix("web: not-running"))
            // A SIGTERM may come again, when torpord died before it could note that it was sent.
            #expect(Set(daemon.records("web").dropFirst()) == ["SIGTERM"])
            #expect(daemon.processes(of: "web").isEmpty)
        }
    }

    @Test("restart: killed while the old run ends and while the new one begins, there is one new run")
    func restart() throws {
        try withKilledDaemon(Self.toml, files: Self.files) { daemon throws in
            daemon.touch("ready")
            try daemon.done(.start, "web")
            try FileManager.default.removeItem(atPath: daemon.directory + "/ready")
            let client = try Client(daemon, "restart", "web")
            try daemon.waitForRecord("web", "SIGTERM")
            try daemon.replaceTorpord()
            daemon.touch("gone")
            try daemon.eventually("the next run begins") { daemon.records("web").count { $0 == "up" } == 2 }
            try daemon.replaceTorpord()
            #expect(client.reap() == nil)
            daemon.touch("ready")
            #expect(try client.finish(daemon) == 0)
            #expect(client.output.hasPrefix("web: active"))
            #expect(try daemon.summary("web").incarnation == 2)
        }
    }

    @Test("wait: it goes on waiting", arguments: [false, true])
    func wait(forRunning isRunning: Bool) throws {
        try withKilledDaemon(Self.toml, files: Self.files) { daemon throws in
            daemon.touch("ready")
            daemon.touch("gone")
            if isRunning { try daemon.done(.start, "web") }
            let client = try Client(daemon, "wait", "web", "--for", "suspended", "-v")
            try daemon.eventually("it is told of the loss") {
                try daemon.replaceTorpord()
                return !client.output.isEmpty
            }
            try daemon.replaceTorpord()
            #expect(client.reap() == nil)
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            #expect(try client.finish(daemon) == 0)
            // Once, though it was lost more than once.
            #expect(client.lines.first == "torpor: the supervisor is being replaced: waiting for the next one")
            #expect(client.lines.count == 2 && client.lines.last?.hasPrefix("web: suspended") == true)
        }
    }

    /// Runs `body` for so many rounds, each with a torpord to kill.
    private func rounds(_ count: Int, _ body: (Daemon, Int) throws -> Void) throws {
        try withKilledDaemon(Self.toml, files: Self.files) { daemon throws in
            daemon.touch("ready")
            daemon.touch("gone")
            try daemon.done(.start, "web")
            for round in 0..<count { try body(daemon, round) }
        }
    }

    @Test("signal: killed at any instant, it is sent once, or the verb says that nobody knows")
    func signal() throws {
        var certain = 0
        try rounds(30) { daemon, round in
            func count() -> Int { daemon.records("web").count { $0 == "SIGUSR1" } }
            let before = count()
            let client = try Client(daemon, "signal", "USR1", "web")
            // Not a wait for anything: the instant is to be another one each time.
            usleep(UInt32(round * 500))
            try daemon.killTorpord()
            guard try client.finish(daemon) == 0 else {
                #expect(client.output.contains("may or may not have got it"))
                return
            }
            certain += 1
            try daemon.eventually("the signal came") { count() > before }
            // One that was sent before is there before.
            try daemon.call(.signal(app: "web", signal: "USR1"))
            try daemon.eventually("the next one came") { count() > before + 1 }
            #expect(count() == before + 2)
        }
        #expect(certain > 24)
    }

    /// How often an app's program was run: a launch that torpord died in may cost a number and be none.
    private func runs(_ daemon: Daemon, _ app: String) -> Int { daemon.records(app).count { $0 == "up" } }

    @Test("restart: killed at any instant, there is one new run")
    func restartAtAnyInstant() throws {
        try rounds(30) { daemon, round in
            let client = try Client(daemon, "restart", "web")
            usleep(UInt32(round * 1_000))
            try daemon.killTorpord()
            #expect(try client.finish(daemon) == 0, "\(client.output)")
            #expect(runs(daemon, "web") == round + 2)
            #expect(daemon.processes(of: "web").count == 1)
        }
    }

    @Test(
        "restart of many that require each other: killed between any two records, there is one new run of each",
        .enabled(if: RecordKiller.isPossible, "the processor cannot be made to carry out one instruction")
    )
    func restartOfMany() throws {
        let toml = """
            [defaults]
            exec = ["/bin/sh", "-c", "echo up >>@D/rec.$TORPOR_APP; exec /bin/sleep 1000"]
            [apps.a]
            [apps.b]
            requires = ["a"]
            [apps.c]
            requires = ["b"]
            [apps.d]
            """
        let killer = try RecordKiller()
        defer { killer.remove() }
        let environment = killer.environment.merging(["TORPOR_RESTART_DELAY_CAP_MS": "0"]) { $1 }
        try withDaemon(toml, environment: environment) { daemon throws in
            let apps = ["a", "b", "c", "d"]
            func areUp(_ least: [Int]) -> Bool {
                zip(apps, least).allSatisfy { runs(daemon, $0) >= $1 }
                    && (try? daemon.list())?.allSatisfy { $0.state == "active" && $0.transition == nil } ?? false
            }
            try daemon.eventually("all run") { areUp([1, 1, 1, 1]) }
            for step in 1...12 {
                let before = apps.map { runs(daemon, $0) }
                let old = try daemon.torpord()
                kill(old, SIGSTOP)
                let client = try Client(daemon, "restart", "a", "b", "c", "d")
                try daemon.eventually("it has asked") { client.waitsForReply }
                // It asks again only when the next torpord has done all that is recorded.
                kill(client.pid, SIGSTOP)
                try killer.arm(step)
                kill(old, SIGCONT)
                try daemon.eventually("torpord is killed after store \(step)") { killer.hasKilled }
                try daemon.eventually("the next one has come to rest") { areUp(before) }
                kill(client.pid, SIGCONT)
                #expect(try client.finish(daemon) == 0, "store \(step): \(client.output)")
                try daemon.eventually("each has run once more") { areUp(before.map { $0 + 1 }) }
                #expect(apps.map { runs(daemon, $0) } == before.map { $0 + 1 }, "store \(step)")
            }
        }
    }

    @Test("reading verbs are asked again and show one answer")
    func reading() throws {
        try withKilledDaemon(Self.toml, files: Self.files) { daemon throws in
            for words in [
                ["list", "--json"], ["status", "web", "--json"], ["doctor", "--json"], ["report", "--json"],
            ] {
                let old = try daemon.torpord()
                // What is asked waits in a torpord that does not run, and dies with it.
                kill(old, SIGSTOP)
                let client = try Client(daemon, words)
                try daemon.eventually("it has asked") { client.waitsForReply }
                #expect(client.reap() == nil)
                try daemon.killTorpord()
                #expect(try client.finish(daemon) == (words[0] == "status" ? 3 : 0), "\(client.output)")
                #expect(throws: Never.self) { try JSON.parse(Array(client.output.utf8)[...]) }
            }
        }
    }

    @Test("when no supervisor comes any more, it is said, with exit status 5")
    func ended() throws {
        let daemon = try Daemon(Self.toml, files: Self.files, environment: ["TORPOR_RESTART_DELAY_CAP_MS": "0"])
        try daemon.waitUntilItAnswers()
        let client = try Client(daemon, "wait", "web", "--for", "active", "--timeout", "30s", "-v")
        try daemon.eventually("it is told of the loss") {
            try daemon.replaceTorpord()
            return !client.output.isEmpty
        }
        try daemon.stop()
        #expect(try client.finish(daemon) == 5)
        #expect(client.lines.last?.hasPrefix("torpor: the connection was lost, and no server answered at ") == true)
    }
}
