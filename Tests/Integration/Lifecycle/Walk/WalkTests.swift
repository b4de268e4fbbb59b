// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Linux
import Testing
import TorporAPI

@Suite("The whole walk of an app") struct WalkTests {
    static let toml = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/web.py"]
        launch = "on-demand"
        """
    static let files = [
        "web.py": """
        import tp
        tp.fork(tp.wait)
        tp.on("SIGTERM", lambda: tp.os._exit(0))
        tp.record("up")
        tp.wait()
        """
    ]

    @Test("An app walks through every state, and is stopped with its child where it says suspended")
    func walk() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            #expect(try daemon.summary("web").state == "not-running")
            #expect(daemon.processes(of: "web").isEmpty)
            #expect(try daemon.done(.start, "web").state == "active")
            try daemon.waitForRecord("web", "up")
            try daemon.eventually("both processes run") { daemon.processes(of: "web").count == 2 }
            let pids = daemon.processes(of: "web")

            #expect(try daemon.done(.background, "web").state == "background")
            #expect(pids.allSatisfy { !Truth.isStopped($0) })
            #expect(try daemon.done(.suspend, "web").state == "suspended")
            #expect(pids.allSatisfy(Truth.isStopped), "\(pids.map(Truth.states))")
            #expect(try daemon.done(.resume, "web").state == "background")
            #expect(pids.allSatisfy { !Truth.isStopped($0) }, "\(pids.map(Truth.states))")
            #expect(try daemon.done(.foreground, "web").state == "active")
            #expect(try daemon.done(.interrupt, "web").state == "inactive")
            #expect(try daemon.done(.interrupt, "web") { $0.end = true }.state == "active")

            // Far states are reached edge by edge, in both directions.
            #expect(try daemon.done(.suspend, "web").state == "suspended")
            #expect(pids.allSatisfy(Truth.isStopped))
            #expect(try daemon.done(.foreground, "web").state == "active")
            #expect(daemon.processes(of: "web").sorted() == pids.sorted())

            #expect(try daemon.done(.stop, "web").state == "not-running")
            #expect(daemon.processes(of: "web").isEmpty)
            #expect(daemon.records("web") == ["up", "SIGTERM"])
            #expect(try daemon.summary("web").lastExit?.reason == "stopped")
            let walk = try daemon.walk("web")
            #expect(
                walk == [
                    "inactive", "active", "inactive", "background", "suspended", "background", "inactive", "active",
                    "inactive", "active", "inactive", "background", "suspended", "background", "inactive", "active",
                    "not-running",
                ]
            )
        }
    }

    @Test("Interrupts nest: the last one to end makes the app active again")
    func interruptsNest() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.done(.interrupt, "web")
            try daemon.done(.interrupt, "web")
            try daemon.done(.interrupt, "web") { $0.end = true }
            #expect(try daemon.summary("web").state == "inactive")
            try daemon.done(.interrupt, "web") { $0.end = true }
            #expect(try daemon.summary("web").state == "active")
        }
    }

    @Test("A force quit ends a suspended app with its child, without a word to it")
    func killSuspended() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            try daemon.done(.suspend, "web")
            #expect(try daemon.done(.kill, "web").state == "not-running")
            #expect(daemon.processes(of: "web").isEmpty)
            #expect(daemon.records("web") == ["up"])
            #expect(try daemon.summary("web").lastExit?.reason == "force-quit")
        }
    }

    @Test("A restart is a new process and a new incarnation")
    func restart() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            let first = try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            let second = try daemon.done(.restart, "web")
            #expect(first.pid != second.pid)
            #expect(second.state == "active")
            #expect(try daemon.summary("web").incarnation == 2)
            #expect(daemon.records("web").starts(with: ["up", "SIGTERM"]))
        }
    }

    @Test("What cannot be done is refused in a sentence", arguments: [Verb.suspend, .resume, .foreground, .interrupt])
    func refused(verb: Verb) throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            let result = try daemon.verb(verb, "web")
            if verb == .foreground {
                // To bring an app to the foreground that does not run is to launch it, or to be told to.
                #expect(result.ok ? result.state == "active" : result.message?.contains("start it first") == true)
            } else {
                #expect(!result.ok)
                #expect(result.message?.contains("start it first") == true, "\(result.message ?? "")")
            }
        }
    }

    @Test("An app is launched in the background where that is asked, and never was active")
    func backgroundLaunch() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            #expect(try daemon.done(.start, "web") { $0.background = true }.state == "background")
            #expect(try daemon.walk("web").contains("active") == false)
        }
    }

    @Test("Apps are chosen by glob and by tag, each with its own result")
    func selection() throws {
        let toml = """
            [defaults]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            [apps.red]
            tags = ["colour"]
            [apps.rose]
            [apps.blue]
            tags = ["colour"]
            """
        try withDaemon(toml) { daemon throws in
            #expect(try Set(daemon.verbs(.start, ["r*"]).map(\.app)) == ["red", "rose"])
            #expect(daemon.processes(of: "blue").isEmpty)
            #expect(try Set(daemon.verbs(.start, ["tag:colour"]).map(\.app)) == ["red", "blue"])
            #expect(daemon.processes(of: "blue").count == 1)
            #expect(throws: (any Error).self) { try daemon.verb(.start, "bleu") }
        }
    }
}
