// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("What verbs answer where an app does not come to where it was asked") struct AnswerTests {
    private static let toml = """
        [defaults]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"
        [apps.redis]
        [apps.web]
        requires = ["redis"]
        """

    private static func torpor(_ daemon: Daemon, _ words: String...) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
    }

    @Test("restart --no-wait names no pid, since that of the process which is about to end would mislead")
    func begunRestart() throws {
        try withDaemon(Self.toml) { daemon in
            try daemon.done(.start, "redis")
            let pid = try #require(try daemon.summary("redis").pid)
            let answer = try Self.torpor(daemon, "restart", "redis", "--no-wait")
            #expect(answer.code == 0 && answer.output.contains("is being restarted"), "\(answer.output)")
            #expect(!answer.output.contains("pid"), "\(answer.output)")
            try daemon.eventually("another process runs") { try daemon.summary("redis").pid.map { $0 != pid } ?? false }
        }
    }

    @Test("history of several apps has the events of all in their order, and no more than were asked for")
    func histories() throws {
        try withDaemon(Self.toml) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.stop, "redis")
            func history(_ words: String...) throws -> [String] {
                let (code, output) = try Spawn.run(
                    [Built.path("torpor"), "history", "--socket", daemon.socket] + words
                )
                #expect(code == 0, "\(output)")
                return output.split(separator: "\n").map(String.init)
            }
            let both = try history("redis", "web")
            #expect(both.contains { $0.contains("redis: launched") } && both.contains { $0.contains("web: launched") })
            #expect(both == both.sorted { $0.prefix(24) < $1.prefix(24) }, "\(both)")
            #expect(try history("web", "redis", "-n", "3") == both.suffix(3))
            #expect(try history("web", "redis", "--lines=3") == both.suffix(3))
            #expect(try history("web", "w*").count == history("web").count)
            let none = try Spawn.run([Built.path("torpor"), "history", "web", "nope", "--socket", daemon.socket])
            #expect(none.code == 4 && none.output.contains("nope"), "\(none)")
        }
    }

    @Test("wait: of an app that has failed the answer is at once that it has, and why")
    func failed() throws {
        let toml = """
            [apps.crash]
            exec = ["/bin/sh", "-c", "exit 3"]
            restart = "on-failure"
            restart_backoff = { initial = "0s", limit = 1 }
            [apps.once]
            exec = ["/bin/sh", "-c", "exit 4"]
            restart = "never"
            [apps.idle]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            """
        try withDaemon(toml) { daemon in
            try daemon.eventually("it was given up") { try daemon.summary("crash").failed }
            try daemon.eventually("the other has ended") { try daemon.summary("once").lastExit != nil }
            for (app, code) in [("crash", 3), ("once", 4)] {
                let answer = try Self.torpor(daemon, "wait", app, "--for", "active")
                #expect(answer.code == 1)
                #expect(answer.output.contains("\(app) has failed (exit-failure \(code))"), "\(answer.output)")
                #expect(answer.output.contains("torpor start \(app)"), "\(answer.output)")
            }
            #expect(try Self.torpor(daemon, "wait", "crash", "--for", "not-running").code == 0)
            // One that is not asked for yet, or was reset, may come.
            try daemon.done(.reset, "crash")
            for app in ["idle", "crash"] {
                let result = try daemon.verb(.wait, app) {
                    $0.state = "active"
                    $0.timeoutMilliseconds = 1
                }
                #expect(result.error == "timeout", "\(result)")
            }
        }
    }

    @Test("--no-wait: what happens is said, and not that it has happened, unless it has")
    func noWait() throws {
        let program = """
            import tp
            def end():
                tp.await_file("go")
                tp.os._exit(0)
            tp.on("SIGTERM", end)
            tp.record("up")
            tp.wait()
            """
        let toml = """
            [apps.slow]
            \(Scripts.python)"@D/slow.py"]
            grace = "1min"
            [apps.down]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            """
        try withDaemon(toml, files: ["slow.py": program]) { daemon in
            try daemon.waitForRecord("slow", "up")
            try daemon.waitFor("slow", "active")
            func said(_ verb: String) throws -> [String] {
                let answer = try Self.torpor(daemon, verb, "slow", "down", "--no-wait")
                #expect(answer.code == 0, "\(answer)")
                let pid = try daemon.summary("slow").pid.map { " (pid \($0))" } ?? ""
                return answer.output.replacingOccurrences(of: pid, with: "").split(separator: "\n").map(String.init)
            }
            #expect(try Set(said("stop")) == ["slow: active, is being terminated", "down: not-running"])
            try Daemon.write(["go": ""], in: daemon.directory)
            try daemon.waitFor("slow", "not-running")
            #expect(try Set(said("stop")) == ["slow: not-running", "down: not-running"])
        }
    }

    @Test("start: it names the apps that were stopped with this one and stay down")
    func stoppedAlong() throws {
        try withDaemon(Self.toml) { daemon in
            try daemon.done(.start, "web")
            #expect(try Self.torpor(daemon, "stop", "redis").code == 0)
            let start = try Self.torpor(daemon, "start", "redis")
            let sentence = ", web, which requires it, stays stopped: ‘torpor start web’ launches it\n"
            #expect(start.code == 0 && start.output.hasSuffix(sentence), "\(start.output)")
            #expect(try !Self.torpor(daemon, "start", "redis").output.contains("stays stopped"))
            #expect(try !Self.torpor(daemon, "start", "web").output.contains("stays stopped"))
            #expect(try Self.torpor(daemon, "stop", "redis").code == 0)
            let both = try Self.torpor(daemon, "start", "redis", "web")
            #expect(both.code == 0 && !both.output.contains("stays stopped"), "\(both.output)")
        }
    }

    @Test("wait: it ends when the app fails while it is waited for")
    func fails() throws {
        let toml = """
            [apps.crash]
            exec = ["/bin/sh", "-c", "until [ -e @D/go ]; do sleep 0.01; done; exit 3"]
            restart = "on-failure"
            restart_backoff = { initial = "0s", limit = 1 }
            """
        try withDaemon(toml) { daemon in
            try daemon.waitFor("crash", "active")
            let client = try Client(daemon, "wait", "crash", "--for", "suspended")
            try daemon.eventually("it waits") { client.waitsForReply }
            daemon.touch("go")
            #expect(try client.finish(daemon) == 1)
            #expect(client.output.contains("crash has failed (exit-failure 3)"), "\(client.output)")
        }
    }

    @Test(
        "foreground: an app that is interrupted stays inactive, and that is said",
        arguments: ["foreground", "start"]
    )
    func interrupted(verb: String) throws {
        try withDaemon(Self.toml) { daemon in
            try daemon.done(.start, "web")
            #expect(try daemon.done(.interrupt, "web").state == "inactive")
            let answer = try Self.torpor(daemon, verb, "web")
            #expect(answer.code == 1)
            #expect(
                answer.output.contains("web is interrupted, so it stays inactive: ‘torpor interrupt --end web’"),
                "\(answer.output)"
            )
            // Ends of interruptions are answered as ever, also one behind which there is another.
            try daemon.done(.interrupt, "web")
            #expect(try daemon.done(.interrupt, "web") { $0.end = true }.state == "inactive")
            #expect(try daemon.done(.interrupt, "web") { $0.end = true }.state == "active")
            #expect(try Self.torpor(daemon, verb, "web").code == 0)
        }
    }

    @Test("wait: a policy will suspend the app, and the answer after the time says when")
    func suspendedLater() throws {
        let mobile = "path = \"\(Built.path("libMobilePolicy.so"))\"\n"
        let apps = "[apps.web]\nexec = [\"/bin/sleep\", \"1000\"]\nbackground_time = \"1h\"\nlaunch = \"background\"\n"
        try withDaemon(Governed.toml([("mobile", mobile)], apps: apps)) { daemon in
            try daemon.waitFor("web", "background")
            let answer = try Self.torpor(daemon, "wait", "web", "--for", "suspended", "--timeout", "100ms")
            #expect(answer.code == 1 && answer.output.contains("; a policy may suspend it, in "), "\(answer)")
            let other = try Self.torpor(daemon, "wait", "web", "--for", "active", "--timeout", "100ms")
            #expect(other.output.contains("nothing will change that now"), "\(other)")
        }
    }

    @Test("interrupt: of a pattern's apps those that are not in the foreground are left out, but not one that is named")
    func interruptsSome() throws {
        try withDaemon(Self.toml) { daemon in
            let none = try Self.torpor(daemon, "interrupt", "*")
            #expect(none.code == 0 && none.output.contains("no app is in the foreground"), "\(none)")
            try daemon.done(.start, "web")
            let all = try Self.torpor(daemon, "interrupt", "*")
            #expect(all.code == 0, "\(all)")
            #expect(try daemon.summary("web").state == "inactive")
            let named = try Self.torpor(daemon, "interrupt", "*", "other")
            #expect(named.code == 4, "\(named)")
            try daemon.done(.background, "redis")
            #expect(try Self.torpor(daemon, "interrupt", "redis").code == 1)
            #expect(try Self.torpor(daemon, "interrupt", "*", "redis").code == 1)
            #expect(try Self.torpor(daemon, "interrupt", "--end", "*").code == 0)
            let end = try Self.torpor(daemon, "interrupt", "--end", "*")
            #expect(end.code == 0, "\(end)")
            #expect(try daemon.summary("web").state == "active")
            let over = try Self.torpor(daemon, "interrupt", "--end", "*")
            #expect(over.code == 0 && over.output.contains("no app is interrupted"), "\(over)")
            #expect(try Self.torpor(daemon, "interrupt", "--end", "web").code == 1)
        }
    }

    @Test("suspend: what an app in use requires is suspended with it, or by force")
    func required() throws {
        try withDaemon(Self.toml) { daemon in
            try daemon.done(.start, "web")
            let pids = try ["redis", "web"].map { try #require(try daemon.summary($0).pid) }
            let answer = try Self.torpor(daemon, "suspend", "redis")
            #expect(answer.code == 1)
            #expect(
                answer.output.contains(
                    "redis is required by web, which is active: suspend web too, or suspend it with --force"
                ),
                "\(answer.output)"
            )
            #expect(try daemon.summary("redis").state != "suspended" && !Truth.isStopped(pids[0]))
            // In whatever order they are named.
            #expect(try daemon.verbs(.suspend, ["redis", "web"]).allSatisfy(\.ok))
            #expect(pids.allSatisfy(Truth.isStopped))
            // One that sleeps needs nothing.
            try daemon.done(.foreground, "web")
            try daemon.done(.suspend, "web")
            try daemon.done(.suspend, "redis")
            #expect(pids.allSatisfy(Truth.isStopped))
            try daemon.done(.foreground, "web")
            #expect(!Truth.isStopped(pids[0]))
            try daemon.done(.suspend, "redis") { $0.force = true }
            #expect(Truth.isStopped(pids[0]) && !Truth.isStopped(pids[1]))
            #expect(try daemon.done(.suspend, "redis").state == "suspended")
        }
    }

    @Test("suspend: it warns if no event wakes the app")
    func silent() throws {
        let toml = Self.toml + "\ntopics = { news = \"latest\" }\n"
        try withDaemon(toml) { daemon in
            try daemon.done(.start, "web")
            let answer = try Self.torpor(daemon, "suspend", "web", "redis")
            #expect(answer.code == 0)
            let warning = "no event wakes redis: ‘torpor resume redis’ brings it back, and so does using web"
            #expect(answer.output.contains(warning), "\(answer.output)")
            #expect(!answer.output.contains("no event wakes web"), "\(answer.output)")
            #expect(try daemon.done(.suspend, "redis").isNeverWoken == true)
            #expect(try daemon.done(.suspend, "web").isNeverWoken == false)
            #expect(try daemon.done(.foreground, "web").isNeverWoken == nil)
        }
    }

    @Test("suspend: it names all apps that no event wakes")
    func allSilent() throws {
        try withDaemon(Self.toml) { daemon in
            try daemon.done(.start, "web")
            let answer = try Self.torpor(daemon, "suspend", "web", "redis")
            #expect(answer.output.contains("no event wakes web, redis: ‘torpor resume NAME’"), "\(answer.output)")
        }
    }

    @Test("suspend: of an app that is held the refusal says what to do")
    func held() throws {
        try withDaemon(Self.toml) { daemon in
            try daemon.done(.start, "redis")
            try daemon.done(.hold, "redis") { $0.reason = "debugging" }
            let answer = try Self.torpor(daemon, "suspend", "redis")
            #expect(answer.code == 1)
            for part in ["is held by an operator (debugging)", "‘hold --end’", "--force"] {
                #expect(answer.output.contains(part), "\(answer.output)")
            }
            #expect(try Self.torpor(daemon, "suspend", "redis", "--force").code == 0)
        }
    }

    @Test("restart: with --only-running an app that a user has stopped stays stopped")
    func onlyRunning() throws {
        try withDaemon(Self.toml) { daemon in
            try daemon.done(.start, "web")
            let first = try #require(try daemon.summary("redis").pid)
            let both = try Self.torpor(daemon, "restart", "--only-running", "web", "redis")
            #expect(both.code == 0 && both.output.contains("redis: "), "\(both.output)")
            #expect(try daemon.summary("redis").pid != first)
            try daemon.done(.stop, "redis")
            for words in [["redis"], ["redis", "web"]] {
                let none = try Spawn.run(
                    [Built.path("torpor"), "restart", "--only-running", "--socket", daemon.socket] + words
                )
                #expect(none.code == 0, "\(none.output)")
                #expect(none.output.contains("\(words.joined(separator: ", ")): not running, so not restarted"))
            }
            #expect(try daemon.summary("redis").pid == nil)
            #expect(try daemon.summary("web").pid == nil)
            #expect(try Self.torpor(daemon, "restart", "--only-running", "nope").code == 4)
        }
    }

    @Test("restart: with --only-running an app that failed is restarted, since what made it fail may have been mended")
    func mended() throws {
        let program = "exec = [\"/bin/sh\", \"-c\", \"test -e @D/mended && exec sleep 1000; exit 3\"]\n"
        let toml =
            "[apps.failed]\n" + program + "restart_backoff = { initial = \"0s\", limit = 1 }\n"
            + "[apps.waiting]\n" + program + "restart_backoff = { initial = \"1h\", cap = \"1h\" }\n"
        try withDaemon(toml) { daemon in
            try daemon.eventually("it was given up") { try daemon.summary("failed").failed }
            try daemon.eventually("it waits") { try daemon.summary("waiting").nextRestartMilliseconds != nil }
            try File.replace(daemon.directory + "/mended", [])
            let answer = try Self.torpor(daemon, "restart", "--only-running", "failed", "waiting")
            #expect(answer.code == 0, "\(answer.output)")
            for app in ["failed", "waiting"] { #expect(try daemon.summary(app).pid != nil, "\(app)") }
        }
    }
}
