// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Restarts and dependencies") struct RestartTests {
    static func exiting(_ code: Int, _ keys: String) -> String {
        """
        [apps.job]
        exec = ["/bin/sh", "-c", "date +%s.%N >> @D/times; exit \(code)"]
        launch = "on-demand"
        log = "null"
        \(keys)
        """
    }

    private func times(_ daemon: Daemon) -> [Double] {
        let text = (try? String(contentsOfFile: daemon.directory + "/times", encoding: .utf8)) ?? ""
        return text.split(separator: "\n").compactMap { Double($0) }
    }

    @Test("on-failure leaves a clean exit alone")
    func cleanExit() throws {
        try withDaemon(Self.exiting(0, #"restart = "on-failure""#)) { daemon throws in
            _ = try daemon.verb(.start, "job")
            try daemon.waitFor("job", "not-running")
            let summary = try daemon.summary("job")
            #expect(summary.lastExit?.reason == "exit-success")
            #expect(summary.lastExit?.code == 0)
            #expect(summary.restarts == 0 && summary.incarnation == 1)
        }
    }

    @Test("Several restarts of an app at the same moment all succeed, and restart it") func together() throws {
        try withDaemon("[apps.web]\nexec = [\"/bin/sleep\", \"1000\"]\n") { daemon throws in
            try daemon.waitFor("web", "active")
            for _ in 1...3 {
                let before = try #require(try daemon.summary("web").pid)
                let clients = try (1...5).map { _ in try Client(daemon, "restart", "web") }
                for client in clients { #expect(try client.finish(daemon) == 0) }
                #expect(try daemon.summary("web").pid != before)
            }
        }
    }

    @Test("A program that goes to the background by itself is told of: its processes end with the main one")
    func daemonizes() throws {
        let toml = """
            [apps.job]
            exec = ["/bin/sh", "-c", "sleep 1000 & sleep 1000 & exit 0"]
            launch = "on-demand"
            [apps.plain]
            exec = ["/bin/sh", "-c", "exit 0"]
            launch = "on-demand"
            """
        try withDaemon(toml) { daemon throws in
            for app in ["job", "plain"] {
                _ = try daemon.verb(.start, app)
                try daemon.eventually("\(app) has ended") { try daemon.summary(app).lastExit != nil }
            }
            let hint =
                "; 2 processes that remained were ended with the main one: write the command that stays in the foreground"
            let texts = try daemon.events("job").map(\.text)
            #expect(texts.contains { $0.hasSuffix("exited with status 0 (exit-success)\(hint)") }, "\(texts)")
            #expect(try !daemon.events("plain").contains { $0.text.contains("remained") })
        }
    }

    @Test("never means never")
    func never() throws {
        try withDaemon(Self.exiting(3, #"restart = "never""#)) { daemon throws in
            _ = try daemon.verb(.start, "job")
            try daemon.waitFor("job", "not-running")
            #expect(try daemon.summary("job").lastExit?.code == 3)
            #expect(try daemon.summary("job").incarnation == 1)
            #expect(try daemon.reports("job").first?.reason == "exit-failure")
        }
    }

    @Test("always restarts a clean exit too, but not what a person stopped")
    func always() throws {
        let toml = """
            [apps.job]
            exec = ["/bin/sh", "-c", "test $TORPOR_INCARNATION = 3 && exec sleep 1000; exit 0"]
            launch = "on-demand"
            restart = "always"
            restart_backoff = { initial = "10ms" }
            """
        try withDaemon(toml) { daemon throws in
            _ = try daemon.verb(.start, "job") { $0.wait = false }
            try daemon.eventually("the third incarnation runs") {
                let summary = try daemon.summary("job")
                return summary.incarnation == 3 && summary.state == "active"
            }
            #expect(try daemon.summary("job").restarts == 2)
            try daemon.done(.stop, "job")
            #expect(try daemon.summary("job").state == "not-running")
        }
    }

    @Test("Delays grow, and past the limit the app is marked failed, until reset and start clear it")
    func limit() throws {
        let keys = #"restart_backoff = { initial = "50ms", factor = 2, limit = 3, window = "5min" }"#
        try withDaemon(Self.exiting(1, keys)) { daemon throws in
            _ = try daemon.verb(.start, "job")
            try daemon.eventually("it is given up") { try daemon.summary("job").failed }
            #expect(try daemon.summary("job").state == "not-running")
            let times = times(daemon)
            try #require(times.count == 4, "\(times)")
            let delays = zip(times.dropFirst(), times).map { $0 - $1 }
            // Lower bounds only, less the jitter of a tenth.
            for (delay, least) in zip(delays, [0.045, 0.09, 0.18]) { #expect(delay >= least) }
            try daemon.done(.reset, "job")
            #expect(try daemon.summary("job").failed == false)
            #expect(try daemon.summary("job").restarts == 0)
            _ = try daemon.verb(.start, "job") { $0.wait = false }
            try daemon.eventually("it was tried again") { self.times(daemon).count > 4 }
        }
    }

    @Test("A start of a oneshot app that waits for another one first ends when its work is done again")
    func oneshotAgain() throws {
        let toml = """
            [apps.db]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            ready = { command = ["/bin/sleep", "0.2"], timeout = "60s" }
            [apps.job]
            type = "oneshot"
            exec = ["/bin/sh", "-c", "echo done >> @D/work"]
            launch = "on-demand"
            requires = ["db"]
            """
        try withDaemon(toml) { daemon throws in
            for count in 1...2 {
                #expect(try daemon.verb(.start, "job").message?.contains("has done its work") == true)
                #expect(try File.readString(daemon.directory + "/work").split(separator: "\n").count == count)
                try daemon.done(.stop, "db")
            }
        }
    }

    @Test("A oneshot app that has done its work satisfies those that require it, and comes first")
    func oneshot() throws {
        let toml = """
            [apps.prepare]
            type = "oneshot"
            exec = ["/bin/sh", "-c", "until [ -e @D/go ]; do sleep 0.02; done; echo prepared >> @D/order"]
            [apps.web]
            exec = ["/bin/sh", "-c", "echo web >> @D/order; exec sleep 1000"]
            requires = ["prepare"]
            """
        try withDaemon(toml) { daemon throws in
            try daemon.eventually("the first works") { !daemon.processes(of: "prepare").isEmpty }
            #expect(daemon.processes(of: "web").isEmpty)
            daemon.touch("go")
            try daemon.waitFor("web", "active")
            try daemon.eventually("both wrote") {
                (try? String(contentsOfFile: daemon.directory + "/order", encoding: .utf8)) == "prepared\nweb\n"
            }
            #expect(try daemon.summary("prepare").lastExit?.reason == "exit-success")
        }
    }

    @Test("Nothing is launched before what it requires is ready")
    func requiresWaits() throws {
        let toml = """
            [apps.db]
            exec = ["/bin/sleep", "1000"]
            ready = { file = "@D/go", interval = "10ms" }
            launch_deadline = "1min"
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            requires = ["db"]
            """
        try withDaemon(toml) { daemon throws in
            try daemon.eventually("db is launched") { daemon.processes(of: "db").count == 1 }
            #expect(daemon.processes(of: "web").isEmpty)
            #expect(try daemon.summary("web").state == "not-running")
            #expect(try daemon.summary("web").heldBack == "db is not ready")
            #expect(try daemon.summary("db").transition == "launching")
            try "".write(toFile: daemon.directory + "/go", atomically: true, encoding: .utf8)
            try daemon.waitFor("web", "active")
        }
    }

    @Test("Apps that are started or restarted together keep the order of `after`", arguments: [Verb.start, .restart])
    func afterTogether(verb: Verb) throws {
        let toml = """
            [apps.a-top]
            exec = ["/bin/sleep", "1000"]
            after = ["base"]
            launch = "on-demand"
            [apps.base]
            exec = ["/bin/sleep", "1000"]
            ready = { file = "@D/go", interval = "10ms" }
            launch_deadline = "1min"
            launch = "on-demand"
            """
        try withDaemon(toml) { daemon throws in
            var old: [Int32] = []
            if verb == .restart {
                daemon.touch("go")
                for app in ["a-top", "base"] { try daemon.done(.start, app) }
                old = try ["a-top", "base"].map { try daemon.process(of: $0) }
                try File.remove(daemon.directory + "/go")
            }
            var request = VerbRequest(verb: verb, apps: ["a-top", "base"])
            request.wait = false
            _ = try daemon.call(.verb(request))
            try daemon.eventually("base is launched") {
                (try daemon.summary("base").pid).map { !old.contains($0) && Truth.isAlive($0) } ?? false
            }
            try daemon.eventually("what was there has ended") { !old.contains(where: Truth.isAlive) }
            #expect(daemon.processes(of: "a-top").isEmpty)
            #expect(try daemon.summary("base").transition == "launching")
            daemon.touch("go")
            try daemon.waitFor("a-top", "active")
            #expect(try daemon.summary("base").state == "active")
        }
    }

    @Test("A requirement that fails ends the launch with dependency-failed, and its recovery launches it after all")
    func dependencyFailed() throws {
        let toml = """
            [apps.db]
            exec = ["/bin/sh", "-c", "test -e @D/go && exec sleep 1000; exit 1"]
            ready = { file = "@D/go", interval = "10ms" }
            launch = "on-demand"
            restart = "never"
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            requires = ["db"]
            """
        try withDaemon(toml) { daemon throws in
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok)
            #expect(try daemon.summary("web").lastExit?.reason == "dependency-failed")
            try "".write(toFile: daemon.directory + "/go", atomically: true, encoding: .utf8)
            try daemon.done(.start, "db")
            try daemon.waitFor("web", "active")
        }
    }

    @Test("A start tries a requirement again that was given up, and says what it waits for where it takes long")
    func triesRequirementAgain() throws {
        let toml = """
            [apps.db]
            exec = ["/bin/sh", "-c", "test -e @D/go && exec sleep 1000; exit 3"]
            ready = { file = "@D/go", interval = "10ms" }
            launch = "on-demand"
            restart_backoff = { initial = "3s", limit = 2, jitter = 0 }
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            requires = ["db"]
            """
        try withDaemon(toml) { daemon throws in
            func start() throws -> (code: Int32, output: String) {
                try Spawn.run([Built.path("torpor"), "start", "web", "--socket", daemon.socket])
            }
            let failed = try start()
            #expect(failed.code == 1 && failed.output.contains("a dependency failed: db"), "\(failed.output)")
            let wait = "web waits for db, which ended (exit-failure 3), restart 2\n"
            #expect(failed.output.contains(wait), "\(failed.output)")
            #expect(try daemon.summary("db").failed)
            try "".write(toFile: daemon.directory + "/go", atomically: true, encoding: .utf8)
            let done = try start()
            #expect(done.code == 0 && done.output.hasPrefix("web: active"), "\(done.output)")
        }
    }

    @Test("The reason of an app that waits for one which is restarted is a whole sentence")
    func waitsForRestart() throws {
        let toml = """
            [apps.db]
            exec = ["/bin/sh", "-c", "exit 3"]
            ready = "notify"
            launch = "on-demand"
            restart = "always"
            restart_backoff = { initial = "1h", cap = "1h", jitter = 0 }
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            requires = ["db"]
            """
        try withDaemon(toml) { daemon throws in
            let words = ["start", "web", "--no-wait", "--socket", daemon.socket]
            #expect(try Spawn.run([Built.path("torpor")] + words).code == 0)
            try daemon.eventually("the reason says why db is not ready") {
                let reason = try daemon.summary("web").heldBack
                return reason?.hasPrefix("db is not ready: it ended (exit-failure 3), restart ") ?? false
            }
        }
    }

    @Test("A restart names the apps that are restarted too")
    func namesDependents() throws {
        let toml = """
            [defaults]
            exec = ["/bin/sleep", "1000"]
            [apps.db]
            [apps.idle]
            launch = "on-demand"
            requires = ["db"]
            [apps.web]
            requires = ["db"]
            [apps.work]
            requires = ["web"]
            """
        try withDaemon(toml) { daemon throws in
            for app in ["db", "web", "work"] { try daemon.waitFor(app, "active") }
            let result = try daemon.done(.restart, "db")
            let text = "db was restarted and is active; web and work, which require it, are restarted too"
            #expect(result.message == text, "\(result)")
            for app in ["web", "work"] { try daemon.waitFor(app, "active") }
            let other = try daemon.done(.restart, "web")
            #expect(other.message == "web was restarted and is active; work, which requires it, is restarted too")
            #expect(try daemon.done(.restart, "work").message == "work was restarted and is active")
        }
    }

    @Test("Stopping an app stops what requires it first")
    func stopDependents() throws {
        let toml = """
            [defaults]
            exec = ["/bin/sh", "@D/app.sh"]
            grace = "1min"
            [apps.db]
            [apps.web]
            requires = ["db"]
            """
        // Ends when it is told and let.
        let script = """
            cd @D
            end() {
                echo x > told.$TORPOR_APP
                until [ -e end.$TORPOR_APP ]; do sleep 0.02; done
                exit 0
            }
            trap end TERM
            echo x > up.$TORPOR_APP
            while :; do sleep 0.02; done
            """
        try withDaemon(toml, files: ["app.sh": script]) { daemon throws in
            func has(_ file: String) -> Bool { File.exists(daemon.directory + "/" + file) }
            for app in ["db", "web"] {
                try daemon.waitFor(app, "active")
                try daemon.eventually("\(app) has its handler") { has("up." + app) }
            }
            _ = try daemon.verb(.stop, "db") { $0.wait = false }
            try daemon.eventually("web is told") { has("told.web") }
            #expect(try daemon.summary("db").transition != "terminating" && !has("told.db"))
            daemon.touch("end.web")
            try daemon.eventually("db is told") { has("told.db") }
            #expect(try daemon.summary("web").state == "not-running")
            daemon.touch("end.db")
            try daemon.waitFor("db", "not-running")
        }
    }

    @Test("The crash of a requirement leaves its dependents running")
    func crashLeaves() throws {
        let toml = """
            [defaults]
            exec = ["/bin/sleep", "1000"]
            restart_backoff = { initial = "10ms" }
            [apps.db]
            [apps.web]
            requires = ["db"]
            """
        try withDaemon(toml) { daemon throws in
            try daemon.waitFor("web", "active")
            let web = try daemon.summary("web").pid
            if let pid = try daemon.summary("db").pid { kill(pid, SIGKILL) }
            try daemon.eventually("db is back") {
                let db = try daemon.summary("db")
                return db.incarnation == 2 && db.state == "active"
            }
            #expect(try daemon.summary("web").pid == web)
            #expect(try daemon.summary("db").lastExit?.signal == "SIGKILL")
        }
    }

    // MARK: Hooks

    @Test("Commands run before the start and after the stop, in order")
    func hooks() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "echo main >> @D/order; exec sleep 1000"]
            launch = "on-demand"
            before_start = [["/bin/sh", "-c", "echo one >> @D/order"], ["/bin/sh", "-c", "echo two >> @D/order"]]
            after_stop = [["/bin/sh", "-c", "echo after >> @D/order"]]
            """
        try withDaemon(toml) { daemon throws in
            func order() -> String {
                (try? String(contentsOfFile: daemon.directory + "/order", encoding: .utf8)) ?? ""
            }
            try daemon.done(.start, "web")
            try daemon.eventually("the app wrote") { order() == "one\ntwo\nmain\n" }
            try daemon.done(.stop, "web")
            #expect(order() == "one\ntwo\nmain\nafter\n")
        }
    }

    @Test("An app that has ended is not said to ignore its signal while a command runs after its stop")
    func slowHook() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            grace = "200ms"
            after_stop = [["/bin/sh", "-c", "until [ -e @D/enough ]; do sleep 0.02; done"]]
            """
        try withDaemon(toml) { daemon throws in
            try daemon.waitFor("web", "active")
            try daemon.done(.stop, "web") { $0.wait = false }
            try daemon.eventually("its command runs") {
                try daemon.summary("web").heldBack?.contains("its after_stop command /bin/sh runs") == true
            }
            let status = try daemon.status("web")
            #expect(status.summary.pid == nil && status.deadlines.isEmpty, "\(status.deadlines)")
            try Data().write(to: URL(fileURLWithPath: daemon.directory + "/enough"))
            try daemon.waitFor("web", "not-running")
            let texts = try daemon.events("web").map(\.text)
            #expect(!texts.contains { $0.contains("SIGKILL") }, "\(texts)")
        }
    }

    @Test("A command that fails before the start keeps the app from being launched, and says so")
    func failingHook() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "echo main >> @D/order; exec sleep 1000"]
            launch = "on-demand"
            restart = "never"
            before_start = [["/bin/sh", "-c", "exit 7"]]
            """
        try withDaemon(toml) { daemon throws in
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok)
            #expect(result.message?.contains("before_start") == true, "\(result.message ?? "")")
            #expect(result.message?.contains("7") == true)
            #expect(!File.exists(daemon.directory + "/order"))
            #expect(try daemon.summary("web").lastExit?.reason == "launch-failed")
        }
    }

    @Test("A command that hangs before the start is ended at its deadline")
    func hangingHook() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            restart = "never"
            before_start = [{ command = ["/bin/sleep", "1000"], deadline = "200ms" }]
            """
        try withDaemon(toml) { daemon throws in
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok)
            #expect(
                result.message?.contains(
                    "before_start command /bin/sleep took longer than its deadline of 200ms and was killed"
                ) == true,
                "\(result.message ?? "")"
            )
            #expect(daemon.processes(of: "web").isEmpty)
        }
    }

    @Test("A stop overtakes a command that hangs before the start")
    func stopDuringHook() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            launch_deadline = "none"
            before_start = [{ command = ["/bin/sleep", "999"], deadline = "none" }]
            """
        try withDaemon(toml) { daemon throws in
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("the hook runs") { daemon.processes(of: "web").count == 1 }
            try daemon.done(.stop, "web")
            #expect(daemon.processes(of: "web").isEmpty)
            #expect(try daemon.summary("web").state == "not-running")
        }
    }

    @Test("What a command leaves running is ended with it, also when it is given up")
    func leftByHooks() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            before_start = [["/bin/sh", "-c", "sleep 1000 & echo $! > @D/left"]]
            [apps.hung]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            launch_deadline = "none"
            before_start = [{ command = ["/bin/sh", "-c", "sleep 1000 & echo $! > @D/hung; sleep 999"], deadline = "none" }]
            """
        try withDaemon(toml) { daemon throws in
            func pid(_ name: String) -> Int32? {
                let text = try? File.readString(daemon.directory + "/" + name)
                return text?.split(separator: "\n").first.flatMap { Int32($0) }
            }
            func isGone(_ pid: Int32) -> Bool { (try? ProcFS.stat(pid)).map { $0.hasEnded } ?? true }
            try daemon.done(.start, "web")
            let left = try #require(pid("left"))
            try daemon.eventually("it is gone") { isGone(left) }
            #expect(try daemon.summary("web").state == "active")
            _ = try daemon.verb(.start, "hung") { $0.wait = false }
            try daemon.eventually("its command runs") { pid("hung") != nil }
            let hung = try #require(pid("hung"))
            #expect(!isGone(hung))
            try daemon.done(.stop, "hung")
            try daemon.eventually("it is gone, too") { isGone(hung) }
        }
    }
}
