import DaemonHarness
import Foundation
import Testing
import TorporAPI

@Suite("What torpor prints with --json") struct OutputSchemaTests {
    private static let script = Sources.root + "/scripts/json-schema"

    @Test("has a schema, which is made of the text of the interface")
    func generated() throws {
        let (code, output) = try Spawn.run(["/usr/bin/python3", Self.script, "--check"])
        #expect(code == 0, "\(output)")
    }

    @Test("is as the schema says")
    func valid() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "echo hello; exec sleep 1000"]
            timers = [{ name = "often", every = "1h" }]
            topics = { news = "all" }
            snapshot = ["/bin/echo", "this"]
            [apps.crash]
            exec = ["/bin/false"]
            restart = "never"
            """
        try withDaemon(toml) { daemon in
            try daemon.waitFor("web", "active")
            try daemon.eventually("crash has a report") { try !daemon.reports("crash").isEmpty }
            try daemon.eventually("web has written") {
                try Spawn.run([Built.path("torpor"), "logs", "web", "--socket", daemon.socket]).output == "hello\n"
            }
            try daemon.done(.suspend, "web")
            let configuration = daemon.directory + "/torpor.toml"
            for words in [
                ["post", "web", "news", "--no-wake"], ["list"], ["status", "web"], ["status", "crash"],
                ["logs", "web"], ["logs", "*"], ["report"], ["memory"], ["memory rehearse"], ["timers"], ["doctor"],
                ["policies"], ["graph"], ["metrics"], ["mailbox", "web"], ["snapshot", "web"], ["apply"], ["health"],
                ["check", configuration], ["history", "web"], ["resume", "web"], ["signal", "USR1", "web"],
                ["stop", "web"],
            ] {
                try Self.check(words, daemon)
            }
            try Self.check(["events", "web"], daemon, isStream: true)
        }
    }

    private static func check(_ words: [String], _ daemon: Daemon, isStream: Bool = false) throws {
        let verb = words[0].components(separatedBy: " ")
        let socket = words[0] == "check" ? [] : ["--socket", daemon.socket]
        let (_, output) = try Spawn.run([Built.path("torpor")] + verb + words.dropFirst() + ["--json"] + socket)
        let isLines = isStream || words[0] == "logs"
        let documents = isLines ? output.split(separator: "\n").map(String.init) : [output]
        #expect(!documents.isEmpty, "\(words)")
        for document in documents.prefix(3) {
            let file = daemon.directory + "/document"
            try document.write(toFile: file, atomically: false, encoding: .utf8)
            let (code, problems) = try Spawn.run(["/usr/bin/python3", script, "--validate", words[0], file])
            #expect(code == 0, "torpor \(words.joined(separator: " ")): \(problems)\n\(document.prefix(300))")
        }
    }
}
