// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("What outlives the supervisor and the boot") struct RememberedTests {
    static let sleepers = """
        [defaults]
        exec = ["/bin/sleep", "1000"]
        restart_backoff = { initial = "10ms", cap = "10ms", limit = 3, window = "1h" }
        [apps.stopped]
        [apps.dependent]
        requires = ["stopped"]
        [apps.killed]
        [apps.suspended]
        [apps.back]
        [apps.wanted]
        launch = "on-demand"
        [apps.unwanted]
        launch = "on-demand"
        [apps.untouched]
        [apps.done]
        launch = "on-demand"
        exec = ["/bin/true"]
        [apps.failing]
        exec = ["/bin/false"]
        """

    /// What a person wants of these apps.
    private func ask(_ daemon: Daemon) throws {
        for app in ["stopped", "killed", "dependent", "suspended", "back", "untouched"] {
            try daemon.waitFor(app, "active")
        }
        try daemon.done(.stop, "stopped")
        try daemon.done(.kill, "killed")
        try daemon.done(.suspend, "suspended")
        try daemon.done(.background, "back")
        try daemon.done(.start, "wanted")
        _ = try daemon.verb(.start, "done")
        try daemon.eventually("it gives up") { try daemon.summary("failing").failed }
    }

    private func expectAsAsked(_ daemon: Daemon, at location: SourceLocation = #_sourceLocation) throws {
        for (app, state) in [("suspended", "suspended"), ("back", "background"), ("wanted", "active")] {
            try daemon.waitFor(app, state, at: location)
        }
        try daemon.waitFor("untouched", "active", at: location)
        for app in ["stopped", "dependent", "killed", "unwanted", "done", "failing"] {
            #expect(try daemon.summary(app).state == "not-running", "\(app)", sourceLocation: location)
        }
        #expect(try daemon.summary("failing").failed, sourceLocation: location)
        #expect(try daemon.summary("stopped").lastExit?.reason == "stopped", sourceLocation: location)
    }

    @Test("what a person asked for holds after a stop and a start of torpord, and after a crash")
    func goals() throws {
        let daemon = try Daemon(Self.sleepers)
        try daemon.waitUntilItAnswers()
        try ask(daemon)
        try daemon.stop()
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try expectAsAsked(daemon)
        let incarnation = try daemon.summary("wanted").incarnation
        #expect(incarnation == 2, "runs are counted on")

        // A crash: the next torpord has what the last one knew, and writes it down when it ends.
        try daemon.done(.background, "wanted")
        let old = try daemon.torpord()
        kill(old, SIGKILL)
        try daemon.eventually("another torpord answers") {
            (try? daemon.torpord()).map { $0 != old } ?? false && (try? daemon.list()) != nil
        }
        #expect(try daemon.summary("wanted").incarnation == incarnation)
        try daemon.stop()
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("wanted", "background")
        try daemon.done(.start, "stopped")
        try daemon.done(.start, "dependent")
        try daemon.stop()
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("stopped", "active")
        try daemon.waitFor("dependent", "active")
        try daemon.stop()
    }

    @Test("the restart of an app that was not to run is a start, which holds after the next start of torpord")
    func restarted() throws {
        let toml = """
            [defaults]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            [apps.idle]
            [apps.resting]
            """
        let daemon = try Daemon(toml)
        try daemon.waitUntilItAnswers()
        try daemon.done(.restart, "idle")
        // Another restart keeps the goal.
        try daemon.done(.start, "resting")
        try daemon.done(.suspend, "resting")
        try daemon.done(.restart, "resting")
        try daemon.stop()
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("idle", "active")
        try daemon.waitFor("resting", "suspended")
        try daemon.stop()
    }

    @Test("after a boot what was force-quit stays down, and its mark is gone; a failed one is tried once more")
    func boot() throws {
        let daemon = try Daemon(Self.sleepers)
        try daemon.waitUntilItAnswers()
        try ask(daemon)
        try daemon.stop()
        #expect(try Sqlite.ask(daemon, "SELECT force_quit FROM apps WHERE name = 'killed'") == "1")
        // As if it had been written in another boot.
        _ = try Sqlite.ask(daemon, "UPDATE meta SET value = 'another' WHERE key = 'boot'")
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        // As often as in the first boot: three restarts after the launch.
        try daemon.eventually("it gives up again") {
            let failing = try daemon.summary("failing")
            return failing.failed && failing.incarnation == 8
        }
        try expectAsAsked(daemon)
        try daemon.stop()
        #expect(try Sqlite.ask(daemon, "SELECT force_quit, goal FROM apps WHERE name = 'killed'") == "0 not-running")
        // In the same boot it stays failed until somebody resets it.
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try expectAsAsked(daemon)
        #expect(try daemon.summary("failing").incarnation == 8)
        try daemon.done(.reset, "failing")
        try daemon.stop()
        #expect(try Sqlite.ask(daemon, "SELECT failed FROM apps WHERE name = 'failing'") == "0")
        try daemon.stop()
    }

    @Test("a stop until the next boot holds over a crash and a start of torpord, and ends with the boot")
    func untilBoot() throws {
        let daemon = try Daemon(
            """
            [defaults]
            exec = ["/bin/sleep", "1000"]
            [apps.base]
            [apps.top]
            requires = ["base"]
            [apps.wanted]
            launch = "on-demand"
            [apps.down]
            """
        )
        func start(inAnotherBoot isAnother: Bool) throws {
            try daemon.stop()
            if isAnother { _ = try Sqlite.ask(daemon, "UPDATE meta SET value = 'another' WHERE key = 'boot'") }
            try daemon.startAgain()
            try daemon.waitUntilItAnswers()
        }
        func expectStopped() throws {
            for app in ["base", "top", "wanted", "down"] {
                try daemon.eventually("\(app) is kept down") { try daemon.summary(app).state == "not-running" }
                #expect(try daemon.summary(app).lastExit?.reason == "stopped", "\(app)")
            }
        }
        try daemon.waitUntilItAnswers()
        for app in ["base", "top", "down"] { try daemon.waitFor(app, "active") }
        try daemon.done(.start, "wanted")
        try daemon.done(.stop, "down")
        let result = try daemon.done(.stop, "base") { $0.untilBoot = true }
        #expect(result.message?.hasSuffix("the stop ends with the next boot") == true, "\(result)")
        for app in ["wanted", "down"] { try daemon.done(.stop, app) { $0.untilBoot = true } }
        try start(inAnotherBoot: false)
        try expectStopped()
        let old = try daemon.torpord()
        kill(old, SIGKILL)
        try daemon.eventually("another torpord answers") {
            (try? daemon.torpord()).map { $0 != old } ?? false && (try? daemon.list()) != nil
        }
        try expectStopped()
        try start(inAnotherBoot: true)
        for app in ["base", "top", "wanted"] { try daemon.waitFor(app, "active") }
        #expect(try daemon.summary("down").state == "not-running", "a stop without an end gets none by a second one")
        // A later stop has no end.
        try daemon.done(.stop, "base")
        try start(inAnotherBoot: true)
        try daemon.waitFor("wanted", "active")
        for app in ["base", "top"] { #expect(try daemon.summary(app).state == "not-running", "\(app)") }
        try daemon.stop()
    }

    @Test("the restart ledger goes on where it was")
    func ledger() throws {
        let daemon = try Daemon(
            """
            [apps.job]
            exec = ["/bin/sh", "-c", "test -e @D/now || exec sleep 1000; exit 1"]
            restart_backoff = { initial = "1ms", cap = "1ms", limit = 4, window = "1h", jitter = 0 }
            """
        )
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("job", "active")
        // Two of the four restarts, then it runs again.
        for _ in 0..<2 {
            let before = try daemon.summary("job")
            kill(try #require(before.pid), SIGKILL)
            try daemon.eventually("it is restarted") {
                let now = try daemon.summary("job")
                return now.incarnation != before.incarnation && now.state == "active"
            }
        }
        try daemon.stop()
        try File.write(daemon.directory + "/now", "")
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.eventually("it gives up") { try daemon.summary("job").failed }
        let summary = try daemon.summary("job")
        #expect(summary.restarts == 4 && summary.incarnation == 6, "two more, not four: \(summary)")
        try daemon.stop()
    }

    @Test("restarts are counted once, whatever torpord goes on from the record of another")
    func counted() throws {
        try withRecovery(Apps.sleeper("job", "restart_backoff = { initial = \"1ms\" }")) { daemon throws in
            try daemon.waitFor("job", "active")
            kill(try #require(try daemon.summary("job").pid), SIGKILL)
            try daemon.eventually("it is restarted") { try daemon.summary("job").restarts == 1 }
            try daemon.waitFor("job", "active")
            try daemon.done(.stop, "job")
            try daemon.endEverything()
            try daemon.startAgain()
            try daemon.waitUntilItAnswers()
            for loss in [Loss.killed, .upgraded, .killed] {
                try daemon.eventually("it is remembered") { try daemon.summary("job").incarnation == 2 }
                #expect(try daemon.summary("job").restarts == 1)
                try daemon.lose(loss)
            }
            try daemon.done(.start, "job")
            #expect(try daemon.summary("job").restarts == 1 && daemon.summary("job").incarnation == 3)
        }
    }

    @Test("the power goes while an app runs that was stopped before and started again: the boot launches it")
    func power() throws {
        let toml = Apps.sleeper("stopped") + Apps.sleeper("killed") + Apps.sleeper("down")
        try withRecovery(toml) { daemon throws in
            for app in ["stopped", "killed", "down"] { try daemon.waitFor(app, "active") }
            for (verb, app) in [(Verb.stop, "stopped"), (.kill, "killed"), (.stop, "down")] {
                try daemon.done(verb, app)
            }
            for app in ["stopped", "killed"] { try daemon.done(.start, app) }
            // The torpord that makes way has written all that it knows.
            try daemon.lose(.upgraded)
            try daemon.eventually("the power is gone") {
                let left = Truth.processes(marked: daemon.directory)
                for pid in left { kill(pid, SIGKILL) }
                return left.isEmpty && daemon.reap() != nil
            }
            try File.removeTree(daemon.directory + "/r")
            _ = try Sqlite.ask(daemon, "UPDATE meta SET value = 'another' WHERE key = 'boot'")
            try daemon.startAgain()
            try daemon.waitUntilItAnswers()
            for app in ["stopped", "killed"] { try daemon.waitFor(app, "active") }
            #expect(try daemon.summary("down").state == "not-running")
        }
    }

    @Test("reports and history are there after a restart of torpord")
    func reports() throws {
        let daemon = try Daemon(
            """
            [apps.job]
            exec = ["/bin/sh", "-c", "echo last words; exit 3"]
            launch = "on-demand"
            restart = "never"
            """
        )
        try daemon.waitUntilItAnswers()
        _ = try daemon.verb(.start, "job")
        try daemon.eventually("it has ended") { try daemon.reports("job").count == 1 }
        let report = try #require(try daemon.reports("job").first)
        let before = try daemon.events("job")
        #expect(report.exitCode == 3 && before.contains { $0.reason == "exit-failure" })
        try daemon.stop()
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.eventually("the report is there") { try daemon.reports("job") == [report] }
        #expect(try daemon.summary("job").lastExit?.code == 3)
        #expect(Array(try daemon.events("job").prefix(before.count)) == before)
        _ = try daemon.verb(.start, "job")
        try daemon.eventually("there are two") { try daemon.reports("job").count == 2 }
        #expect(try daemon.reports("job").map(\.incarnation) == [2, 1])
        try daemon.stop()
    }
}
