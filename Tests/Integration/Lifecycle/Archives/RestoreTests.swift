// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Who gets a state archive back, whoever saved it: the tests put it where an app's is.
@Suite("State archives: which launches get one back") struct RestoreTests {
    static let head = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        launch = "on-demand"
        ready = "notify"

        """

    /// Records what it got back, then does as told; with a file `spoiled` it dies of what it got.
    static let program = """
        import json
        from tp import *
        path = json.loads(os.environ["TORPOR_LAUNCH_OPTIONS"])["restored_state"]
        record("got " + (open(path).read() if path else "nothing"))
        if path and os.path.exists(HERE + "/spoiled"):
            os._exit(3)
        if path and os.path.exists(HERE + "/stuck"):
            time.sleep(1000)
        """ + "\n"
        + NotifyApps.obedient.replacingOccurrences(
            of: "tp.record(\"up\")",
            with: "tp.notify('READY=1')"
        )

    static func with(_ keys: String = "restart = \"never\"\n", _ body: (Daemon) throws -> Void) throws {
        try withDaemon(head + keys, files: ["app.py": program]) { daemon throws in try body(daemon) }
    }

    private func start(_ daemon: Daemon, gets what: String, count: Int = 1) throws {
        try daemon.done(.start, "web")
        #expect(daemon.records("web").filter { $0.hasPrefix("got ") }.last == "got \(what)")
    }

    private func end(_ daemon: Daemon, by signal: Int32 = SIGKILL) throws {
        let pid = try #require(try daemon.summary("web").pid)
        kill(pid, signal)
        try daemon.waitFor("web", "not-running")
    }

    @Test("A crash: the next launch gets it, and so does each later one")
    func crash() throws {
        try Self.with { daemon throws in
            try self.start(daemon, gets: "nothing")
            try daemon.plant("one")
            for _ in 0..<2 {
                try self.end(daemon)
                try self.start(daemon, gets: "one")
            }
            let archive = try #require(try daemon.status("web").archive)
            #expect(archive.path == daemon.archive())
            #expect(archive.bytes == 3)
            #expect(abs(archive.at - Clock.realtimeMicroseconds()) < 60_000_000)
        }
    }

    @Test("An eviction: it is as it was")
    func eviction() throws {
        try Self.with { daemon throws in
            try self.start(daemon, gets: "nothing")
            try daemon.plant("one")
            try daemon.done(.suspend, "web")
            try self.end(daemon)
            #expect(try daemon.summary("web").lastExit?.reason == "evicted")
            try self.start(daemon, gets: "one")
        }
    }

    @Test("What a person stops or force-quits begins anew", arguments: [Verb.stop, .kill])
    func asked(verb: Verb) throws {
        try Self.with { daemon throws in
            try self.start(daemon, gets: "nothing")
            try daemon.plant("one")
            try daemon.done(verb, "web")
            try self.start(daemon, gets: "nothing")
            try daemon.eventually("it is gone") { !File.exists(daemon.archive()) }
            #expect(try daemon.status("web").archive == nil)
        }
    }

    @Test("A person's stop counts while the app does not run, too", arguments: [Verb.stop, .kill])
    func askedLater(verb: Verb) throws {
        try Self.with { daemon throws in
            try self.start(daemon, gets: "nothing")
            try daemon.plant("one")
            try self.end(daemon)
            #expect(try daemon.status("web").archive != nil)
            _ = try daemon.verb(verb, "web")
            try daemon.eventually("it is gone") { !File.exists(daemon.archive()) }
            try self.start(daemon, gets: "nothing")
        }
    }

    @Test("An app that was done with success begins anew")
    func success() throws {
        try Self.with { daemon throws in
            try self.start(daemon, gets: "nothing")
            try daemon.plant("one")
            try self.end(daemon, by: SIGTERM)
            #expect(try daemon.summary("web").lastExit?.reason == "exit-success")
            try self.start(daemon, gets: "nothing")
            try daemon.eventually("it is gone") { !File.exists(daemon.archive()) }
        }
    }

    @Test("A launch that gets one and dies before it is ready: it is set aside, and the next goes without, at once")
    func spoiled() throws {
        let keys = "restart = \"on-failure\"\n[apps.web.restart_backoff]\ninitial = \"0s\"\n"
        try Self.with(keys) { daemon throws in
            try Daemon.write(["spoiled": ""], in: daemon.directory)
            try daemon.plant("one")
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.waitFor("web", "active")
            #expect(daemon.records("web").filter { $0.hasPrefix("got ") } == ["got one", "got nothing"])
            let event = try daemon.waitForEvent("web", "continues without its saved state")
            #expect(event.text.contains("restored it failed"))
            try daemon.eventually("it is aside") { try !daemon.status("web").archivesAside.isEmpty }
            #expect(try daemon.status("web").archive == nil)
            #expect(try String(contentsOfFile: daemon.archive("set-aside"), encoding: .utf8) == "one")
            // What it saves then is not touched by what was before.
            try daemon.plant("two")
            try File.remove(daemon.directory + "/spoiled")
            kill(try #require(try daemon.summary("web").pid), SIGKILL)
            try daemon.waitForRecord("web", "got two")
        }
    }

    @Test("A launch that gets one and is not ready in time: it is set aside")
    func late() throws {
        try Self.with("restart = \"never\"\nlaunch_deadline = \"700ms\"\n") { daemon throws in
            try Daemon.write(["stuck": ""], in: daemon.directory)
            try daemon.plant("one")
            #expect(try !daemon.verb(.start, "web").ok)
            try daemon.eventually("it is aside") { File.exists(daemon.archive("set-aside")) }
            try self.start(daemon, gets: "nothing")
        }
    }

    @Test("torpord is killed while an app launches with one: the next torpord knows whom to blame")
    func replaced() throws {
        try Self.with("restart = \"never\"\nlaunch_deadline = \"none\"\n") { daemon throws in
            try Daemon.write(["stuck": ""], in: daemon.directory)
            try daemon.plant("one")
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "got one")
            let torpord = try daemon.torpord()
            kill(torpord, SIGKILL)
            try daemon.eventually("another torpord answers") {
                (try? daemon.torpord()) != torpord && (try? daemon.summary("web").state) == "inactive"
            }
            try self.end(daemon)
            try daemon.eventually("it is aside") { File.exists(daemon.archive("set-aside")) }
            try self.start(daemon, gets: "nothing")
        }
    }

    @Test("A person's end of a launch, and a launch without a process, say nothing about it")
    func innocent() throws {
        let keys = "restart = \"never\"\nlaunch_deadline = \"none\"\n"
        try Self.with(keys) { daemon throws in
            try daemon.plant("one")
            try daemon.apply(Self.head.replacingOccurrences(of: "/usr/bin/python3", with: "/nowhere/python3") + keys)
            #expect(try daemon.verb(.start, "web").error == "launch-failed")
            try daemon.apply(Self.head + keys)
            try self.start(daemon, gets: "one")
            try self.end(daemon)
            try Daemon.write(["stuck": ""], in: daemon.directory)
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("it launches with it again") {
                daemon.records("web").filter { $0 == "got one" }.count == 2
            }
            try daemon.done(.stop, "web")
            #expect(!File.exists(daemon.archive("set-aside")))
        }
    }

    @Test("The supervisor's end, and another start of it: the app goes on with it")
    func reboot() throws {
        let daemon = try Daemon(
            Self.head.replacingOccurrences(of: "on-demand", with: "foreground"),
            files: ["app.py": Self.program]
        )
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        try daemon.plant("one")
        kill(daemon.pid, SIGTERM)
        try daemon.waitForEnd()
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.waitForRecord("web", "got one")
        try daemon.stop()
    }

    @Test("What is not an archive is none: half of one, a link, a directory")
    func strange() throws {
        try Self.with { daemon throws in
            try daemon.plant("half", as: ".new-1")
            try self.start(daemon, gets: "nothing")
            try self.end(daemon)
            try File.link(daemon.archive(), to: "/etc/hostname")
            try self.start(daemon, gets: "nothing")
            try self.end(daemon)
            try File.remove(daemon.archive())
            try File.makeDirectory(daemon.archive())
            try self.start(daemon, gets: "nothing")
        }
    }

    @Test("An app that leaves the configuration leaves no archive")
    func removed() throws {
        try Self.with { daemon throws in
            try self.start(daemon, gets: "nothing")
            try daemon.plant("one")
            try daemon.plant("old", as: "set-aside")
            try daemon.plant("older", as: "set-aside.2")
            #expect(try daemon.status("web").archivesAside.map(\.path).count == 2)
            try daemon.apply("")
            try daemon.eventually("it is gone") { !File.exists(daemon.directory + "/s/archives/web") }
        }
    }
}
