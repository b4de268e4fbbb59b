// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("What torpor prints with --json") struct OutputSchemaTests {
    private static let script = Sources.root + "/scripts/json-schema"

    @Test("has a schema, which is made of the text of the interface")
    func generated() throws {
        let (code, output) = try Spawn.run(["/usr/bin/python3", Self.script, "--check"])
        #expect(code == 0, "\(output)")
    }

    @Test("is there for each verb, and has a schema")
    func complete() throws {
        let text = try File.read(Sources.root + "/config/torpor-output.schema.json", limit: 1 << 24)
        let definitions = try JSON.parse(text)["$defs"]
        for verb in ManualPageTests.verbs where verb != "ls" {
            let isThere = ManualPageTests.options(verb).contains("--json")
            #expect(isThere || ManualPageTests.groups.contains(verb), "torpor \(verb) has no --json")
            if isThere { #expect(definitions?["torpor \(verb)"] != nil, "torpor \(verb) has no schema") }
        }
    }

    @Test("is as the schema says")
    func valid() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "echo hello; exec sleep 1000"]
            timers = [{ name = "often", every = "1h" }]
            topics = { news = "all" }
            url_schemes = ["notes"]
            open_command = ["/bin/true", "%u"]
            snapshot = ["/bin/echo", "this"]
            [apps.crash]
            exec = ["/bin/false"]
            restart = "never"
            """
        let mobile = "path = \"\(Built.path("libMobilePolicy.so"))\"\nmode = \"advise\"\n"
        let files = ["shop/Procfile": "web: sleep 1\n", "shop/ecosystem.config.js": "module.exports = {}\n"]
        try withDaemon(Governed.toml([("mobile", mobile)], apps: toml)) { daemon in
            try FileManager.default.createDirectory(
                atPath: daemon.directory + "/shop",
                withIntermediateDirectories: true
            )
            for (name, text) in files { try File.write(daemon.directory + "/" + name, text) }
            try daemon.waitFor("web", "active")
            try daemon.eventually("crash has a report") { try !daemon.reports("crash").isEmpty }
            try daemon.eventually("web has written") {
                try Spawn.run([Built.path("torpor"), "logs", "web", "--socket", daemon.socket]).output == "hello\n"
            }
            try daemon.done(.suspend, "web")
            // What a policy was asked is recorded until there is something of it.
            let trace = daemon.directory + "/day.trace"
            try daemon.eventually("a policy was asked meanwhile") {
                try? FileManager.default.removeItem(atPath: trace)
                let words = ["events", "--record", trace, "--for", "200ms", "--json", "--socket", daemon.socket]
                let (_, output) = try Spawn.run([Built.path("torpor")] + words)
                return try JSON.parse(output)["rounds"]?.intValue ?? 0 > 0
            }
            try Self.check(["events --record", trace + ".second", "--for", "200ms"], daemon)
            let policy = Built.path("libServerPolicy.so")
            let configuration = daemon.directory + "/torpor.toml"
            for words in [
                ["post", "web", "news", "--no-wake"], ["list"], ["list", "web"], ["status", "web"],
                ["status", "crash"],
                ["status"], ["status", "web", "crash"], ["logs", "web"], ["logs", "*"], ["logs"], ["report"],
                ["memory"], ["memory rehearse"], ["timers"], ["doctor"], ["policy list"], ["policies"],
                ["policy order"], ["policy reload", "mobile"], ["graph"], ["metrics"], ["mailbox", "web"],
                ["unhandled"], ["transfers"], ["transfers --cancel-all", "*"],
                ["snapshot", "web"], ["apply"], ["health"], ["check", configuration], ["history", "web"],
                ["resume", "web"], ["open", "notes:1"], ["open --which", "notes:1"], ["signal", "USR1", "web"],
                ["top", "--once"], ["badge", "web", "3"], ["list"],
                ["background", "web"], ["notify", "web", "Hello", "--id", "hello", "--action", "a=A"], ["alerts"],
                ["alerts --answer", "hello"], ["notify", "web", "Hello", "--id", "hello"],
                ["alerts --cancel", "hello"], ["alerts --all", "*"], ["stop", "web"],
                ["force-quit", "web"],
                ["kill", "web"], ["init", daemon.directory + "/shop"],
                ["import", daemon.directory + "/shop/Procfile"],
                ["policy new", "--c", "quiet-nights", daemon.directory + "/quiet"],
                ["policy check", policy, "--questions", "300", "--deadline", "20s"],
                ["policy simulate", "--trace", trace, "--policy", policy], ["upgrade"],
            ] {
                try Self.check(words, daemon)
            }
            try Self.check(["events", "web"], daemon, isStream: true)
        }
    }

    @Test("is as the schema says for an app's own processes too")
    func validInApp() throws {
        // It has ended once: what it had saved is given back to it.
        let script = """
            #!/bin/bash
            [ "$TORPOR_INCARNATION" != 1 ] || { echo saved | "$1" app state save -; exit 1; }
            run() { "$torpor" --json app "${@:2}" >"@D/out/$1"; }
            torpor=$1
            mkdir @D/out
            run "app task begin" task begin index
            run "app task list" task list
            run "app task time" task time
            run "app task end" task end index
            run "app task run" task run -- sh -c 'echo this is no JSON'
            run "app state restore" state restore @D/copy
            run "app state save" state save @D/copy
            run "app state discard" state discard
            run "app subscribe" subscribe news
            run "app can-open" can-open notes
            run "app notify" notify hello --id hello --after 1h --badge 7
            run "app alerts" alerts
            run "app alerts --cancel" alerts --cancel hello
            run "app alerts --all" alerts --all
            run "app badge" badge 3
            run "app permissions" permissions
            run "app request-permission" request-permission camera
            run "app transfer get" transfer get --no-events http://127.0.0.1:9/a b
            run "app transfer list" transfer list
            id=$(grep -o "[0-9]*" "@D/out/app transfer get" | head -n 1)
            run "app transfer cancel" transfer cancel "$id"
            run "app transfer wait" transfer wait
            "$torpor" --json open notes:1 >"@D/out/open"
            mv @D/out @D/done
            exec sleep 1000
            """
        let toml = """
            [apps.author]
            exec = ["/bin/bash", "@D/author.sh", "\(Built.path("torpor"))"]
            launch = "background"
            restart_backoff = { initial = "10ms" }
            may_open = ["notes"]
            [apps.notes]
            exec = ["/bin/sh", "-c", "sleep 1000", "sh", "%u"]
            url_schemes = ["notes"]
            launch = "on-demand"
            """
        try withDaemon(toml, files: ["author.sh": script]) { daemon in
            let folder = daemon.directory + "/done"
            try daemon.eventually("all has been called") { File.exists(folder) }
            let verbs = try FileManager.default.contentsOfDirectory(atPath: folder)
            #expect(verbs.count == 22)
            for verb in verbs { try Self.validate(verb, folder + "/" + verb) }
            #expect(try File.readString(daemon.directory + "/copy") == "saved\n")
        }
    }

    @Test("is an object on standard error where something fails")
    func errors() throws {
        try withDaemon(Apps.sleeper("a") + "\n" + Apps.sleeper("b") + "\nlaunch = \"on-demand\"\n") { daemon in
            func errors(_ line: String) throws -> (code: Int32, lines: [JSON]) {
                let (code, output) = try Spawn.run(
                    ["/bin/sh", "-c", "\(Built.path("torpor")) \(line) 2>&1 >/dev/null"],
                    environment: ["TORPOR_MANAGER_SOCKET": daemon.socket]
                )
                let file = daemon.directory + "/line"
                let lines = output.split(separator: "\n")
                for line in lines {
                    try File.write(file, String(line))
                    try Self.validate("errors", file)
                }
                return (code, try lines.map { try JSON.parse(String($0)) })
            }
            for (line, status, text) in [
                ("status nope --json", 4, "there is no app nope"), ("--json frobnicate", 2, "there is no verb"),
                ("list --jsn --json", 2, "--jsn"), ("snapshot a --json", 1, "a has no snapshot"),
                ("suspend a nope --json", 4, "there is no app nope"),
                ("list --json --socket \(daemon.directory)/none", 5, "start torpord"),
            ] as [(String, Int64, String)] {
                let (code, lines) = try errors(line)
                #expect(Int64(code) == status && lines.count == 1, "\(line): \(code) \(lines)")
                #expect(lines.first?["exit_status"]?.intValue == status, "\(lines)")
                #expect(lines.first?["level"]?.stringValue == "error", "\(lines)")
                #expect(lines.first?["message"]?.stringValue?.contains(text) == true, "\(lines)")
            }
            // What became of each app is in the document, and in words here.
            let (code, lines) = try errors("wait b --for active --timeout 10ms --json")
            #expect(code == 1 && lines.count == 1 && lines[0]["level"]?.stringValue == "error", "\(lines)")
        }
    }

    private static func check(_ words: [String], _ daemon: Daemon, isStream: Bool = false) throws {
        let verb = words[0].components(separatedBy: " ")
        let options = ManualPageTests.options(verb.filter { !$0.hasPrefix("--") }.joined(separator: " "))
        // A name that help does not show has no options there.
        let hasSocket = options.isEmpty || options.contains("--socket")
        let arguments = verb + words.dropFirst() + ["--json"] + (hasSocket ? ["--socket", daemon.socket] : [])
        let (_, output) = try Spawn.run([Built.path("torpor")] + arguments)
        let isLines = isStream || words[0] == "logs"
        let documents = isLines ? output.split(separator: "\n").map(String.init) : [output]
        #expect(!documents.isEmpty, "\(words)")
        for document in documents.prefix(3) {
            let file = daemon.directory + "/document"
            try document.write(toFile: file, atomically: false, encoding: .utf8)
            try validate(words[0], file)
        }
    }

    private static func validate(_ verb: String, _ file: String) throws {
        let (code, problems) = try Spawn.run(["/usr/bin/python3", script, "--validate", verb, file])
        let text = (try? File.readString(file)) ?? ""
        #expect(code == 0, "torpor \(verb): \(problems)\n\(text.prefix(300))")
    }
}
