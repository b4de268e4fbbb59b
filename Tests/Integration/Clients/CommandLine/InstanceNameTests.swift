// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("The name of an app with instances") struct InstanceNameTests {
    private static let program = """
        import tp
        tp.on("SIGUSR2")
        print("I am " + tp.sys.argv[1], flush=True)
        tp.record("up")
        tp.wait()
        """

    private static let toml = """
        [apps.api]
        \(Scripts.python)"@D/api.py", "%i"]
        instances = 2
        tags = ["shop"]
        [apps.one]
        \(Scripts.python)"@D/api.py", "%i"]
        instances = 1
        """

    private func withApps(_ body: (Daemon) throws -> Void) throws {
        try withDaemon(Self.toml, files: ["api.py": Self.program]) { daemon in
            for app in ["api@1", "api@2", "one@1"] {
                try daemon.waitFor(app, "active")
                try daemon.waitForRecord(app, "up")
            }
            try body(daemon)
        }
    }

    private func torpor(_ daemon: Daemon, _ words: String...) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor"), "--socket", daemon.socket] + words)
    }

    @Test("is all of them to verbs that look, as globs and tags are", arguments: ["api", "tag:shop"])
    func looking(name: String) throws {
        try withApps { daemon in
            func expect(_ parts: [String], in result: (code: Int32, output: String)) {
                #expect(result.code == 0, "\(result)")
                for part in parts { #expect(result.output.contains(part), "\(result)") }
                #expect(!result.output.contains("one@1"), "\(result)")
            }
            expect(["api@1: active", "api@2: active"], in: try torpor(daemon, "status", name))
            expect(["I am 1", "I am 2"], in: try torpor(daemon, "logs", name, "-n2"))
            for verb in ["events", "history"] {
                expect(["api@1: is active", "api@2: is active"], in: try torpor(daemon, verb, name))
                let last = try torpor(daemon, verb, name, "-n", "1")
                #expect(last.code == 0 && last.output.split(separator: "\n").count == 1, "\(last)")
            }
            expect(["no reports\n"], in: try torpor(daemon, "report", name))
            let all = try torpor(daemon, "history")
            #expect(all.code == 0 && all.output.contains("one@1: is active"), "\(all)")
        }
    }

    @Test("is all of them to a signal; of one that is suspended it is said that it waits")
    func signal() throws {
        try withApps { daemon in
            try daemon.done(.suspend, "api@2")
            let sent = try torpor(daemon, "signal", "USR2", "api")
            #expect(sent.code == 0 && sent.output == "api@2 is suspended and gets SIGUSR2 when resumed\n", "\(sent)")
            try daemon.waitForRecord("api@1", "SIGUSR2")
            #expect(daemon.records("api@2") == ["up"])
            try daemon.done(.resume, "api@2")
            try daemon.waitForRecord("api@2", "SIGUSR2")
            #expect(daemon.records("one@1") == ["up"])
            let silent = try torpor(daemon, "signal", "USR2", "api@1")
            #expect(silent.code == 0 && silent.output.isEmpty, "\(silent)")
        }
    }

    @Test("A signal goes to several apps, once to each; to none if one of the names is unknown")
    func severalSignals() throws {
        try withApps { daemon in
            let unknown = try torpor(daemon, "signal", "USR1", "one", "two")
            #expect(unknown.code == 4 && unknown.output.contains("there is no app two"), "\(unknown)")
            let sent = try torpor(daemon, "signal", "USR2", "one@1", "api", "api@1", "--json")
            let json = try JSON.parse(Array(sent.output.utf8)).arrayValue ?? []
            #expect(sent.code == 0 && json.map { $0["app"]?.stringValue } == ["one@1", "api", "api@1"], "\(sent)")
            for app in ["one@1", "api@1", "api@2"] { try daemon.waitForRecord(app, "SIGUSR2") }
            #expect(daemon.records("one@1") == ["up", "SIGUSR2"] && daemon.records("api@1") == ["up", "SIGUSR2"])
            try daemon.done(.stop, "api@2")
            let down = try torpor(daemon, "signal", "USR2", "api@2", "one")
            #expect(down.code == 1 && down.output.contains("api@2 is not running"), "\(down)")
            try daemon.eventually("the other one gets it") {
                daemon.records("one@1") == ["up", "SIGUSR2", "SIGUSR2"]
            }
        }
    }

    @Test("Signal 0 is sent to none, and says whether all of the apps run")
    func noSignal() throws {
        try withApps { daemon in
            try daemon.done(.suspend, "api@2")
            let last = try daemon.lastEvent()
            for apps in [["api"], ["api@2", "one"]] {
                let (code, output) = try Spawn.run(
                    [Built.path("torpor"), "signal", "0"] + apps + ["--socket", daemon.socket]
                )
                #expect(code == 0 && output.isEmpty, "\(output)")
            }
            #expect(try daemon.lastEvent() == last && daemon.summary("api@2").state == "suspended")
            try daemon.done(.stop, "api@2")
            let down = try torpor(daemon, "signal", "0", "api")
            #expect(down.code == 1 && down.output.contains("api@2 is not running"), "\(down)")
            #expect(try torpor(daemon, "signal", "0", "api@1").code == 0)
            #expect(try torpor(daemon, "signal", "0", "two").code == 4)
        }
    }

    @Test("is the app where there is one instance; else a verb about one app says which there are")
    func one() throws {
        try withApps { daemon in
            // As a name of several would be: an array, though there is one.
            let status = try torpor(daemon, "status", "one", "--json")
            let statuses = try JSON.parse(Array(status.output.utf8)).arrayValue ?? []
            #expect(status.code == 0 && statuses.map { $0["name"]?.stringValue } == ["one@1"], "\(status)")
            let mailbox = try torpor(daemon, "mailbox", "one")
            #expect(mailbox.code == 0, "\(mailbox)")
            for words in [["mailbox", "api"], ["snapshot", "api"], ["post", "api", "news"]] {
                let result = try Spawn.run([Built.path("torpor"), "--socket", daemon.socket] + words)
                #expect(result.code == 2, "\(result)")
                #expect(result.output.contains("api has several instances: name one of api@1, api@2"), "\(result)")
            }
            let unknown = try torpor(daemon, "status", "ap")
            #expect(unknown.code == 4 && unknown.output.contains("there is no app ap"), "\(unknown)")
            let group = try torpor(daemon, "stop", "api:api_01")
            #expect(group.code == 4 && group.output.contains("did you mean api@1?"), "\(group)")
        }
    }
}
