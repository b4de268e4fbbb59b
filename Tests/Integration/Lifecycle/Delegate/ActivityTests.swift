// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("What users do in apps is continued in others, and on other machines", .serialized)
struct ActivityTests {
    private static func app(_ name: String, _ keys: String = "activities = [\"org.example.note\"]") -> String {
        """
        [apps.\(name)]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        launch = "on-demand"
        ready = "delegate"
        restart = "never"
        \(keys)

        """
    }

    private static let set = "d.call('SetActivity', type='org.example.note', title='Shopping', payload={'line': 12})"

    private func go(
        _ daemon: Daemon,
        _ type: String = "org.example.note",
        _ change: (inout ContinueActivityRequest) -> Void = { _ in }
    ) throws -> VerbResult {
        var request = ContinueActivityRequest(type: type)
        change(&request)
        let results = try daemon.call(.continueActivity(request))["results"]?.arrayValue ?? []
        return try VerbResult(json: #require(results.first))
    }

    private func refusal(
        _ daemon: Daemon,
        _ type: String = "org.example.note",
        _ change: (inout ContinueActivityRequest) -> Void = { _ in }
    ) throws -> String {
        do {
            let result = try go(daemon, type, change)
            return result.ok ? "" : result.message ?? ""
        } catch VarlinkClientError.service(let name, let parameters) {
            return parameters["message"]?.stringValue ?? parameters["parameter"]?.stringValue ?? name
        }
    }

    /// The messages about activities, with their parameters but those of mail.
    private func told(_ daemon: Daemon, _ app: String) throws -> [String] {
        try daemon.heard(app).filter { $0.what == "message" && $0.name?.contains("ctivity") ?? false }.map { heard in
            let words = ["type", "title", "payload", "url", "source", "reason", "by"].compactMap { name in
                heard.parameters[name].flatMap { $0.isNull ? nil : "\(name) \($0.stringValue ?? "\($0)")" }
            }
            return ([heard.name ?? ""] + words).joined(separator: ", ")
        }
    }

    private func torpor(_ daemon: Daemon, _ words: [String]) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
    }

    @Test(
        "an app in the foreground says it, another one is told and the first learns it; also by a torpord that is new"
    )
    func continued() throws {
        let toml = Self.app("notes", "") + Self.app("editor") + Self.app("viewer") + Self.app("other", "")
        try withRecovery(toml, files: Delegates.files()) { daemon in
            try daemon.done(.foreground, "notes")
            try daemon.ask(Self.set, app: "notes")
            let (code, list) = try torpor(daemon, ["activities"])
            #expect(
                code == 0 && list.contains("notes") && list.contains("org.example.note") && list.contains("Shopping")
            )
            for name in ["viewer", "editor"] {
                try daemon.done(.foreground, name)
                try daemon.done(.background, name)
            }
            let result = try go(daemon)
            #expect(result.ok && result.app == "editor" && result.state == "active", "\(result)")
            #expect(
                try told(daemon, "editor") == [
                    "willContinueActivity, type org.example.note",
                    #"continueActivity, type org.example.note, title Shopping, payload {"line":12}, source notes"#,
                ]
            )
            try daemon.eventually("the source is told") {
                try told(daemon, "notes") == ["activityWasContinued, type org.example.note, by editor"]
            }
            try daemon.lose(.killed)
            let (second, text) = try torpor(daemon, ["continue", "org.example.note", "--to", "viewer"])
            #expect(second == 0 && text.contains("viewer"), "\(text)")
            try daemon.lose(.both)
            let (third, lines) = try torpor(daemon, ["activity", "list", "--json"])
            #expect(third == 0 && !lines.contains("Shopping"), "torpor-keeper holds activities: \(lines)")
        }
    }

    @Test("what cannot be continued is refused with a sentence, and nothing is launched") func refused() throws {
        let toml =
            Self.app("notes") + Self.app("editor")
            + "[apps.plain]\nexec = [\"/bin/sleep\", \"1000\"]\nlaunch = \"on-demand\"\nactivities = [\"org.example.plain\"]\n"
            + Self.app("away", "activities = [\"org.example.away\"]\nowner = \"external\"")
            + Self.app("desk", "activities = [\"org.example.desk\"]\nscenes = { inside = true }")
        let files = Delegates.files("continueActivity='unhandled'")
        try withDaemon(toml, files: files) { daemon in
            try daemon.done(.start, "notes", { $0.background = true })
            #expect(throws: (any Error).self) { try daemon.ask(Self.set, app: "notes") }
            #expect(try refusal(daemon).contains("no app has the activity"))
            try daemon.done(.foreground, "notes")
            try daemon.ask(Self.set, app: "notes")
            #expect(try refusal(daemon, "org.example.note2").contains("org.example.note"))
            #expect(try refusal(daemon) { $0.from = "editor" } == "editor has no activity")
            #expect(try refusal(daemon) { $0.to = "notes" }.contains("name another one"))
            #expect(try refusal(daemon) { $0.to = "plain" }.contains("activities of [apps.plain]"))
            var withState = SetActivityRequest(type: "org.example.note")
            withState.needsState = true
            let sentence = try refusal(daemon) { ($0.given, $0.from, $0.to) = (withState, "editor", "notes") }
            #expect(sentence.contains("so only editor continues it here, not notes"), "\(sentence)")
            #expect(throws: (any Error).self) { try go(daemon, "a b") }
            var given = SetActivityRequest(type: "org.example.plain")
            #expect(try refusal(daemon, "org.example.plain") { $0.given = given }.contains("no delegate"))
            given.payload = ["a": .string(String(repeating: "x", count: 70_000))]
            #expect(throws: (any Error).self) { try go(daemon) { $0.given = given } }
            #expect(try daemon.summary("editor").state == "not-running")
            #expect(try daemon.summary("plain").state == "not-running")
            // What was queued for a request that is refused afterwards does not wait.
            for (app, words) in [("away", "is not owned by this machine"), ("desk", "has no scenes to show")] {
                let type = "org.example.\(app)"
                #expect(try refusal(daemon, type) { $0.given = SetActivityRequest(type: type) }.contains(words))
                #expect(try daemon.mailbox(app).mail.isEmpty)
            }
            // An app that answers that it does not handle it.
            let result = try go(daemon) { $0.given = SetActivityRequest(type: "org.example.note") }
            #expect(!result.ok && result.error == "failed" && result.message?.contains("does not handle") ?? false)
            // A payload that is no object, and too much of it.
            for bad in ["payload=7", "title='a\\nb'", "url='javascript:x'", "payload={'a': 'x' * 70000}"] {
                #expect(throws: (any Error).self) {
                    try daemon.ask("d.call('SetActivity', type='org.example.note', \(bad))", app: "notes")
                }
            }
            try daemon.ask("d.call('EndActivity')", app: "notes")
            #expect(try daemon.call(.activities(app: nil))["activities"]?.arrayValue == [])
        }
    }

    @Test("one that ends before the other app is there does not come, and that app is told so") func ended() throws {
        let toml = Self.app("notes", "") + Self.app("editor")
        try withDaemon(
            toml,
            files: Delegates.files("didFinishLaunching=lambda m: hold(m) if APP == 'editor' else 'done'")
        ) {
            daemon in
            try daemon.done(.foreground, "notes")
            try daemon.ask(Self.set, app: "notes")
            let pid = try Spawn.start(
                [Built.path("torpor"), "activity", "continue", "org.example.note", "--socket", daemon.socket],
                environment: [:],
                output: daemon.directory + "/continue.out"
            )
            func launching() throws -> Int64? {
                try daemon.heard("editor").last { $0.what == "message" && $0.name == "didFinishLaunching" }?.id
            }
            try daemon.eventually("the editor is being launched") { try launching() != nil }
            try daemon.ask("d.call('EndActivity')", app: "notes")
            let id = try #require(try launching())
            try daemon.ask("d.answer(\(id))", app: "editor")
            var status: Int32 = 0
            waitpid(pid, &status, 0)
            #expect(status != 0)
            #expect(try File.readString(daemon.directory + "/continue.out").contains("notes has ended it"))
            try daemon.eventually("the editor is told") {
                try told(daemon, "editor") == [
                    "willContinueActivity, type org.example.note",
                    "didFailToContinueActivity, type org.example.note, reason notes has ended it",
                ]
            }
        }
    }

    @Test("by a pipe, with the state: the app of the other supervisor comes up where this one was, kills in between")
    func moved() throws {
        let toml = Self.app("notes")
        let files = Delegates.files(Delegates.restoring)
        try withRecovery(toml, files: files) { here in
            try withRecovery(toml, files: files) { there in
                try here.done(.foreground, "notes")
                try here.ask(Self.set, app: "notes")
                let (code, text) = try torpor(here, ["activity", "export", "notes", "--with-state", "-o", "/dev/null"])
                #expect(code == 1 && text.contains("has saved no state"), "\(text)")
                try here.plantState("milk and eggs", of: "notes")
                try here.lose(.killed)
                let tool = Built.path("torpor")
                func move(_ options: String = "") throws -> (code: Int32, output: String) {
                    try Spawn.run([
                        "/bin/sh", "-c",
                        "\(tool) activity export notes --with-state --socket \(here.socket) "
                            + "| \(tool) activity continue - \(options) --socket \(there.socket)",
                    ])
                }
                let moved = try move()
                #expect(moved.code == 0, "\(moved.output)")
                let heard = try there.heard("notes").filter { $0.what == "message" }.compactMap(\.name)
                let order = heard.filter { ["restoreState", "willContinueActivity", "continueActivity"].contains($0) }
                #expect(order == ["restoreState", "willContinueActivity", "continueActivity"], "\(heard)")
                #expect(try told(there, "notes").last?.contains("Shopping") ?? false)
                #expect(try there.recorded("notes").contains("restored milk and eggs"))
                // The app runs there now: its state is not replaced, and nothing is told.
                let again = try move()
                #expect(again.code == 1 && again.output.contains("runs"), "\(again.output)")
                try there.lose(.killed)
                #expect(try told(there, "notes").count == 2)
            }
        }
    }

    @Test("documents that are damaged, too large, of an unknown type or for an app that is not there launch nothing")
    func documents() throws {
        let toml = Self.app("notes", "activities = [\"org.example.other\"]")
        try withDaemon(Self.app("notes"), files: Delegates.files()) { here in
            try here.done(.foreground, "notes")
            try here.ask(Self.set, app: "notes")
            try here.plantState("milk", of: "notes")
            let file = here.directory + "/notes.activity"
            #expect(try torpor(here, ["activity", "export", "notes", "-o", file]).code == 0)
            let plain = try File.read(file, limit: 1 << 24)
            #expect(try torpor(here, ["activity", "export", "notes", "--with-state", "-o", file, "--json"]).code == 0)
            let whole = try File.read(file, limit: 1 << 24)
            try withDaemon(toml + Self.app("editor", ""), files: Delegates.files()) { there in
                func give(_ bytes: [UInt8]) throws -> (code: Int32, output: String) {
                    try File.replace(file, bytes)
                    return try Spawn.run([
                        "/bin/sh", "-c",
                        "\(Built.path("torpor")) activity continue - --socket \(there.socket) <\(file)",
                    ])
                }
                for (bytes, words) in [
                    ([], "no exported activity"), ([10], "no exported activity"),
                    (Array(whole.dropLast(1)), "cut off"), (Array(whole.dropLast(80)), "cut off"),
                    (whole.map { $0 == UInt8(ascii: "k") ? UInt8(ascii: "K") : $0 }, "damaged"),
                    (whole + [10], "cut off"),
                    (Array(repeating: 10, count: 18 << 20), "MiB"),
                    (plain, "no app continues"), (whole, "no app of that name"),
                ] as [([UInt8], String)] {
                    let (code, text) = try give(bytes)
                    #expect(code != 0 && text.contains(words), "\(words): \(text)")
                }
                #expect(try there.summary("notes").state == "not-running")
                #expect(try there.summary("editor").state == "not-running")
                try there.apply(Self.app("notes"))
                let (code, text) = try give(plain)
                #expect(code == 0, "\(text)")
                #expect(try told(there, "notes").count == 2)
            }
        }
    }
}

extension Daemon {
    /// The state is that of an app that has saved it, and gets it back at its next launch.
    fileprivate func plantState(_ text: String, of app: String) throws {
        let data = Base64.encode(Array(text.utf8))
        try ask("d.call('SaveState', data='\(data)')", app: app)
    }

    fileprivate func recorded(_ app: String) throws -> String {
        try String(contentsOfFile: directory + "/rec." + app, encoding: .utf8)
    }
}
