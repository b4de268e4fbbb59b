// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("torpor logs on a terminal") struct TerminalLogsTests {
    /// A colour; a title; the screen cleared; a device control string; eight-bit control; the other direction; another line.
    private static let program = """
        import tp
        text = "a \\033[31mred\\033[0m b \\033]0;title\\007 c \\033[2J d \\033P1$r0m\\033\\\\ e \\u009b2J f \\u202e g \\u2028 h\\ttab\\r\\n"
        tp.os.write(1, text.encode())
        tp.os.write(1, "last\\n".encode())
        tp.wait()
        """

    private static let toml = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        """

    private static func logs(_ daemon: Daemon, terminal: Bool, environment: [String: String] = [:]) throws -> String {
        let words = [Built.path("torpor"), "logs", "web", "--socket", daemon.socket]
        let command = terminal ? ["/usr/bin/script", "-qec", words.joined(separator: " "), "/dev/null"] : words
        let all = ["TERM": "xterm", "NO_COLOR": ""].merging(environment) { $1 }
        return try Spawn.run(command, environment: all).output
    }

    @Test("Colours are shown, and nothing that changes the terminal, or the order of what is read")
    func shown() throws {
        try withDaemon(Self.toml, files: ["app.py": Self.program]) { daemon in
            try daemon.eventually("all is written") { try Self.logs(daemon, terminal: false).hasSuffix("last\n") }
            let shown = try Self.logs(daemon, terminal: true)
            #expect(shown.contains("a \u{1b}[31mred\u{1b}[0m b "))
            #expect(shown.contains("h\ttab"))
            for scalar in ["\u{7}", "\u{9b}", "\u{202e}", "\u{2028}"] as [Unicode.Scalar] {
                #expect(!shown.unicodeScalars.contains(scalar), "\(scalar.value)")
            }
            let rest = shown.replacingOccurrences(of: "\u{1b}[31m", with: "")
                .replacingOccurrences(of: "\u{1b}[0m", with: "")
            #expect(!rest.contains("\u{1b}"))
            let plain = try Self.logs(daemon, terminal: true, environment: ["NO_COLOR": "1"])
            #expect(!plain.contains("\u{1b}") && plain.contains("a red b "))
        }
    }

    @Test(
        "What an app says of itself changes no terminal either, in status, events and report",
        arguments: [
            ["status", "web"], ["events"], ["report", "web"],
        ]
    )
    func said(_ words: [String]) throws {
        let program = """
            import tp
            tp.notify("STATUS=a \\u061c b \\u202e c \\u2028 d")
            tp.notify("X_\\u202e=a \\u061c b")
            tp.os.write(2, "e \\u202e g\\nh \\u061c i\\n".encode())
            tp.sys.exit(3)
            """
        let toml = Self.toml + "\nrestart = \"never\"\nnotify_access = \"all\"\n"
        try withDaemon(toml, files: ["app.py": program]) { daemon in
            try daemon.eventually("it has ended") { try daemon.summary("web").lastExit != nil }
            let command = ([Built.path("torpor")] + words + ["--socket", daemon.socket]).joined(separator: " ")
            let shown = try Spawn.run(
                ["/usr/bin/script", "-qec", command, "/dev/null"],
                environment: ["TERM": "xterm"]
            ).output
            #expect(shown.contains("web"))
            for scalar in ["\u{61c}", "\u{202e}", "\u{2028}"] as [Unicode.Scalar] {
                #expect(!shown.unicodeScalars.contains(scalar), "\(scalar.value): \(shown)")
            }
        }
    }

    @Test("What goes to a file or another program is as it was written")
    func raw() throws {
        try withDaemon(Self.toml, files: ["app.py": Self.program]) { daemon in
            try daemon.eventually("all is written") { try Self.logs(daemon, terminal: false).hasSuffix("last\n") }
            #expect(try Self.logs(daemon, terminal: false).contains("\u{1b}]0;title\u{7} c \u{1b}[2J d "))
        }
    }
}
