// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("The width of what torpor writes") struct WidthTests {
    private static let long = "shop-frontend-of-the-northern-region"

    /// Long names, long commands, sentences, and what fails.
    private static let toml: String = {
        let mobile = "path = \"\(Built.path("libMobilePolicy.so"))\"\nmode = \"advise\"\n"
        let apps = """
            [apps.\(long)]
            exec = ["/bin/sh", "-c", "echo \(String(repeating: "word ", count: 40)); exec sleep 1000"]
            environment = { SOMETHING = "else" }
            topics = { "news-of-the-northern-region" = "all" }
            tags = ["one-tag", "another-tag", "a-third-tag", "a-fourth-tag", "a-fifth-tag", "a-sixth-tag"]
            timers = [
                { name = "every-hour-of-the-day-but-the-first", calendar = "Mon..Fri *-*-* 01..23:00:00" },
            ]
            [apps.crash]
            exec = ["/bin/false"]
            restart_backoff = { initial = "0s", limit = 2 }
            requires = ["\(long)"]
            [apps.third]
            exec = ["/bin/sleep", "1000"]
            """
        return Governed.toml([("mobile-with-a-name-of-some-length", mobile)], apps: apps)
    }()

    private static let verbs = [
        ["list"], ["status"], ["events"], ["history", long], ["report"], ["memory"], ["memory", "rehearse"], ["timers"],
        ["doctor"], ["policy", "list"], ["policy", "order"], ["mailbox", long], ["graph"], ["health"],
        ["check", "@D/torpor.toml"], ["check", "@D/bad.toml"], ["apply", "--diff"], ["hold", long],
        ["force-quit", long],
        ["top", "--once"], ["stop", "nope"], ["status", "--help"], ["policy", "check", "--help"], ["--help"],
    ]

    private static func lines(_ daemon: Daemon, _ verb: [String], columns: Int?) throws -> [String] {
        let words = ([Built.path("torpor")] + verb).map { $0.replacingOccurrences(of: "@D", with: daemon.directory) }
        let line = words.joined(separator: " ")
        let variables = ["TORPOR_MANAGER_SOCKET": daemon.socket, "TZ": "<+0930>-9:30", "TERM": "xterm", "NO_COLOR": ""]
        let command =
            columns.map { ["/usr/bin/script", "-qec", "stty cols \($0) rows 24; \(line)", "/dev/null"] } ?? words
        let output = try Spawn.run(command, environment: variables).output
        return output.replacing(/\u{1b}\[[0-9;]*m/, with: "").split { $0.isNewline || $0 == "\r" }.map(String.init)
    }

    @Test("On a terminal no line is wider than it", arguments: [80, 60])
    func terminal(columns: Int) throws {
        let files = [
            "bad.toml":
                "[apps.a]\nexec = [\"true\"]\nautostart = true\nrestrat = \"always\"\nlaunch_deadline = \"soon\"\n"
        ]
        try withDaemon(Self.toml, files: files) { daemon in
            try daemon.waitFor(Self.long, "active")
            try daemon.eventually("it has failed") { try daemon.summary("crash").failed }
            let torpor = [Built.path("torpor"), "--socket", daemon.socket]
            let payload = "{\"text\":\"\(String(repeating: "x", count: 100))\"}"
            let post = ["post", Self.long, "news-of-the-northern-region", "--no-wake", "--payload", payload]
            #expect(try Spawn.run(torpor + post).code == 0)
            try daemon.done(.suspend, "third")
            // 80 is what counts; with less room numbers and times are still not cut.
            let verbs = columns == 80 ? Self.verbs : [["status"], ["events"], ["report"], ["check", "@D/torpor.toml"]]
            for verb in verbs {
                let lines = try Self.lines(daemon, verb, columns: columns)
                #expect(!lines.isEmpty, "\(verb)")
                for line in lines {
                    #expect(line.count <= columns && !line.allSatisfy(\.isWhitespace), "\(verb): \(line)")
                }
            }
        }
    }

    @Test("Elsewhere than on a terminal lines stay whole")
    func whole() throws {
        try withDaemon(Self.toml) { daemon in
            try daemon.waitFor(Self.long, "active")
            try daemon.eventually("it has failed") { try daemon.summary("crash").failed }
            for verb in [["status", Self.long], ["health"], ["check", "@D/torpor.toml"], ["policy", "list"]] {
                let lines = try Self.lines(daemon, verb, columns: nil)
                #expect(lines.contains { $0.count > 80 }, "\(verb): \(lines)")
            }
        }
    }
}
