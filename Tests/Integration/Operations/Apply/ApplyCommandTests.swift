// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("torpor apply") struct ApplyCommandTests {
    private func torpor(_ daemon: Daemon, _ words: String...) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
    }

    @Test("Values of environment variables are shown by --diff alone")
    func secrets() throws {
        func toml(_ token: String) -> String { Apps.sleeper("web", "environment = { TOKEN = \"\(token)\" }") }
        try withDaemon(toml("old-one")) { daemon throws in
            try daemon.waitFor("web", "active")
            try daemon.configure(toml("new-one"))
            let preview = try torpor(daemon, "apply", "--diff")
            #expect(preview.output.contains("environment.TOKEN old-one → new-one"), "\(preview)")
            let applied = try torpor(daemon, "apply")
            let text = "web: environment.TOKEN changed: takes effect at the next launch, or now with --restart\n"
            #expect(applied == (0, text), "\(applied)")
            #expect(!daemon.log.contains("-one"))
        }
    }

    @Test("An app whose first launch failed, and which runs when all others have come up, counts as launched")
    func firstFailure() throws {
        let added = """
            [apps.flaky]
            exec = ["/bin/sh", "-c", "test -e @D/once && exec sleep 1000; touch @D/once; exit 3"]
            ready = { command = ["/usr/bin/test", "-e", "@D/twice"], interval = "10ms" }
            restart = "on-failure"
            restart_backoff = { initial = "10ms", jitter = 0 }
            [apps.slow]
            exec = ["/bin/sleep", "1000"]
            ready = { file = "@D/go", interval = "10ms" }
            launch_deadline = "1min"

            """
        try withDaemon(Apps.sleeper("web")) { daemon throws in
            try daemon.configure(Apps.sleeper("web") + added.replacing("@D", with: daemon.directory))
            let client = try Client(daemon, "apply")
            try daemon.eventually("the first launch has failed, and the second has begun") {
                let flaky = try daemon.list().first { $0.name == "flaky" }
                return flaky?.incarnation == 2 && flaky?.pid != nil
            }
            try Daemon.write(["twice": ""], in: daemon.directory)
            try daemon.waitFor("flaky", "active")
            #expect(client.reap() == nil)
            try Daemon.write(["go": ""], in: daemon.directory)
            #expect(try client.finish(daemon) == 0, "\(client.output)")
            #expect(client.output.contains("flaky: added, launched\n"), "\(client.output)")
            #expect(!client.output.contains("but it"), "\(client.output)")
        }
    }

    @Test("An environment_file with other contents is a change, which takes effect at the next launch")
    func environmentFile() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let file = folder + "/web.env"
        try File.write(file, "TOKEN=old-one\n")
        let named = Apps.sleeper("web", "environment_file = \"\(file)\"") + Apps.sleeper("db")
        try withDaemon(named) { daemon throws in
            for app in ["web", "db"] { try daemon.waitFor(app, "active") }
            #expect(try torpor(daemon, "apply", "--diff") == (0, "nothing would change\n"))
            // A comment is no change.
            try File.write(file, "# TOKEN=new\nTOKEN=old-one\n")
            #expect(try torpor(daemon, "apply") == (0, "nothing changed\n"))
            try File.write(file, "TOKEN=new-one\n")
            let (code, output) = try torpor(daemon, "apply", "--diff")
            let expected = """
                web: would be changed
                  environment_file as at its launch → changed since (at the next launch, or now with --restart)

                """
            #expect(code == 0 && output == expected, "\(output)")
            let old = "launched with an old configuration"
            func isOld(_ app: String) throws -> Bool { try torpor(daemon, "status", app).output.contains(old) }
            #expect(try isOld("web") && !isOld("db"))
            // The next torpord knows it too, and of those that have not changed that they have not.
            try daemon.replaceTorpord()
            #expect(try isOld("web") && !isOld("db"))
            #expect(try torpor(daemon, "apply", "--diff") == (0, expected))
            try File.write(file, "TOKEN=old-one\n")
            #expect(try !isOld("web"))
            #expect(try torpor(daemon, "apply", "--diff") == (0, "nothing would change\n"))
            try File.write(file, "TOKEN=new-one\n")
            let applied = try torpor(daemon, "apply")
            let text = "web: environment_file changed: takes effect at the next launch, or now with --restart\n"
            #expect(applied == (0, text), "\(applied)")
            let restarted = try torpor(daemon, "apply", "--restart")
            #expect(restarted == (0, "web: environment_file changed: restarted\n"), "\(restarted)")
            let pid = try #require(try daemon.summary("web").pid)
            #expect(try File.readString("/proc/\(pid)/environ", limit: 65_536).contains("TOKEN=new-one"))
            #expect(try torpor(daemon, "apply", "--restart") == (0, "nothing changed\n"))
            // What is being replaced, or cannot be read, is not called a change.
            try File.remove(file)
            #expect(try torpor(daemon, "apply", "--diff") == (0, "nothing would change\n"))
            #expect(!daemon.log.contains("-one"))
        }
    }

    @Test("What waits for the next launch is said to wait when nothing else has changed, and is no event again")
    func pending() throws {
        try withDaemon(Apps.sleeper("web") + Apps.sleeper("db")) { daemon throws in
            for app in ["web", "db"] { try daemon.waitFor(app, "active") }
            let ready = "ready = { command = [\"/bin/true\"] }\n"
            try daemon.configure(Apps.sleeper("web", ready) + Apps.sleeper("db"))
            func applied() throws -> String {
                let (code, output) = try torpor(daemon, "apply")
                #expect(code == 0, "\(output)")
                return output
            }
            func count() throws -> Int { try daemon.events("web").count { $0.kind == "configuration" } }
            let first = try applied()
            #expect(first.hasPrefix("web: changed ready ") && first.hasSuffix("(from the next launch on)\n"))
            #expect(try count() == 1)
            let second = try applied()
            #expect(second.hasPrefix("web: the next launch brings ready exec → "), "\(second)")
            #expect(try count() == 1)
            // With another change of the app, both are said.
            try daemon.configure(Apps.sleeper("web", ready + "grace = \"7s\"") + Apps.sleeper("db"))
            let third = try applied()
            #expect(third.hasPrefix("web: changed grace 5s → 7s (live); the next launch brings ready"), "\(third)")
            #expect(try count() == 2)
            try daemon.done(.restart, "web")
            #expect(try applied() == "nothing changed\n")
        }
    }

    @Test("One line an app, and exit statuses that tell done, failed, invalid and unknown apart")
    func lines() throws {
        try withDaemon(Apps.sleeper("web") + Apps.sleeper("db") + Apps.sleeper("old")) { daemon throws in
            for app in ["web", "db", "old"] { try daemon.waitFor(app, "active") }
            try daemon.configure(
                Apps.sleeper("web", "grace = \"10s\"") + Apps.sleeper("db", seconds: 5) + Apps.sleeper("new")
            )
            var (code, output) = try torpor(daemon, "apply", "--diff")
            #expect(code == 0)
            #expect(
                output == """
                    db: would be changed
                      exec ["/bin/sleep", "1000"] → ["/bin/sleep", "5"] (at the next launch, or now with --restart)
                    new: would be added and launched
                    web: would be changed
                      grace 5s → 10s (live)
                    old: would be removed and terminated

                    """
            )
            (code, output) = try torpor(daemon, "apply")
            #expect(code == 0)
            #expect(
                output == """
                    db: exec changed: takes effect at the next launch, or now with --restart
                    new: added, launched
                    web: changed grace 5s → 10s (live)
                    old: removed, terminated

                    """
            )
            (code, output) = try torpor(daemon, "apply", "--restart", "--json", "db")
            #expect(code == 0)
            let json = try #require(
                JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: [[String: Any]]]
            )
            #expect(json["apps"]?.first?["app"] as? String == "db")
            #expect(json["apps"]?.first?["message"] as? String == "exec changed: restarted")
            (code, output) = try torpor(daemon, "apply")
            #expect(code == 0 && output == "nothing changed\n")
            (code, output) = try torpor(daemon, "apply", "--diff")
            #expect(code == 0 && output == "nothing would change\n")

            #expect(try torpor(daemon, "apply", "web").code == 2)
            (code, output) = try torpor(daemon, "apply", "--restart", "wbe")
            #expect(code == 4 && output.contains("did you mean web?"))

            try daemon.configure("[apps.web]\nexec = [\"x\"]\ngrase = \"1s\"\ngrace = 5")
            (code, output) = try torpor(daemon, "apply")
            #expect(code == 2)
            #expect(output.contains("torpor.toml:") && output.contains("did you mean \"grace\"?"), "\(output)")
            #expect(output.contains("2 errors, nothing was changed"))
            (code, output) = try torpor(daemon, "apply", "--json")
            #expect(code == 2 && output.contains("\"ok\": false"), "\(output)")

            try daemon.configure("[apps.bad]\nexec = [\"/nowhere\"]\nrestart = \"never\"")
            (code, output) = try torpor(daemon, "apply")
            #expect(code == 1)
            #expect(output.contains("bad: added, is being launched, but it "), "\(output)")
        }
    }

    @Test(
        "--restart ends no app that could not be launched again, and restarts the others",
        arguments: [
            ("exec = [\"@D/gone\"]", "could not run @D/gone (exec): No such file or directory"),
            ("exec = [\"gone-program\"]", "could not run gone-program (exec): it is not on the PATH"),
            ("exec = [\"@D\"]", "could not run @D (exec): it is a folder"),
            ("exec = [\"/bin/sleep\", \"1000\"]\ndirectory = \"@D/none\"", "could not enter its directory @D/none"),
            (
                "exec = [\"/bin/sleep\", \"1000\"]\nuser = \"no-user-of-that-name\"",
                "there is no user no-user-of-that-name"
            ),
        ]
    )
    func unlaunchable(keys: String, reason: String) throws {
        try withDaemon(Apps.sleeper("web") + Apps.sleeper("db")) { daemon throws in
            for app in ["web", "db"] { try daemon.waitFor(app, "active") }
            let (web, db) = (try daemon.process(of: "web"), try daemon.process(of: "db"))
            func placed(_ text: String) -> String { text.replacingOccurrences(of: "@D", with: daemon.directory) }
            try daemon.configure("[apps.web]\n\(placed(keys))\n" + Apps.sleeper("db", seconds: 2000))
            let (code, output) = try torpor(daemon, "apply", "--restart")
            #expect(code == 1, "\(output)")
            #expect(output.contains("not restarted, it runs on as before, since a launch would fail: "), "\(output)")
            #expect(output.contains(placed(reason)), "\(output)")
            #expect(output.contains("db: exec changed: restarted\n"), "\(output)")
            #expect(try daemon.process(of: "web") == web && daemon.process(of: "db") != db)
            #expect(try daemon.summary("web").state == "active")
            // Once the mistake is mended, the same request restarts it.
            try daemon.configure(Apps.sleeper("web", seconds: 3000) + Apps.sleeper("db", seconds: 2000))
            #expect(try torpor(daemon, "apply", "--restart").code == 0)
            #expect(try daemon.words(of: "web") == ["/bin/sleep", "3000"])
        }
    }

    @Test(
        "--restart ends no app whose user may not enter its directory or open its files",
        .enabled(if: Users.effectiveUID == 0, "another user is needed, and only root can become one"),
        arguments: [
            ("directory = \"@D/private\"", "could not enter its directory @D/private: Permission denied"),
            ("stderr = \"@D/open/file\"", "could not open @D/open/file, its standard error: Permission denied"),
            ("stdin = \"@D/open/file\"", "could not open @D/open/file, its standard input: Permission denied"),
            // What only root can have put there is opened by root.
            ("stderr = \"@D/private/file\"", ""), ("stdin = \"@D/private/file\"", ""),
            ("stderr = \"@D/open/new\"", ""), ("directory = \"@D/open\"", ""),
        ]
    )
    func forbidden(keys: String, reason: String) throws {
        try withDaemon(Apps.sleeper("web")) { daemon throws in
            try daemon.waitFor("web", "active")
            try File.setMode(daemon.directory, 0o755)
            for (folder, mode) in [("/private", 0o700), ("/open", 0o777)] as [(String, UInt32)] {
                try File.makeDirectories(daemon.directory + folder)
                try File.write(daemon.directory + folder + "/file", "")
                try File.setMode(daemon.directory + folder + "/file", 0o600)
                try File.setMode(daemon.directory + folder, mode)
            }
            let web = try daemon.process(of: "web")
            func placed(_ text: String) -> String { text.replacingOccurrences(of: "@D", with: daemon.directory) }
            try daemon.configure(Apps.sleeper("web", placed("user = \"4242421\"\ngroup = \"4242422\"\n" + keys)))
            let (code, output) = try torpor(daemon, "apply", "--restart")
            let isRunningOn = try daemon.process(of: "web") == web
            #expect((code == 1) == !reason.isEmpty && isRunningOn == !reason.isEmpty, "\(output)")
            #expect(reason.isEmpty || output.contains("a launch would fail: " + placed(reason)), "\(output)")
        }
    }

    @Test("restart ends no app that could not be launched again, unless it is forced to")
    func restarted() throws {
        let front = Apps.sleeper("front", "requires = [\"web\"]")
        try withDaemon(Apps.sleeper("web") + front) { daemon throws in
            for app in ["web", "front"] { try daemon.waitFor(app, "active") }
            let (web, other) = (try daemon.process(of: "web"), try daemon.process(of: "front"))
            let program = daemon.directory + "/program"
            try daemon.configure("[apps.web]\nexec = [\"\(program)\", \"1234\"]\n" + front)
            #expect(try torpor(daemon, "apply").code == 0)
            let (code, output) = try torpor(daemon, "restart", "web")
            #expect(code == 1, "\(output)")
            let reason = "it could not be launched again: could not run \(program) (exec): No such file or directory"
            #expect(output.contains("web is not restarted, since " + reason), "\(output)")
            #expect(try daemon.process(of: "web") == web && daemon.process(of: "front") == other)
            #expect(try daemon.summary("web").state == "active")
            // Once the program is there, the same request restarts both.
            #expect(try Spawn.run(["/bin/cp", "/bin/sleep", program]).code == 0)
            #expect(try torpor(daemon, "restart", "web").code == 0)
            try daemon.eventually("both run again") {
                try daemon.words(of: "web") == [program, "1234"] && daemon.process(of: "front") != other
            }
            // The program of a running app was removed.
            let running = try daemon.process(of: "web")
            #expect(unlink(program) == 0)
            #expect(try torpor(daemon, "restart", "web").code == 1)
            #expect(try daemon.process(of: "web") == running)
            let forced = try torpor(daemon, "restart", "web", "--force")
            #expect(forced.code == 1 && forced.output.contains("could not run \(program)"), "\(forced.output)")
            try daemon.eventually("it was ended") { daemon.processes(of: "web").isEmpty }
        }
    }

    @Test("--restart leaves what the commands before the launch may make to the launch")
    func madeBefore() throws {
        try withDaemon(Apps.sleeper("web")) { daemon throws in
            try daemon.waitFor("web", "active")
            let program = daemon.directory + "/made"
            try daemon.configure(
                """
                [apps.web]
                exec = ["\(program)", "1234"]
                before_start = ["/bin/cp", "/bin/sleep", "\(program)"]
                """
            )
            let (code, output) = try torpor(daemon, "apply", "--restart")
            #expect(code == 0, "\(output)")
            #expect(try daemon.words(of: "web") == [program, "1234"])
        }
    }

    @Test("An edit that was not applied is told of by status, start and restart, and a file that is skipped by apply")
    func edited() throws {
        let warning = "torpor: the configuration on disk differs from the one in force: ‘torpor apply’ loads it"
        try withDaemon(Apps.sleeper("web")) { daemon throws in
            try daemon.waitFor("web", "active")
            func said(_ words: String...) throws -> String {
                try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket]).output
            }
            #expect(try !said("status", "web").contains(warning))
            let file = daemon.directory + "/torpor.toml"
            try File.replace(file, Array(("include = [\"conf.d/*.toml\"]\n" + File.readString(file)).utf8))
            for verb in ["status", "restart", "start"] { #expect(try said(verb, "web").contains(warning), "\(verb)") }
            #expect(try !said("list").contains(warning))
            _ = try said("apply")
            #expect(try !said("restart", "web").contains(warning))
            // A new file, in a folder that did not exist, and one that changes and changes back.
            let folder = daemon.directory + "/conf.d"
            try File.makeDirectories(folder)
            #expect(try !said("status", "web").contains(warning))
            try File.write(folder + "/extra.conf", Apps.sleeper("extra"))
            #expect(try !said("status", "web").contains(warning))
            let skipped = try said("apply")
            #expect(skipped.contains("extra.conf\" is skipped, since its name does not end in .toml"), "\(skipped)")
            try File.write(folder + "/extra.toml", Apps.sleeper("extra"))
            #expect(try said("status", "web").contains(warning))
            try File.remove(folder + "/extra.toml")
            #expect(try !said("status", "web").contains(warning))
            // What cannot be loaded is not said to be.
            try File.write(folder + "/extra.toml", "[apps.x")
            _ = try said("apply")
            let advice = try said("restart", "web")
            #expect(!advice.contains(warning) && advice.contains("‘torpor check’ says what is wrong"), "\(advice)")
            try File.write(folder + "/extra.toml", Apps.sleeper("extra"))
            _ = try said("apply")
            #expect(try !said("restart", "web").contains("torpor check"))
        }
    }

    @Test("Apps that do not run are told of too, when they are added and when they are removed")
    func notRunning() throws {
        let idle = Apps.sleeper("idle", "launch = \"on-demand\"")
        try withDaemon(Apps.sleeper("stopped") + idle) { daemon throws in
            try daemon.waitFor("stopped", "active")
            try daemon.done(.stop, "stopped")
            try daemon.configure(Apps.sleeper("late", "launch = \"on-demand\""))
            var (code, output) = try torpor(daemon, "apply", "--diff")
            #expect(code == 0)
            #expect(output.contains("idle: would be removed\n") && output.contains("stopped: would be removed\n"))
            (code, output) = try torpor(daemon, "apply", "--json")
            #expect(code == 0)
            let json = try #require(
                JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: [[String: Any]]]
            )
            let lines = (json["apps"] ?? []).compactMap { app in
                (app["app"] as? String).map { "\($0): \(app["message"] as? String ?? "")" }
            }
            #expect(
                lines.sorted() == [
                    "idle: removed", "late: added, not launched (launch = \"on-demand\")", "stopped: removed",
                ]
            )
            #expect(try daemon.list().map(\.name) == ["late"])
            #expect(try daemon.events().contains { $0.text.hasSuffix("was reloaded: 3 apps have changed") })
        }
    }

    @Test("A configuration without apps is refused while there are some, unless that is meant")
    func nothing() throws {
        try withDaemon(Apps.sleeper("a") + Apps.sleeper("idle", "launch = \"on-demand\"")) { daemon throws in
            try daemon.waitFor("a", "active")
            let pid = try daemon.summary("a").pid
            try daemon.configure("")
            let refused = try torpor(daemon, "apply")
            let sentence =
                "\(daemon.directory)/torpor.toml has no apps, so nothing was changed: ‘torpor apply --force’ removes all "
                + "2 apps"
            #expect(refused.code == 1 && refused.output == "torpor: \(sentence)\n", "\(refused.output)")
            // A reload by signal is the same request.
            kill(daemon.pid, SIGHUP)
            try daemon.eventually("the log says it twice") {
                daemon.log.components(separatedBy: "is not applied: \(sentence)").count == 3
            }
            #expect(try daemon.list().map(\.name) == ["a", "idle"] && daemon.summary("a").pid == pid)
            let shown = try torpor(daemon, "apply", "--diff")
            #expect(shown.code == 0 && shown.output.contains("a: would be removed and terminated\n"), "\(shown.output)")
            #expect(try torpor(daemon, "apply", "--force").code == 0)
            #expect(try daemon.list().isEmpty)
            // There is nothing to lose any longer.
            #expect(try torpor(daemon, "apply").output == "nothing changed\n")
        }
    }

    @Test("--no-wait returns at once, --timeout in time, and what was begun goes on")
    func waiting() throws {
        try withDaemon(RemovalTests.app("one"), files: RemovalTests.files) { daemon throws in
            try daemon.waitForRecord("app", "up one")
            try daemon.configure("")
            var (code, output) = try torpor(daemon, "apply", "--force", "--timeout", "50ms")
            #expect(code == 1)
            #expect(output.contains("app: removed, is being terminated, but it is still terminating"), "\(output)")
            try daemon.configure(Apps.sleeper("slow", "ready = { file = \"@D/go\" }\nlaunch_deadline = \"1min\""))
            (code, output) = try torpor(daemon, "apply", "--no-wait")
            #expect(code == 0 && output == "slow: added, is being launched\n", "\(output)")
            try Daemon.write(["go": ""], in: daemon.directory)
            try daemon.waitFor("slow", "active")
            try daemon.eventually("the other is gone") { try daemon.list().map(\.name) == ["slow"] }
        }
    }

    /// The lines that an apply which waits for long has written when it is so; then it is ended.
    private func said(
        _ daemon: Daemon,
        _ what: String,
        until isSo: ([String]) -> Bool
    ) throws -> [String] {
        let output = daemon.directory + "/said"
        let words = [Built.path("torpor"), "apply", "--timeout", "10min", "--socket", daemon.socket]
        let pid = try Spawn.start(words, environment: [:], output: output)
        defer {
            kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
        }
        func lines() -> [String] {
            ((try? File.readString(output)) ?? "").split(separator: "\n").map(String.init)
        }
        try daemon.eventually(what) { isSo(lines()) }
        return lines()
    }

    @Test("What a long wait is for is said where there is no terminal too")
    func oneshot() throws {
        try withDaemon(Apps.sleeper("web")) { daemon throws in
            try daemon.configure(Apps.sleeper("web") + Apps.sleeper("job", "type = \"oneshot\""))
            let line = "job is launching: it is a oneshot app, which is ready once it has ended"
            #expect(try said(daemon, "the wait is explained") { $0.contains(line) }.first == line)
        }
    }

    @Test("Of a long wait for many apps the steps of five are said, and that there are more")
    func oneshots() throws {
        let jobs = (1...7).map { "job\($0)" }
        let steps = jobs.map { "\($0) is launching: it is a oneshot app, which is ready once it has ended" }
        // The second one if some are launched only when the wait is long already.
        func isMore(_ line: String) -> Bool { line == "and 2 more" || line.hasPrefix("other apps wait too: ") }
        try withDaemon(Apps.sleeper("web")) { daemon throws in
            try daemon.configure(Apps.sleeper("web") + jobs.map { Apps.sleeper($0, "type = \"oneshot\"") }.joined())
            let lines = try said(daemon, "five are said, and that there are more") { lines in
                lines.count { steps.contains($0) } >= 5 && lines.contains(where: isMore)
            }
            #expect(lines.count { steps.contains($0) } == 5, "\(lines)")
            #expect(lines.count(where: isMore) == 1, "\(lines)")
        }
    }
}
