// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI
import Varlink

extension Daemon {
    @discardableResult
    func set(_ values: [(String, String)], unset: [String] = [], of app: String = "web") throws -> SetSettingsReply {
        var request = SetSettingsRequest(app: app)
        request.values = values.map { .init($0.0, $0.1) }
        request.unset = unset
        return try SetSettingsReply(json: call(.setSettings(request)))
    }

    /// What the app's file says.
    func settingsFile(_ app: String = "web") throws -> JSON {
        try JSON.parse(File.readString(try #require(stateDirectory(app)) + "/settings.json"))
    }

    func stateDirectory(_ app: String) -> String? {
        let found = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
        return found.first { $0.hasSuffix("apps/\(app)/settings.json") }.map { directory + "/" + Path($0).folder }
    }

    private struct Path {
        let folder: String

        init(_ path: String) { folder = path.components(separatedBy: "/").dropLast().joined(separator: "/") }
    }

    /// What the app was told of its settings: the message, and the names, in order.
    func settingsTold(_ app: String = "web") throws -> [String] {
        try heard(app).filter { $0.what == "message" && $0.parameters["topic"] == .string("torpor.settings") }.map {
            let names = $0.parameters["payload"]?["changed"]?.arrayValue?.compactMap(\.stringValue) ?? []
            return "\($0.name ?? "") \(names.joined(separator: " "))"
        }
    }

    func torpor(_ words: [String]) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor")] + words + ["--socket", socket])
    }
}

@Suite("Settings reach apps as a file and one message", .serialized)
struct DeclaredSettingsTests {
    private static let declared = """
        settings_format = "env"
        settings.port = { type = "integer", default = 8000, min = 1, max = 65535, title = "Port" }
        settings.theme = { type = "choice", values = ["light", "dark"], default = "light", writable = true }
        settings.api_key = { type = "secret", identity = true }
        settings.quota = { type = "size", default = "1GiB" }

        """
    private static let head = Delegates.head + declared

    @Test("A thousand changes of an app that sleeps are one message, and it has the last values in its file")
    func thousand() throws {
        try withDaemon(Self.head, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            try daemon.done(.suspend, "web")
            for number in 1...998 { try daemon.set([("port", "\(9_000 + number)")]) }
            try daemon.set([("theme", "dark"), ("quota", "2GiB")])
            // What is as before in the end is left out.
            try daemon.set([], unset: ["quota"])
            let waiting = try daemon.mailbox().mail
            #expect(waiting.count == 1 && waiting.first?.payload == ["changed": ["port", "theme"]])
            #expect(
                try daemon.settingsFile() == ["port": 9998, "theme": "dark", "api_key": .null, "quota": .int(1 << 30)]
            )
            try daemon.done(.resume, "web")
            try daemon.eventually("it is told") { try daemon.settingsTold() == ["settingsDidChange port theme"] }
            try daemon.eventually("nothing waits") { try daemon.mailbox().mail.isEmpty }
            // No other user may list or read what the app keeps there.
            let state = try #require(daemon.stateDirectory("web"))
            #expect(try File.status(state).mode & 0o777 == 0o700)
            #expect(try File.status(#require(File.parent(of: state))).mode & 0o777 == 0o711)
            // There and back again tells nothing.
            try daemon.done(.suspend, "web")
            try daemon.set([("port", "1")])
            try daemon.set([("port", "9998")])
            #expect(try daemon.mailbox().mail.isEmpty)
        }
    }

    @Test("What does not fit changes nothing, a secret is never shown, and the identity comes first")
    func verb() throws {
        try withDaemon(Self.head, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            let wrong = [
                (["port=80", "theme=drak"], "did you mean \"dark\"?"), (["prot=80"], "did you mean port?"),
                (["port=0"], "out of range"), (["port=1", "port=2"], "twice"), (["port"], "is not KEY=VALUE"),
                (["--unset", "nothing"], "has no setting nothing"), (["--file", "/none"], "cannot be read"),
            ]
            for (words, sentence) in wrong {
                let (code, output) = try daemon.torpor(["settings", "web"] + words)
                #expect(code != 0 && output.contains(sentence), "\(words): \(output)")
            }
            #expect(
                try daemon.call(.settings(app: "web"))["settings"]?.arrayValue?.allSatisfy { $0["set"] == false }
                    == true
            )
            try daemon.done(.suspend, "web")
            let secret = "geheimnis-4711"
            try File.write(daemon.directory + "/the-key", secret + "\n")
            let piped = try Spawn.run([
                "/bin/sh", "-c", "\"$0\" settings web port=80 --stdin api_key --socket \"$1\" < \"$2\"",
                Built.path("torpor"), daemon.socket, daemon.directory + "/the-key",
            ])
            #expect(
                piped.code == 0 && piped.output.contains("port, api_key changed; web is told when it wakes"),
                "\(piped)"
            )
            #expect(try daemon.settingsFile()["api_key"] == .string(secret))
            let folder = try #require(daemon.stateDirectory("web"))
            #expect(try File.status(folder + "/settings.json").mode == 0o600)
            let shell = try Spawn.run([
                "/bin/sh", "-c", ". \"$0/settings.env\"; echo \"$port $api_key $quota\"", folder,
            ])
            #expect(shell.output == "80 \(secret) 1073741824\n")
            try daemon.done(.resume, "web")
            try daemon.eventually("it is told") {
                try daemon.settingsTold() == ["identityDidChange api_key", "settingsDidChange port"]
            }
            for words in [
                ["settings", "web"], ["settings", "web", "--json"], ["events"], ["status", "web", "--json"],
            ] {
                let (code, output) = try daemon.torpor(words)
                #expect(code == 0 && !output.contains(secret), "\(words)")
            }
            #expect(try !daemon.events().contains { $0.text.contains(secret) })
            let (_, table) = try daemon.torpor(["settings", "web"])
            #expect(table.contains("KEY") && table.contains("api_key  set") && table.contains("CHANGED"), "\(table)")
        }
    }

    @Test("The app has its settings on its socket, and sets those that are its own to set")
    func ofTheApp() throws {
        try withDaemon(Self.head, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            try daemon.ask("d.call('Settings')", app: "web")
            try daemon.ask("d.call('SetSettings', values={'theme': 'dark'})", app: "web")
            try daemon.ask("d.attempt('SetSettings', values={'port': 81})", app: "web")
            try daemon.eventually("it is answered") { daemon.records("web").contains("SetSettings Failed") }
            #expect(daemon.records("web").contains("Settings ok") && daemon.records("web").contains("SetSettings ok"))
            #expect(try daemon.settingsFile()["theme"] == "dark" && daemon.settingsFile()["port"] == 8000)
            #expect(try daemon.settingsTold().isEmpty, "it knows what it has set")
        }
    }

    @Test("A link that the app puts in the place of its file leads nowhere")
    func links() throws {
        try withDaemon(Self.head, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            let folder = try #require(daemon.stateDirectory("web"))
            try File.write(daemon.directory + "/victim", "mine")
            try File.remove(folder + "/settings.json")
            try File.link(folder + "/settings.json", to: daemon.directory + "/victim")
            try File.link(folder + "/.settings.new", to: daemon.directory + "/victim")
            try daemon.set([("port", "80")])
            #expect(try File.readString(daemon.directory + "/victim") == "mine")
            #expect(try File.status(folder + "/settings.json", followLinks: false).kind == .regular)
            // What cannot be replaced is said, and nothing is lost.
            try File.remove(folder + "/settings.json")
            try File.makeDirectories(folder + "/settings.json/x")
            let (code, output) = try daemon.torpor(["settings", "web", "port=81"])
            #expect(code == 1 && output.contains("cannot be written"), "\(output)")
            try File.removeTree(folder + "/settings.json")
            #expect(try daemon.set([("port", "81")]).changed.isEmpty)
            #expect(try daemon.settingsFile()["port"] == 81)
        }
    }

    private static let server = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "-m", "http.server", "--bind", "127.0.0.1", "{settings.port}"]
        environment.THEME = "{settings.theme}"
        launch = "on-demand"
        ready = { command = ["/bin/sh", "@D/ready"], interval = "20ms" }
        settings.port = { type = "integer", default = @P, restart = true }
        settings.theme = { type = "string" }
        settings.whom = { type = "string" }
        on_failure = ["/bin/true", "{settings.whom}"]

        """

    private func answers(_ port: UInt16) throws -> Bool {
        let script = "import sys, urllib.request as u; u.urlopen('http://127.0.0.1:\(port)/', timeout=60).read()"
        return try Spawn.run(["/usr/bin/python3", "-S", "-c", script]).code == 0
    }

    @Test("A web server that sleeps serves at another port when its setting says so")
    func port() throws {
        let ports = [try TestAddress.port(), try TestAddress.port()]
        let toml = Self.server.replacing("@P", with: "\(ports[0])")
        try withDaemon(toml, files: ["ready": "exit 0\n"]) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            try daemon.eventually("it serves") { try answers(ports[0]) }
            try daemon.done(.suspend, "web")
            let reply = try daemon.set([("port", "\(ports[1])")])
            #expect(reply.message == "web is restarted with it")
            // Nothing would wake it, should it be asleep again before it has opened its port.
            try daemon.done(.foreground, "web")
            try daemon.eventually("it serves elsewhere") { try answers(ports[1]) }
            #expect(try !answers(ports[0]))
            #expect(try daemon.summary("web").lastExit?.reason == "replaced")
            #expect(try daemon.summary("web").incarnation == 2)
            // Without a value the variable is not there; with one, from the next launch on.
            #expect(
                try daemon.set([("theme", "dark")]).message?.contains("theme takes effect at the next launch") == true
            )
            let whom = try daemon.set([("whom", "me@example.org")]).message
            #expect(whom?.contains("whom is for the next command of on_failure") == true, "\(whom ?? "")")
            try daemon.done(.restart, "web")
            let pid = try #require(try daemon.summary("web").pid)
            #expect(try File.readString("/proc/\(pid)/environ").contains("THEME=dark"))
        }
    }

    @Test("A server is looked for at the port that its setting says, and not where that was before")
    func readyAtPort() throws {
        let ports = [try TestAddress.port(), try TestAddress.port()]
        let ready = "{ tcp = \"127.0.0.1:{settings.port}\", interval = \"20ms\" }"
        let toml = Self.server.replacing("{ command = [\"/bin/sh\", \"@D/ready\"], interval = \"20ms\" }", with: ready)
            .replacing("@P", with: "\(ports[0])")
        try withDaemon(toml + "launch_deadline = \"60s\"\n") { daemon in
            try daemon.done(.start, "web")
            #expect(try daemon.status("web").ready == "tcp 127.0.0.1:{settings.port}")
            try daemon.done(.suspend, "web", { $0.force = true })
            #expect(try daemon.set([("port", "\(ports[1])")]).message == "web is restarted with it")
            try daemon.eventually("the next run is ready") {
                let summary = try daemon.summary("web")
                return summary.incarnation == 2 && summary.state != "not-running" && summary.transition == nil
            }
            #expect(try answers(ports[1]) && !answers(ports[0]))
            // What could be no address is not set.
            let (code, output) = try daemon.torpor(["settings", "web", "port=0"])
            #expect(code == 1 && output.contains("would have no address"), "\(output)")
        }
    }

    @Test("Another default is a change as any other, and stands in the commands before and after a run") func defaults()
        throws
    {
        func toml(_ theme: String) -> String {
            """
            \(Self.head.replacingOccurrences(of: "default = \"light\"", with: "default = \"\(theme)\""))
            before_start = [["/bin/sh", "-c", "echo up $0 >> @D/hooks", "{settings.theme}"]]
            after_stop = [["/bin/sh", "-c", "echo down $0 >> @D/hooks", "{settings.theme}"]]

            """
        }
        try withDaemon(toml("light"), files: Delegates.files()) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            try daemon.done(.suspend, "web")
            _ = try daemon.apply(toml("dark"))
            try daemon.eventually("the file has it") { try daemon.settingsFile()["theme"] == "dark" }
            #expect(try daemon.summary("web").state == "suspended", "it wakes nobody")
            try daemon.done(.resume, "web")
            try daemon.eventually("it is told") { try daemon.settingsTold() == ["settingsDidChange theme"] }
            // What was set is not what the default says.
            try daemon.set([("theme", "light")])
            try daemon.eventually("it is told") { try daemon.settingsTold().count == 2 }
            _ = try daemon.apply(toml("light"))
            _ = try daemon.apply(toml("dark"))
            try daemon.done(.stop, "web")
            try daemon.eventually("the commands had the values") {
                (try? File.readString(daemon.directory + "/hooks")) == "up light\ndown light\n"
            }
            #expect(try daemon.settingsTold().count == 2)
            try daemon.set([], unset: ["theme"])
            try daemon.done(.start, "web", { $0.background = true })
            #expect(try File.readString(daemon.directory + "/hooks").hasSuffix("up dark\n"))
        }
    }

    @Test("Values are taken as they are given, or not at all")
    func asGiven() throws {
        try withDaemon(Self.head, files: Delegates.files()) { daemon in
            func attempt(_ words: [String], input: String = "") throws -> (code: Int32, output: String) {
                let line = ([Built.path("torpor"), "settings", "web"] + words + ["--socket", daemon.socket])
                    .map { "'\($0)'" }.joined(separator: " ")
                return try Spawn.run(["/bin/sh", "-c", "printf '\(input)' | \(line)"])
            }
            var failed = try attempt(["--stdin", "api_key"], input: "p\\377q")
            #expect(failed.code == 1 && failed.output.contains("not UTF-8"), "\(failed)")
            failed = try attempt(["--stdin", "api_key"])
            #expect(failed.code == 1 && failed.output.contains("--unset api_key"), "\(failed)")
            failed = try attempt(["theme=dark", "theme=light"])
            #expect(failed.code == 2 && failed.output.contains("theme is named twice"), "\(failed)")
            failed = try attempt(["--stdin", "api_key"], input: "a\\302\\2331m")
            #expect(failed.code == 1 && failed.output.contains("control characters"), "\(failed)")
            #expect(daemon.stateDirectory("web") == nil, "nothing was set, and so there is no file yet")
            #expect(try attempt(["--stdin", "api_key"], input: "k1\\n").code == 0)
            #expect(try daemon.settingsFile()["api_key"] == "k1")
            let word = try Spawn.run([
                "/bin/sh", "-c",
                "\(Built.path("torpor")) settings web quota=$(printf '\\377') --socket \(daemon.socket)",
            ])
            #expect(word.code == 2 && word.output.contains("is not UTF-8"), "\(word)")
        }
    }

    @Test("An app that changes its own settings all the time does not push out what is known of others")
    func ownChanges() throws {
        try withDaemon(Self.head, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            let began = Clock.monotonic()
            for round in 0..<20 {
                try daemon.ask(
                    "d.call('SetSettings', values={'theme': '\(round % 2 == 0 ? "dark" : "light")'})",
                    app: "web"
                )
            }
            try daemon.eventually("all are answered") {
                daemon.records("web").count { $0 == "SetSettings ok" } == 20
            }
            try daemon.set([("theme", "dark")])
            let (_, output) = try daemon.torpor(["history", "web"])
            let lines = output.split(separator: "\n").filter { $0.contains("theme changed") }
            // The app's first one, the person's, and one for each minute that it took.
            let minutes = Int((Clock.monotonic() - began).components.seconds / 60)
            #expect(lines.count >= 2 && lines.count <= 2 + minutes, "\(output)")
        }
    }

    @Test("A socket is bound where its setting says, before and after torpord is replaced or the machine was off")
    func sockets() throws {
        let ports = [try TestAddress.port(), try TestAddress.port()]
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            settings.port = { type = "integer", default = \(ports[0]) }
            [[apps.web.sockets]]
            stream = "127.0.0.1:{settings.port}"

            """
        try withRecovery(toml) { daemon in
            func addresses() throws -> [String] { try daemon.status("web").sockets.map(\.address) }
            try daemon.eventually("it is bound there") { try addresses() == ["127.0.0.1:\(ports[0])"] }
            try daemon.set([("port", "\(ports[1])")])
            try daemon.eventually("it is bound there") { try addresses() == ["127.0.0.1:\(ports[1])"] }
            try daemon.done(.start, "web", { $0.background = true })
            try daemon.lose(.killed)
            try daemon.eventually("it is bound there") { try addresses() == ["127.0.0.1:\(ports[1])"] }
            #expect(try daemon.status("web").sockets.allSatisfy { $0.trouble == nil })
            let (code, output) = try daemon.torpor(["apply", "--diff"])
            #expect(code == 0 && !output.contains("sockets"), "\(output)")
            try daemon.lose(.both)
            try daemon.eventually("it is bound there") { try addresses() == ["127.0.0.1:\(ports[1])"] }
            // An app that runs keeps the socket that it has until its next launch.
            try daemon.set([], unset: ["port"])
            try daemon.eventually("both are bound") {
                try Set(addresses()) == ["127.0.0.1:\(ports[0])", "127.0.0.1:\(ports[1])"]
            }
            try daemon.done(.stop, "web")
            try daemon.eventually("it is at its default again") { try addresses() == ["127.0.0.1:\(ports[0])"] }
            let (refused, why) = try daemon.torpor(["settings", "web", "port=70000"])
            #expect(refused == 1 && why.contains("would have no address"), "\(why)")
        }
    }

    @Test("Whoever is killed at any instant, what was said to be set is set, in the file, and told once")
    func kills() throws {
        let rounds = ProcessInfo.processInfo.environment["TORPOR_SETTINGS_KILLS"].flatMap { Int($0) } ?? 15
        try withRecovery(Self.head, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            var random = SystemRandomNumberGenerator()
            for round in 1...rounds {
                try daemon.done(.suspend, "web")
                let before = try daemon.settingsTold().count
                let wait = useconds_t.random(in: 0...30_000, using: &random)
                let loss = [Loss.killed, .keeper, .both][round % 3]
                let words = ["settings", "web", "port=\(round)", "theme=\(round % 2 == 0 ? "light" : "dark")"]
                let verb = try Client(daemon, words)
                usleep(wait)
                try daemon.lose(loss)
                // The verb goes on with the next torpord, or says that it does not know.
                _ = try verb.finish(daemon)
                try daemon.eventually("torpord has read what it knew") { try daemon.mailbox().mail.count <= 1 }
                let settings = try daemon.call(.settings(app: "web"))["settings"]?.arrayValue ?? []
                let port = settings.first { $0["key"] == "port" }?["value"]
                let theme = settings.first { $0["key"] == "theme" }?["value"]
                let isSet = port == .int(Int64(round))
                #expect(
                    isSet == (theme == .string(round % 2 == 0 ? "light" : "dark")),
                    "\(loss) \(wait): half of it is set"
                )
                try daemon.done(.resume, "web")
                try daemon.eventually("nothing waits (\(loss) \(wait))") { try daemon.mailbox().mail.isEmpty }
                try daemon.eventually("the file has it") { try daemon.settingsFile()["port"] == port }
                let told = try daemon.settingsTold().dropFirst(before)
                #expect(told.count == (isSet ? 1 : 0), "\(loss) \(wait): \(told)")
                if !isSet { try daemon.set([("port", "\(round)"), ("theme", round % 2 == 0 ? "light" : "dark")]) }
                try daemon.eventually("it knows") { try daemon.mailbox().mail.isEmpty }
            }
            #expect(try daemon.summary("web").incarnation == 1)
        }
    }
}
