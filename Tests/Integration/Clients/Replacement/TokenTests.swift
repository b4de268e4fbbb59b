// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("A request that is asked again") struct TokenTests {
    static let toml = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        ready = "notify"
        """
    static let files = [
        "app.py": """
        import tp
        tp.on("SIGUSR1")
        tp.notify("READY=1")
        tp.record("ready")
        tp.wait()
        """
    ]

    /// Asks twice with one token, which must give the same result but for what only the first can know.
    private func twice(_ daemon: Daemon, _ verb: Verb, _ change: (inout VerbRequest) -> Void = { _ in }) throws {
        let token = RequestToken.random()
        for _ in 0..<2 {
            try daemon.done(verb, "web") {
                $0.token = token
                change(&$0)
            }
        }
    }

    @Test("is carried out once: no second restart, interruption or signal")
    func once() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            try daemon.waitFor("web", "active")
            try twice(daemon, .restart)
            #expect(try daemon.summary("web").incarnation == 2)
            try twice(daemon, .interrupt)
            try daemon.done(.interrupt, "web") { $0.end = true }
            #expect(try daemon.summary("web").state == "active")
            let signal = ManagerRequest.signal(app: "web", signal: "USR1", token: .random())
            try daemon.call(signal)
            try daemon.eventually("the signal came") { daemon.records("web").contains("SIGUSR1") }
            try daemon.call(signal)
            // Two that wait at once would be one.
            try daemon.eventually("one signal came") { daemon.records("web").contains("SIGUSR1") }
            try daemon.call(.signal(app: "web", signal: "USR1"))
            try daemon.eventually("another one came") { daemon.records("web").count { $0 == "SIGUSR1" } == 2 }
            let sent = try daemon.events("web").count { $0.text.hasPrefix("sent SIGUSR1") }
            #expect(sent == 2)
        }
    }

    @Test("is answered as the first time, when what it asked for is there")
    func sameAnswer() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            try daemon.waitFor("web", "active")
            for verb in [Verb.stop, .start, .background, .suspend, .resume, .foreground, .restart, .kill, .reset] {
                try twice(daemon, verb)
            }
            try twice(daemon, .start) { $0.background = true }
            #expect(try daemon.summary("web").state == "background")
        }
    }

    @Test("is overtaken by what somebody else asked for in between")
    func overtaken() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            try daemon.waitFor("web", "active")
            let token = RequestToken.random()
            try daemon.done(.stop, "web") { $0.token = token }
            try daemon.done(.start, "web") { $0.token = .random() }
            let again = try daemon.verb(.stop, "web") { $0.token = token }
            #expect(!again.ok && again.error == "overtaken")
            #expect(try daemon.summary("web").incarnation == 2 && daemon.summary("web").state == "active")
        }
    }

    @Test("is refused again when it was refused, and carried out when that has changed")
    func refused() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            try daemon.waitFor("web", "active")
            try daemon.done(.stop, "web")
            let token = RequestToken.random()
            for _ in 0..<2 {
                #expect(try daemon.verb(.suspend, "web") { $0.token = token }.error == "refused")
            }
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web") { $0.token = token }
            #expect(try daemon.summary("web").state == "suspended")
        }
    }

    @Test("restarts those once that are named beside what they require")
    func restartWithDependents() throws {
        let toml = """
            [defaults]
            exec = ["/bin/sleep", "1000"]
            [apps.db]
            [apps.web]
            requires = ["db"]
            """
        try withDaemon(toml) { daemon throws in
            try daemon.waitFor("web", "active")
            let token = RequestToken.random()
            for _ in 0..<2 {
                let results = try daemon.verbs(.restart, ["db", "web"]) { $0.token = token }
                #expect(results.map(\.app) == ["db", "web"] && results.allSatisfy { $0.ok && $0.state == "active" })
            }
            #expect(try daemon.list().map(\.incarnation) == [2, 2])
            // One that was stopped before starts for itself.
            try daemon.done(.stop, "web")
            #expect(try daemon.verbs(.restart, ["db", "web"]) { $0.token = .random() }.allSatisfy(\.ok))
            #expect(try daemon.list().map(\.incarnation) == [3, 3])
        }
    }

    @Test("tells how the app ended, when it ended instead")
    func endedInstead() throws {
        try withDaemon(
            """
            [apps.web]
            exec = ["/bin/sh", "-c", "exit 3"]
            ready = "notify"
            restart = "never"
            launch = "on-demand"
            """
        ) { daemon throws in
            let token = RequestToken.random()
            for _ in 0..<2 {
                let result = try daemon.verb(.start, "web") { $0.token = token }
                #expect(!result.ok && result.error == "exit-failure", "\(result.message ?? "")")
            }
            #expect(try daemon.summary("web").incarnation == 1)
        }
    }

    @Test("A stop answers for the apps that require what is stopped, once each, also when it is asked again")
    func dependents() throws {
        let toml = """
            [defaults]
            exec = ["/bin/sleep", "1000"]
            [apps.db]
            [apps.cache]
            [apps.web]
            requires = ["db", "cache"]
            [apps.proxy]
            requires = ["web"]
            [apps.report]
            requires = ["db"]
            launch = "on-demand"
            """
        try withDaemon(toml) { daemon throws in
            for app in ["db", "cache", "web", "proxy"] { try daemon.waitFor(app, "active") }
            let token = RequestToken.random()
            for _ in 0..<2 {
                let results = try daemon.verbs(.stop, ["db", "cache"]) { $0.token = token }
                #expect(results.map(\.app).sorted() == ["cache", "db", "proxy", "web"])
                #expect(results.allSatisfy { $0.ok && $0.state == "not-running" })
                #expect(results.first { $0.app == "proxy" }?.message?.hasSuffix("it requires db") == true)
                #expect(results.first { $0.app == "db" }?.message?.contains("requires") == false)
            }
            #expect(try daemon.list().allSatisfy { $0.state == "not-running" })
        }
    }
}
