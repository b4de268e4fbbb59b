// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("torpor logs of several apps") struct ManyLogsTests {
    private static let toml = """
        [apps.web]
        exec = ["/bin/sh", "-c", "\(Self.wait)"]
        tags = ["shop"]
        [apps.database]
        exec = ["/bin/sh", "-c", "\(Self.wait)"]
        tags = ["shop"]
        [apps.quiet]
        exec = ["/bin/sleep", "1000"]
        log = "null"
        """

    /// Writes each line of a FIFO.
    private static let wait =
        "until [ -p @D/$TORPOR_APP.fifo ]; do sleep 0.01; done; exec 3<>@D/$TORPOR_APP.fifo; while read -r line <&3; do echo $line; done"

    private static func withApps(_ body: (Daemon) throws -> Void) throws {
        try withDaemon(toml) { daemon in
            for app in ["web", "database"] { mkfifo(daemon.directory + "/\(app).fifo", 0o600) }
            // A line's time is when it was read: the next one is written when it stands in the log.
            for (app, text) in [("web", "one"), ("database", "two"), ("web", "three")] {
                try say(text, app, daemon)
                try daemon.eventually("\(text) is in the log of \(app)") {
                    try logs(daemon, app).output.hasSuffix(text + "\n")
                }
            }
            try body(daemon)
        }
    }

    private static func logs(_ daemon: Daemon, _ words: String...) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor"), "logs", "--socket", daemon.socket] + words)
    }

    private static func say(_ text: String, _ app: String, _ daemon: Daemon) throws {
        let (code, output) = try Spawn.run([
            "/bin/bash", "-c", "echo '\(text)' >'\(daemon.directory)/\(app).fifo'",
        ])
        #expect(code == 0, "\(output)")
    }

    @Test("Lines stand in the order of their times, each with its app")
    func past() throws {
        try Self.withApps { daemon in
            let all = try Self.logs(daemon, "tag:shop")
            #expect(all.code == 0)
            #expect(all.output == "web      | one\ndatabase | two\nweb      | three\n")
            #expect(try Self.logs(daemon, "web", "database", "-n", "1").output == "web      | three\n")
            #expect(try Self.logs(daemon, "web", "database", "--grep", "tw").output == "database | two\n")
            let long = try Self.logs(daemon, "web", "--grep", String(repeating: "x", count: 70_000))
            #expect(long.code != 0 && long.output.contains("has at most 65536 bytes"), "\(long.output.suffix(200))")
            let json = try Self.logs(daemon, "web", "database", "-n", "1", "--json").output
            let line = try JSON.parse(Array(json.utf8))
            #expect(line["app"] == "web" && line["text"] == "three")
        }
    }

    @Test("What comes follows as it comes, through a torpord that is replaced")
    func follow() throws {
        try Self.withApps { daemon in
            let client = try Client(daemon, "logs", "-f", "-n", "2", "web", "database")
            try daemon.eventually("what there is was shown") { client.output.contains("web      | three\n") }
            try Self.say("four", "database", daemon)
            try daemon.eventually("the next line comes") { client.output.contains("database | four\n") }
            let before = try SupervisorInfo(json: daemon.call(.describe))
            kill(before.pid, SIGKILL)
            try Self.say("five", "web", daemon)
            try daemon.eventually("the line after that comes") { client.output.contains("web      | five\n") }
            let lines = client.output.split(separator: "\n").filter { $0.contains(" | ") }
            #expect(lines == ["database | two", "web      | three", "database | four", "web      | five"])
        }
    }

    @Test("An app that is added later is followed too if the patterns select it, and again if it returns")
    func added() throws {
        try Self.withApps { daemon in
            let all = try Client(daemon, "logs", "-f")
            let shop = try Client(daemon, "logs", "-f", "tag:shop")
            let named = try Client(daemon, "logs", "-f", "web", "database")
            for client in [all, shop, named] {
                try daemon.eventually("what there is was shown") { client.output.contains("web      | three\n") }
            }
            let chatter = "exec = [\"/bin/sh\", \"-c\", \"echo I am $TORPOR_APP; exec sleep 1000\"]\n"
            let later = "[apps.till]\n" + chatter + "tags = [\"shop\"]\n[apps.other]\n" + chatter
            try daemon.configure(Self.toml + "\n" + later)
            try daemon.apply()
            try daemon.eventually("both are followed") {
                all.output.contains("till     | I am till") && all.output.contains("other    | I am other")
            }
            try daemon.eventually("the one of the shop is") { shop.output.contains("till     | I am till") }
            try daemon.configure(Self.toml)
            try daemon.apply()
            try daemon.eventually("both are gone") { try daemon.list().count == 3 }
            try daemon.configure(Self.toml + "\n" + later)
            try daemon.apply()
            for client in [all, shop] {
                try daemon.eventually("the new one is followed, and the old one's lines are not repeated") {
                    client.lines.filter { $0.hasPrefix("till ") }.count == 2
                }
            }
            try Self.say("end", "web", daemon)
            for client in [all, shop, named] {
                try daemon.eventually("all is shown") { client.output.contains("web      | end\n") }
            }
            #expect(!shop.output.contains("other") && !named.output.contains("till"))
            #expect(all.lines.filter { $0.hasPrefix("till ") }.count == 2, "\(all.output)")
        }
    }

    @Test("What there was is put in order as a whole, also where it comes in many pieces")
    func longPast() throws {
        let exec = """
            exec = ["/bin/bash", "-c", "for n in {1..200}; do printf '%s\\n' {1..50}-$n; done; touch @D/$TORPOR_APP; sleep 1000"]
            """
        let toml = ["a", "b"].map { "[apps.\($0)]\n\(exec)\nlog_max_size = \"100KiB\"\n" }.joined()
        try withDaemon(toml) { daemon in
            for app in ["a", "b"] {
                try daemon.eventually("\(app) has written") { File.exists(daemon.directory + "/" + app) }
                try daemon.eventually("its output is in the log") {
                    try Self.logs(daemon, app, "-n", "1").output == "50-200\n"
                }
            }
            let client = try Client(daemon, "logs", "-f", "-t", "-n", "1000000", "a", "b")
            try daemon.eventually("all was shown") { client.lines.count >= 20_000 }
            let lines = client.lines
            #expect(lines.count == 20_000)
            for app in ["a", "b"] {
                let own = lines.filter { $0.hasPrefix(app + " |") }.map { $0.split(separator: " ").last ?? "" }
                let isWhole = own == (1...200).flatMap { round in (1...50).map { "\($0)-\(round)"[...] } }
                #expect(isWhole, "\(app): \(own.count) lines")
            }
            let times = lines.map { $0.split(separator: " ").dropLast().last ?? "" }
            #expect(times.first?.hasPrefix("20") == true && zip(times, times.dropFirst()).allSatisfy { $0 <= $1 })
        }
    }

    @Test("One whose output is nowhere is told of, and keeps none of the others")
    func nowhere() throws {
        try Self.withApps { daemon in
            let all = try Self.logs(daemon, "*")
            #expect(all.code == 0)
            #expect(all.output.contains("torpor: quiet writes nowhere"), "\(all.output)")
            #expect(all.output.contains("database | two"))
            #expect(try Self.logs(daemon, "quiet", "qui*").code == 1)
            let none = try Self.logs(daemon, "web", "nobody")
            #expect(none.code == 4 && none.output.contains("there is no app nobody"))
        }
    }
}
