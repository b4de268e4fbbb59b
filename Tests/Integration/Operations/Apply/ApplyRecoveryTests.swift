// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Applies and torpords that die") struct ApplyRecoveryTests {
    @Test("The configuration in force outlives torpord, and so does what runs with old values")
    func outdated() throws {
        try withDaemon(Apps.sleeper("a") + Apps.sleeper("b") + Apps.sleeper("gone")) { daemon throws in
            for app in ["a", "b", "gone"] { try daemon.waitFor(app, "active") }
            let pids = try ["a", "b"].map { try daemon.process(of: $0) }
            let new = Apps.sleeper("a", seconds: 2000) + Apps.sleeper("b", "grace = \"9s\"") + Apps.sleeper("new")
            try daemon.apply(new)
            #expect(try daemon.status("a").outdated)
            // Whatever is on disk by then is nobody's business.
            try daemon.configure("wrong")
            try daemon.killTorpord()
            try daemon.waitUntilItAnswers()
            #expect(try daemon.list().map(\.name) == ["a", "b", "new"])
            #expect(try ["a", "b"].map { try daemon.process(of: $0) } == pids)
            #expect(try daemon.status("a").outdated)
            #expect(try !daemon.status("b").outdated)

            let line = "changed before torpord was replaced: takes effect at the next launch, or now with --restart"
            #expect(try daemon.apply(new).lines == ["a: \(line)"])
            #expect(try daemon.process(of: "a") == pids[0])
            #expect(
                try daemon.apply { $0.restart = true }.lines == ["a: changed before torpord was replaced: restarted"]
            )
            #expect(try daemon.words(of: "a") == ["/bin/sleep", "2000"])
            #expect(try !daemon.status("a").outdated)
            #expect(try daemon.process(of: "b") == pids[1])
            #expect(try daemon.apply().apps.isEmpty)
        }
    }

    @Test("A change that counts from the next launch on restarts no app after torpord was replaced either")
    func fromNextLaunch() throws {
        let old = Apps.sleeper("a")
        let new = Apps.sleeper("a", "ready = { command = [\"/bin/true\"] }")
        try withDaemon(old) { daemon throws in
            try daemon.waitFor("a", "active")
            let pid = try daemon.process(of: "a")
            try daemon.apply(new) { $0.restart = true }
            #expect(try daemon.process(of: "a") == pid)
            try daemon.killTorpord()
            try daemon.waitUntilItAnswers()
            #expect(try daemon.status("a").outdated)
            let said = try daemon.apply { $0.restart = true }.lines
            #expect(said == ["a: changed before torpord was replaced (from the next launch on)"])
            #expect(try daemon.process(of: "a") == pid)
            try daemon.done(.restart, "a")
            #expect(try !daemon.status("a").outdated)
            #expect(try daemon.apply().apps.isEmpty)
        }
    }

    @Test("A change that is taken back after torpord was replaced is no longer pending", arguments: [false, true])
    func takenBack(twice: Bool) throws {
        let old = Apps.sleeper("a", "environment = { A = \"1\" }") + Apps.sleeper("b")
        let new = Apps.sleeper("a", "grace = \"9s\"\nenvironment = { A = \"2\" }") + Apps.sleeper("b", seconds: 2000)
        try withDaemon(old) { daemon throws in
            for app in ["a", "b"] { try daemon.waitFor(app, "active") }
            let pids = try ["a", "b"].map { try daemon.process(of: $0) }
            try daemon.apply(new)
            // The change of another key that needs a restart is still not what the app was launched with.
            try daemon.killTorpord()
            try daemon.waitUntilItAnswers()
            #expect(try daemon.status("a").outdated && daemon.status("b").outdated)
            let other = Apps.sleeper("a", "grace = \"9s\"\nenvironment = { A = \"3\" }") + Apps.sleeper("b")
            let lines = try daemon.apply(other).lines
            #expect(lines.contains { $0.hasPrefix("a: ") && $0.contains("changed before torpord was replaced") })
            #expect(lines.contains { $0.hasPrefix("b: exec changed (live)") }, "\(lines)")
            #expect(try daemon.status("a").outdated && !daemon.status("b").outdated)
            if twice {
                // Replaced a second time, which still knows what the first one launched.
                try daemon.killTorpord()
                try daemon.waitUntilItAnswers()
                #expect(try daemon.status("a").outdated && !daemon.status("b").outdated)
            }
            try daemon.apply(old)
            #expect(try !daemon.status("a").outdated)
            #expect(try daemon.apply().apps.isEmpty)
            #expect(try ["a", "b"].map { try daemon.process(of: $0) } == pids)
        }
    }

    @Test("A change for an app that has gone down still waits for --restart after torpord was replaced")
    func down() throws {
        func toml(_ exec: String) -> String { "[apps.web]\nexec = \(exec)\nrestart = \"never\"\n" }
        let (broken, mended) = ("[\"/bin/sh\", \"-c\", \"exit 5\"]", "[\"/bin/sleep\", \"1000\"]")
        let waits = "web: exec changed: takes effect at the next launch, or now with --restart"
        let replaced = "web: changed before torpord was replaced"
        try withDaemon(toml(broken)) { daemon throws in
            func replace() throws {
                try daemon.killTorpord()
                try daemon.waitUntilItAnswers()
            }
            try daemon.waitForEvent("web", "exit")
            #expect(try daemon.apply(toml(mended)).lines == [waits])
            // Replaced twice: the second one still knows what the first one launched.
            for _ in 1...2 {
                try replace()
                let line = replaced + ": takes effect at the next launch, or now with --restart"
                #expect(try daemon.apply().lines == [line])
            }
            // What is taken back is no longer pending.
            try daemon.apply(toml(broken))
            #expect(try daemon.apply { $0.restart = true }.lines.isEmpty)
            #expect(try daemon.apply(toml(mended)).lines == [waits])
            try replace()
            let reply = try daemon.apply { $0.restart = true }
            #expect(reply.lines == [replaced + ": launched"] && reply.apps.allSatisfy(\.ok))
            #expect(try daemon.words(of: "web") == ["/bin/sleep", "1000"])
            #expect(try daemon.apply { $0.restart = true }.lines.isEmpty)
            try replace()
            #expect(try !daemon.status("web").outdated)
            #expect(try daemon.apply { $0.restart = true }.lines.isEmpty)
        }
    }

    @Test("An app that is removed and ends slowly is gone all the same when torpord dies meanwhile")
    func removed() throws {
        try withDaemon(RemovalTests.app("one") + Apps.sleeper("stays"), files: RemovalTests.files) { daemon throws in
            try daemon.waitForRecord("app", "up one")
            try daemon.waitFor("stays", "active")
            let pid = try daemon.process(of: "stays")
            try daemon.apply(Apps.sleeper("stays")) { $0.wait = false }
            try daemon.waitForRecord("app", "SIGTERM")
            try daemon.killTorpord()
            try daemon.waitUntilItAnswers()
            #expect(try daemon.list().map(\.name) == ["stays"])
            try Daemon.write(["go": ""], in: daemon.directory)
            try daemon.eventually("its process is gone") { daemon.processes(of: "app").isEmpty }
            #expect(try daemon.process(of: "stays") == pid)
            // Its name is free for another.
            try daemon.apply(Apps.sleeper("stays") + Apps.sleeper("app"))
            try daemon.waitFor("app", "active")
        }
    }

    @Test("What a removed app has left running is ended, though two torpords have died over it")
    func removedLeavesProcess() throws {
        guard Users.isRoot else { return print("skipped: only root has a mount namespace") }
        let files = [
            "app.py": """
            import tp
            tp.on("SIGTERM", lambda: tp.os._exit(0))
            def stay():
                tp.signal.signal(tp.signal.SIGTERM, tp.signal.SIG_IGN)
                tp.record("stays")
                tp.wait()
            tp.fork(stay)
            tp.wait()
            """
        ]
        let app = "[apps.app]\n\(Scripts.python)\"@D/app.py\"]\ngrace = \"1min\"\n"
        // Without a cgroup, which would tell what is left.
        let wrapper = ["/usr/bin/unshare", "-m", "/bin/sh", "-ec", "umount -lR /sys/fs/cgroup; exec \"$@\"", "sh"]
        let daemon = try Daemon(app + Apps.sleeper("other"), files: files, wrapper: wrapper)
        try daemon.waitUntilItAnswers()
        try daemon.waitForRecord("app", "stays")
        try daemon.apply(Apps.sleeper("other")) { $0.wait = false }
        try daemon.eventually("its main process is gone") { daemon.processes(of: "app").count == 1 }
        try daemon.replaceTorpord()
        // The second one dies while it ends what it has found: that has five seconds.
        try daemon.replaceTorpord()
        try daemon.eventually("the other process too") { daemon.processes(of: "app").isEmpty }
        try daemon.waitFor("other", "active")
        try daemon.stop()
    }

    @Test("That an app was removed counts, also when torpord and its keeper die before the disk has taken it")
    func removalNotStored() throws {
        let disk = try HangingDisk()
        defer { disk.remove() }
        let daemon = try Daemon(
            RemovalTests.app("one") + Apps.sleeper("stays"),
            files: RemovalTests.files,
            environment: disk.environment,
            nested: true
        )
        try daemon.waitUntilItAnswers()
        try daemon.waitForRecord("app", "up one")
        let log = daemon.directory + "/s/torpor.db-wal"
        let began = Clock.realtimeMicroseconds()
        try daemon.apply(Apps.sleeper("stays")) { $0.wait = false }
        try daemon.waitForRecord("app", "SIGTERM")
        // Stored by then: that it is stopped. Not stored will be: that it is gone.
        try daemon.eventually("the disk has what happened") {
            let date = try FileManager.default.attributesOfItem(atPath: log)[.modificationDate] as? Date
            return date.map { $0.timeIntervalSince1970 * 1_000_000 > Double(began) } ?? false
        }
        try disk.hang()
        try Daemon.write(["go": ""], in: daemon.directory)
        try daemon.eventually("it is forgotten") { try daemon.list().map(\.name) == ["stays"] }
        try daemon.configure(Apps.sleeper("stays") + Apps.sleeper("app"))
        try daemon.lose(.both) { try disk.answer() }
        try daemon.waitFor("app", "active")
        try daemon.endEverything()
    }

    @Test("torpord may die at any moment of an apply: afterwards all is as the one before or the one after says")
    func anyMoment() throws {
        func toml(_ round: Int) -> String {
            var text = Apps.sleeper("steady")
            for number in 0..<20 { text += Apps.sleeper("r\(round % 2)-\(number)") }
            return text
        }
        try withDaemon(toml(0), environment: ["TORPOR_RESTART_DELAY_CAP_MS": "10"]) { daemon throws in
            try daemon.waitFor("steady", "active")
            let pid = try daemon.process(of: "steady")
            for round in 1...8 {
                try daemon.configure(toml(round))
                let torpord = try daemon.torpord()
                kill(daemon.pid, SIGHUP)
                usleep(useconds_t(round) * 1_500)
                kill(torpord, SIGKILL)
                try daemon.waitUntilItAnswers()
                try daemon.apply()
                try daemon.eventually("round \(round) is what is") {
                    let list = try daemon.list()
                    return Set(list.map(\.name)) == Set((0..<20).map { "r\(round % 2)-\($0)" } + ["steady"])
                        && list.allSatisfy { $0.state == "active" }
                        && Truth.processes(marked: daemon.directory).count {
                            (try? ProcFS.cmdline($0).first) == "/bin/sleep"
                        } == 21
                }
                #expect(try daemon.process(of: "steady") == pid)
            }
        }
    }
}
