// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("torpor health") struct HealthTests {
    private func health(_ daemon: Daemon, _ words: String...) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor"), "health", "--socket", daemon.socket] + words)
    }

    private static let toml =
        Apps.sleeper("web", "tags = [\"front\"]") + Apps.sleeper("idle", "launch = \"on-demand\"")
        + "[apps.bad]\nexec = [\"/bin/false\"]\nlaunch = \"on-demand\"\n"
        + "restart_backoff = { initial = \"1ms\", limit = 1 }\n"
        + "[apps.slow]\nexec = [\"/bin/sleep\", \"1000\"]\nready = \"notify\"\nlaunch = \"on-demand\"\n"
        + "launch_deadline = \"none\"\n"

    @Test("All is well when everything that should be up is; what is named must be up")
    func well() throws {
        try withDaemon(Self.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            try daemon.eventually("the start is over") { try self.health(daemon).code == 0 }
            #expect(try self.health(daemon) == (0, "all is well: 1 of 4 apps are up (3 done or on demand)\n"))
            #expect(try self.health(daemon, "web", "tag:front") == (0, "all is well: 1 of 1 app is up\n"))
            #expect(try self.health(daemon, "idle") == (1, "torpor: idle is not running\n"))
            #expect(
                try self.health(daemon, "w*", "--state", "background").output
                    == "torpor: web is active, and not background\n"
            )
            try daemon.done(.suspend, "web")
            #expect(try self.health(daemon, "web").code == 0, "it is resumed when it is needed")
            #expect(try self.health(daemon, "web", "--state", "active").code == 1)
            #expect(try self.health(daemon, "wbe") == (4, "torpor: there is no app wbe: did you mean web?\n"))
            #expect(try self.health(daemon, "--state", "active").code == 2)
        }
    }

    @Test("An app that ended without anybody's asking, and is not restarted, is not well until it is started again")
    func notRestarted() throws {
        let toml =
            "[apps.once]\nexec = [\"/bin/sh\", \"-c\", \"test -e @D/go && exec sleep 1000; exit 7\"]\nrestart = \"never\"\n"
        try withDaemon(toml) { daemon throws in
            try daemon.waitForEvent("once", "exit-failure")
            try daemon.eventually("it is told") {
                try self.health(daemon).output.contains("once has failed (exit-failure 7)")
            }
            #expect(try self.health(daemon).code == 1)
            try daemon.done(.reset, "once")
            #expect(try self.health(daemon).code == 0, "somebody has seen it")
            try Daemon.write(["go": ""], in: daemon.directory)
            try daemon.done(.start, "once")
            #expect(try self.health(daemon).code == 0)
            try daemon.done(.stop, "once")
            #expect(
                try self.health(daemon) == (0, "all is well: 0 of 1 app is up (1 stopped by a user)\n"),
                "a person has stopped it"
            )
        }
    }

    @Test("An app that a person stops while it waits to be restarted is down on purpose, in the next boot too")
    func stoppedInBackOff() throws {
        let toml =
            "[apps.cr]\nexec = [\"/bin/sh\", \"-c\", \"exit 5\"]\nrestart_backoff = { initial = \"10min\", cap = \"10min\" }\n"
        let daemon = try Daemon(toml)
        try daemon.waitUntilItAnswers()
        try daemon.eventually("it waits to be restarted") { try daemon.summary("cr").nextRestartMilliseconds != nil }
        #expect(try self.health(daemon).output.contains("cr ended (exit-failure 5)"))
        try daemon.done(.stop, "cr")
        try daemon.eventually("all is well") { try self.health(daemon).code == 0 }
        try daemon.stop()
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.eventually("all is well still") { try self.health(daemon).code == 0 }
        try daemon.stop()
    }

    @Test("A oneshot that has done its work is well, also by its name; one that has not is not")
    func oneshot() throws {
        let toml =
            "[apps.job]\nexec = [\"/bin/true\"]\ntype = \"oneshot\"\n"
            + "[apps.later]\nexec = [\"/bin/true\"]\ntype = \"oneshot\"\nlaunch = \"on-demand\"\n"
        try withDaemon(toml) { daemon throws in
            try daemon.waitForEvent("job", "exit-success")
            try daemon.eventually("it is done") { try self.health(daemon, "job").code == 0 }
            #expect(try self.health(daemon, "job", "--state", "active").code == 1)
            #expect(try self.health(daemon, "later") == (1, "torpor: later is not running\n"))
        }
    }

    @Test("A oneshot that does its work is well, however long it takes")
    func working() throws {
        let toml = "[apps.job]\nexec = [\"/bin/sleep\", \"1000\"]\ntype = \"oneshot\"\nlaunch = \"on-demand\"\n"
        try withDaemon(toml) { daemon throws in
            try daemon.eventually("the start is over") { try self.health(daemon).code == 0 }
            let start = try Spawn.run([Built.path("torpor"), "start", "job", "--no-wait", "--socket", daemon.socket])
            #expect(start.code == 0)
            try daemon.waitForEvent("job", "launched")
            #expect(try self.health(daemon) == (0, "all is well: 0 of 1 app is up (1 at work)\n"))
            #expect(try self.health(daemon, "job").code == 0)
            #expect(try self.health(daemon, "job", "--state", "active").code == 1)
        }
    }

    @Test("Every app that should be up and is not has a sentence, and a place in the document")
    func ill() throws {
        try withDaemon(Self.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            try daemon.eventually("the start is over") { try self.health(daemon).code == 0 }
            _ = try daemon.verb(.start, "bad") { $0.wait = false }
            _ = try daemon.verb(.start, "slow") { $0.wait = false }
            try daemon.eventually("it is given up") { try daemon.summary("bad").failed }
            let (code, output) = try self.health(daemon)
            #expect(code == 1)
            #expect(
                output.contains(
                    "torpor: bad has failed (exit-failure 1), and is no longer restarted: ‘torpor report bad’ says why\n"
                )
            )
            #expect(output.contains("torpor: slow is launching since "))
            #expect(!output.contains("web"))
            let document = try self.health(daemon, "--json")
            #expect(document.code == 1)
            let json = try JSON.parse(document.output)
            #expect(json["healthy"]?.boolValue == false)
            #expect(json["phase"]?.stringValue == "running")
            #expect(json["problems"]?.arrayValue?.compactMap { $0["app"]?.stringValue } == ["bad", "slow"])
            try daemon.done(.stop, "bad")
            let stopped = try daemon.summary("bad")
            #expect(!stopped.failed && stopped.lastExit?.reason == "stopped", "a stop takes the failure back")
            try daemon.done(.stop, "slow")
            #expect(try self.health(daemon).code == 0, "what is down on purpose is well")
        }
    }

    @Test("Who ends is not well, and who does not answer in time is not there")
    func away() throws {
        let toml = FirstProcessTests.app("web", "slow.py", "grace = \"1min\"")
        let daemon = try Daemon(toml, files: FirstProcessTests.files)
        try daemon.waitUntilItAnswers()
        try daemon.eventually("it has started, and all is well") { try health(daemon).code == 0 }
        let torpord = try daemon.torpord()
        kill(torpord, SIGSTOP)
        let patient = try Client(daemon, "health", "--timeout", "60s")
        #expect(try health(daemon, "--timeout", "300ms").code == 5)
        #expect(patient.reap() == nil, "a more patient one, which began before, still waits")
        kill(torpord, SIGCONT)
        #expect(try patient.finish(daemon) == 0, "\(patient.output)")
        kill(daemon.pid, SIGTERM)
        try daemon.waitForRecord("web", "SIGTERM")
        let (code, output) = try health(daemon)
        #expect(code == 1)
        #expect(output.contains("torpor: torpord is ending its apps\n"))
        try Daemon.write(["go": ""], in: daemon.directory)
        try daemon.waitForEnd()
        #expect(try health(daemon).code == 5)
        try daemon.stop()
    }
}
