// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Applying another configuration") struct ApplyTests {
    @Test("Only what changed is touched, and each app has its line")
    func onlyWhatChanged() throws {
        let stays = Apps.sleeper("a") + Apps.sleeper("b", "instances = 3")
        try withDaemon(stays + Apps.sleeper("web") + Apps.sleeper("db") + Apps.sleeper("old")) { daemon throws in
            let all = ["a", "b@1", "b@2", "b@3", "web", "db"]
            for app in all + ["old"] { try daemon.waitFor(app, "active") }
            let before = try all.map { try daemon.process(of: $0) }
            let last = try daemon.lastEvent()

            let reply = try daemon.apply(
                stays + Apps.sleeper("web", "grace = \"10s\"") + Apps.sleeper("db", seconds: 2000)
                    + Apps.sleeper("new") + Apps.sleeper("later", "launch = \"on-demand\"")
            )
            #expect(
                reply.lines == [
                    "db: exec changed: takes effect at the next launch, or now with --restart",
                    "later: added, not launched (launch = \"on-demand\")",
                    "new: added, launched",
                    "web: changed grace 5s → 10s (live)",
                    "old: removed, terminated",
                ]
            )
            #expect(reply.apps.allSatisfy { $0.ok })
            #expect(try all.map { try daemon.process(of: $0) } == before)
            #expect(daemon.processes(of: "old").isEmpty)
            #expect(try reply.apps.first { $0.app == "new" }?.pid == daemon.process(of: "new"))
            #expect(try daemon.list().map(\.name) == ["a", "b@1", "b@2", "b@3", "db", "later", "new", "web"])
            #expect(try daemon.story(all, after: last) == [])

            // The same once more: only what still waits is told.
            #expect(try daemon.apply().lines == [reply.lines[0]])
            #expect(try all.map { try daemon.process(of: $0) } == before)
            try daemon.done(.restart, "db")
            #expect(try daemon.words(of: "db") == ["/bin/sleep", "2000"])
            #expect(try daemon.apply().apps == [])
        }
    }

    @Test("Live keys count at once: signals, grace, tags, restarts, logs, order")
    func live() throws {
        let files = [
            "app.py": """
            import tp
            for name in ["SIGTERM", "SIGINT", "SIGUSR1"]:
                tp.on(name)
            tp.record("up")
            tp.wait()
            """
        ]
        func toml(_ keys: String, _ log: String = "") -> String {
            """
            [apps.app]
            \(Scripts.python)"@D/app.py"]
            grace = "1h"
            \(keys)
            [apps.job]
            exec = ["/bin/sh", "-c", "exec sleep 1000"]
            restart = "never"
            [apps.talker]
            exec = ["/bin/sh", "-c", "while read line; do echo $line; done < @D/fifo; exec sleep 1000"]
            \(log)
            """
        }
        try withDaemon(toml(""), files: files) { daemon throws in
            try daemon.waitForRecord("app", "up")
            try daemon.waitFor("job", "active")
            let pids = try ["app", "job"].map { try daemon.process(of: $0) }

            let keys = """
                stop_signal = "SIGINT"
                tags = ["x"]
                signals = { didEnterBackground = "SIGUSR1" }
                requires = ["job"]
                """
            let changed = toml(keys, "log_max_size = \"1KiB\"").replacing(
                "restart = \"never\"",
                with: "restart = \"always\""
            )
            let reply = try daemon.apply(changed)
            #expect(reply.apps.allSatisfy { $0.message.hasSuffix("(live)") }, "\(reply.lines)")
            #expect(try ["app", "job"].map { try daemon.process(of: $0) } == pids)

            #expect(try daemon.verbs(.background, ["tag:x"]).map(\.app) == ["app"])
            try daemon.waitForRecord("app", "SIGUSR1")
            kill(pids[1], SIGKILL)
            try daemon.eventually("job runs again") { try daemon.summary("job").incarnation == 2 }
            // It ignores its stop signal, for which it has an hour.
            let stop = try Client(daemon, "stop", "job")
            try daemon.waitForRecord("app", "SIGINT")
            kill(pids[0], SIGKILL)
            #expect(try stop.finish(daemon) == 0, "\(stop.output)")
            // The grace in force when the stop begins counts.
            try daemon.done(.start, "app")
            try daemon.eventually("it is up again") { daemon.records("app").count { $0 == "up" } == 2 }
            try daemon.apply(changed.replacing("grace = \"1h\"", with: "grace = \"50ms\""))
            try daemon.done(.stop, "job")
            #expect(daemon.processes(of: "app").isEmpty)
        }
    }

    @Test("What an app is launched with counts at its next launch, however that comes")
    func nextLaunch() throws {
        func toml(_ keys: String, value: String) -> String {
            """
            [apps.app]
            exec = ["/bin/sh", "-c", "echo $VALUE $(umask) $(pwd) >> @D/said; exec sleep 1000"]
            environment = { VALUE = "\(value)" }
            restart_backoff = { initial = "10ms" }
            \(keys)
            """
        }
        try withDaemon(toml("umask = \"0022\"", value: "one")) { daemon throws in
            func said() -> [String] {
                let text = (try? String(contentsOfFile: daemon.directory + "/said", encoding: .utf8)) ?? ""
                return text.split(separator: "\n").map(String.init)
            }
            try daemon.eventually("it wrote") { said() == ["one 0022 /"] }
            try daemon.eventually("it sleeps") { try daemon.words(of: "app").first == "sleep" }
            let pid = try daemon.process(of: "app")
            let reply = try daemon.apply(toml("umask = \"0007\"\ndirectory = \"/tmp\"", value: "two"))
            #expect(reply.apps.map(\.changes).joined().map(\.effect) == ["restart", "restart", "restart"])
            #expect(try daemon.process(of: "app") == pid)
            kill(pid, SIGKILL)
            try daemon.eventually("it was launched with all that is new") { said().last == "two 0007 /tmp" }
            #expect(try daemon.apply().apps.isEmpty)
            // An app that does not run takes everything at once.
            try daemon.done(.stop, "app")
            let stopped = try daemon.apply(toml("", value: "three"))
            #expect(stopped.lines.allSatisfy { $0.hasSuffix("takes effect at the next launch") })
            try daemon.done(.start, "app")
            try daemon.eventually("it was launched with the last") { said().last == "three 0022 /" }
        }
    }

    @Test("--restart replaces what runs with old values, after what requires it, and keeps goals")
    func restart() throws {
        func toml(_ seconds: Int) -> String {
            Apps.sleeper("db", seconds: seconds) + Apps.sleeper("web", "requires = [\"db\"]")
                + Apps.sleeper("cold", seconds: seconds) + Apps.sleeper("other")
                + Apps.sleeper("left", seconds: seconds)
        }
        try withDaemon(toml(1000)) { daemon throws in
            let all = ["db", "web", "cold", "other", "left"]
            for app in all { try daemon.waitFor(app, "active") }
            try daemon.done(.suspend, "cold")
            let before = try Dictionary(uniqueKeysWithValues: all.map { ($0, try daemon.process(of: $0)) })
            let last = try daemon.lastEvent()
            let reply = try daemon.apply(toml(2000)) {
                $0.restart = true
                $0.apps = ["d?", "cold"]
            }
            #expect(
                reply.lines == [
                    "cold: exec changed: restarted", "db: exec changed: restarted",
                    "left: exec changed: takes effect at the next launch, or now with --restart",
                    "web: restarted, because it requires db",
                ]
            )
            #expect(
                try daemon.story(["db", "web"], after: last) == [
                    "web exit stopped", "db exit replaced", "db launch", "web launch",
                ]
            )
            for app in ["db", "cold"] { #expect(try daemon.words(of: app) == ["/bin/sleep", "2000"]) }
            for app in ["other", "left"] { #expect(try daemon.process(of: app) == before[app]) }
            for app in ["db", "web", "cold"] { #expect(try daemon.process(of: app) != before[app]) }
            #expect(try daemon.summary("cold").state == "suspended")
            #expect(try Truth.isStopped(daemon.process(of: "cold")))
            #expect(try daemon.summary("cold").lastExit?.reason == "replaced")
            #expect(try daemon.summary("web").state == "active")
        }
    }

    @Test("A new app that cannot be launched is said to have failed, and its configuration is in force")
    func failing() throws {
        try withDaemon(Apps.sleeper("a")) { daemon throws in
            let reply = try daemon.apply(
                Apps.sleeper("a", "grace = \"1s\"")
                    + "[apps.bad]\nexec = [\"/nowhere\"]\nrestart = \"never\"\n[apps.needs]\nexec = [\"/bin/sleep\", \"9\"]\nrequires = [\"bad\"]"
            )
            let bad = try #require(reply.apps.first { $0.app == "bad" })
            #expect(!bad.ok)
            #expect(bad.error == "launch-failed")
            #expect(bad.message.hasPrefix("added, is being launched, but it "))
            #expect(reply.apps.first { $0.app == "needs" }?.error == "dependency-failed")
            #expect(reply.apps.first { $0.app == "a" }?.ok == true)
            #expect(try daemon.list().map(\.name) == ["a", "bad", "needs"])
        }
    }

    @Test("A configuration with mistakes changes nothing, and all of them are told at once")
    func invalid() throws {
        try withDaemon(Apps.sleeper("a")) { daemon throws in
            try daemon.waitFor("a", "active")
            let pid = try daemon.process(of: "a")
            let mistakes = try daemon.refused(
                "[apps.a]\nexec = [\"x\"]\ngrase = \"1s\"\nrequires = [\"b\"]\n[apps.b]\nexec = \"x\"\nrequires = [\"a\", \"c\"]"
            )
            for word in ["there is no such key", "expected an array", "there is no app", "wait for each other"] {
                #expect(mistakes.contains { $0.contains(word) }, "\(mistakes)")
                #expect(daemon.log.contains(word))
            }
            #expect(try daemon.process(of: "a") == pid)
            #expect(try daemon.list().map(\.name) == ["a"])
            #expect(try daemon.refused("no TOML").count == 1)
            // A file that is gone is no reason to end everything.
            try FileManager.default.removeItem(atPath: daemon.directory + "/torpor.toml")
            kill(daemon.pid, SIGHUP)
            try daemon.eventually("it is said") { daemon.log.contains("there is no such file") }
            #expect(try daemon.process(of: "a") == pid)
            #expect(try daemon.apply(Apps.sleeper("a")).apps.isEmpty)
        }
    }

    @Test("SIGHUP applies the configuration with its includes, and the log says what happens")
    func hangUp() throws {
        let daemon = try Daemon("")
        try daemon.waitUntilItAnswers()
        let folder = daemon.directory + "/conf.d"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        // `include` stands before [supervisor].
        let head = try String(contentsOfFile: daemon.directory + "/torpor.toml", encoding: .utf8)
        try ("include = [\"conf.d/*.toml\"]\n" + head + Apps.sleeper("a")).write(
            toFile: daemon.directory + "/torpor.toml",
            atomically: true,
            encoding: .utf8
        )
        try Apps.sleeper("b").write(toFile: folder + "/b.toml", atomically: true, encoding: .utf8)
        kill(daemon.pid, SIGHUP)
        for app in ["a", "b"] {
            try daemon.eventually("\(app) is there") { try daemon.list().contains { $0.name == app } }
            try daemon.waitFor(app, "active")
        }
        let pid = try daemon.process(of: "a")
        try FileManager.default.removeItem(atPath: folder + "/b.toml")
        kill(daemon.pid, SIGHUP)
        try daemon.eventually("b is gone") { try daemon.list().map(\.name) == ["a"] }
        #expect(daemon.log.contains("b: removed, is being terminated"))
        #expect(try daemon.events().contains { $0.app == "b" && $0.kind == "configuration" && $0.reason == "SIGHUP" })
        #expect(try daemon.process(of: "a") == pid)
        try daemon.stop()
    }

    @Test("--diff says what would happen, app by app and key by key, and changes nothing")
    func diff() throws {
        try withDaemon(Apps.sleeper("a") + Apps.sleeper("b") + Apps.sleeper("c")) { daemon throws in
            for app in ["a", "b", "c"] { try daemon.waitFor(app, "active") }
            let pids = try ["a", "b", "c"].map { try daemon.process(of: $0) }
            let last = try daemon.lastEvent()
            let new =
                Apps.sleeper("a", "grace = \"1s\"\nnice = 3") + Apps.sleeper("b", seconds: 5)
                + Apps.sleeper("d", "launch = \"background\"")
            let preview = try daemon.apply(new) { $0.diff = true }
            #expect(
                preview.lines == [
                    "a: changed grace 5s → 1s (live); nice none → 3: at the next launch, or now with --restart",
                    "b: exec changed: at the next launch, or now with --restart",
                    "d: would be added and launched into the background",
                    "c: would be removed and terminated",
                ]
            )
            let exec = try #require(preview.apps[1].changes.first)
            #expect(exec.old == #"["/bin/sleep", "1000"]"# && exec.new == #"["/bin/sleep", "5"]"#)
            #expect(
                try daemon.apply {
                    $0.diff = true
                    $0.restart = true
                    $0.apps = ["b"]
                }.lines == [
                    "b: exec changed: would be restarted"
                ]
            )
            #expect(try daemon.list().map(\.name) == ["a", "b", "c"])
            #expect(try ["a", "b", "c"].map { try daemon.process(of: $0) } == pids)
            #expect(try daemon.lastEvent() == last)
            #expect(throws: (any Error).self) {
                try daemon.apply {
                    $0.diff = true
                    $0.apps = ["nobody"]
                }
            }
        }
    }

    @Test("--restart launches what is down for a change that an earlier apply brought, but not what a user stopped")
    func mendedBefore() throws {
        func toml(_ exec: String, _ keys: String = "") -> String {
            "[apps.web]\nexec = \(exec)\nrestart = \"never\"\n\(keys)"
        }
        let (broken, mended) = ("[\"/bin/sh\", \"-c\", \"exit 5\"]", "[\"/bin/sleep\", \"1000\"]")
        try withDaemon(toml(broken)) { daemon throws in
            func endings() throws -> Int { try daemon.events("web").count { $0.kind == "exit" } }
            try daemon.eventually("it has ended") { try endings() == 1 }
            let waits = "web: exec changed: takes effect at the next launch, or now with --restart"
            #expect(try daemon.apply(toml(mended)).lines == [waits])
            // A change that counts at once does not hide it, nor is it said again.
            let both = try daemon.apply(toml(mended, "grace = \"7s\"\n")).lines
            #expect(both.count == 1 && both[0].hasPrefix("web: changed grace 5s → 7s (live); exec changed: takes"))
            #expect(try daemon.apply().lines == [waits])
            let reply = try daemon.apply { $0.restart = true }
            #expect(reply.lines == ["web: exec changed: launched"] && reply.apps.allSatisfy(\.ok))
            #expect(try daemon.words(of: "web") == ["/bin/sleep", "1000"])
            #expect(try daemon.apply { $0.restart = true }.lines.isEmpty)
            // What is taken back is no change.
            _ = try daemon.apply(toml(broken)) { $0.restart = true }
            try daemon.eventually("it has ended again") { try endings() == 3 }
            try daemon.apply(toml(mended))
            #expect(try daemon.apply(toml(broken)).lines.isEmpty)
            #expect(try daemon.apply { $0.restart = true }.lines.isEmpty)
            // What a user stopped stays down.
            try daemon.apply(toml(mended))
            _ = try daemon.verb(.stop, "web")
            #expect(try daemon.apply { $0.restart = true }.lines.isEmpty)
            #expect(try daemon.summary("web").state == "not-running" && endings() == 3)
        }
    }

    @Test("An app that could not be launched is launched when what was wrong is mended, with --restart")
    func mended() throws {
        func toml(_ exec: String) -> String { "[apps.web]\nexec = [\"\(exec)\", \"1000\"]\nrestart = \"never\"\n" }
        try withDaemon(toml("/nowhere/sleep")) { daemon throws in
            try daemon.waitForEvent("web", "launch-failed")
            let hint = "web: exec changed: takes effect at the next launch, or now with --restart"
            #expect(try daemon.apply(toml("/nowhere/else")).lines == [hint])
            try daemon.configure(toml("/bin/sleep"))
            let preview = try daemon.apply {
                $0.diff = true
                $0.restart = true
            }
            #expect(preview.lines == ["web: exec changed: would be launched"])
            let reply = try daemon.apply { $0.restart = true }
            #expect(reply.lines == ["web: exec changed: launched"] && reply.apps.allSatisfy(\.ok))
            #expect(try daemon.words(of: "web") == ["/bin/sleep", "1000"])
        }
        try withDaemon(toml("/nowhere/sleep") + "launch = \"on-demand\"\n") { daemon throws in
            _ = try? daemon.verb(.start, "web")
            try daemon.waitForEvent("web", "launch-failed")
            let reply = try daemon.apply(toml("/bin/sleep") + "launch = \"on-demand\"\n") { $0.restart = true }
            #expect(reply.lines == ["web: exec changed: takes effect at the next launch: ‘torpor start web’"])
        }
    }

    @Test("An apply ends for apps that wait for one which fails again and again, and they are launched when it is up")
    func failingRequirement() throws {
        let toml = """
            [apps.cache]
            exec = ["/bin/sh", "-c", "test -e @D/go && exec sleep 1000; exit 3"]
            ready = { file = "@D/go", interval = "10ms" }
            restart_backoff = { initial = "10ms", cap = "10ms", limit = 10000, jitter = 0 }
            [apps.site]
            exec = ["/bin/sleep", "1000"]
            requires = ["cache"]
            [apps.front]
            exec = ["/bin/sleep", "1000"]
            requires = ["site"]

            """
        try withDaemon(Apps.sleeper("stays")) { daemon throws in
            let reply = try daemon.apply(Apps.sleeper("stays") + toml)
            for name in ["site", "front"] {
                let app = try #require(reply.apps.first { $0.app == name })
                #expect(!app.ok && app.error == "waits", "\(app)")
                let text = "added, is being launched, but it still waits for cache, which ended (exit-failure 3), "
                #expect(app.message.hasPrefix(text + "restart "), "\(app)")
                #expect(app.message.contains("; torpord keeps trying: ‘torpor report cache’ says why"), "\(app)")
            }
            try File.write(daemon.directory + "/go", "")
            for name in ["site", "front"] { try daemon.waitFor(name, "active") }
        }
    }
}
