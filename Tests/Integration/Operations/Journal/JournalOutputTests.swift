// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// What the command line makes of a journal; the journalctl that it runs says what the test has written down.
@Suite("Output that is in the journal") struct JournalOutputTests {
    private static let journalctl = """
        #!/bin/sh
        echo "$@" >> @D/asked
        case "$*" in
        *--reverse*) exec cat @D/backwards ;;
        *--follow*) cat @D/later; exec sleep 1000 ;;
        *) exec cat @D/forwards ;;
        esac
        """

    private static let toml = """
        [apps.web]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"
        log = "journal"
        """

    private static func entry(_ number: Int, _ text: String, _ more: String = "") -> String {
        #"{"__CURSOR":"c\#(number)","__REALTIME_TIMESTAMP":"\#(1_769_860_800_000_000 + number)","MESSAGE":\#(text)\#(more)}"#
            + "\n"
    }

    /// Eight entries: two of another supervisor's app of that name, one of another user, one with bytes, one of a process
    /// that was gone.
    private static let entries = [
        entry(1, #""one""#, #","_SYSTEMD_UNIT":"session-3.scope""#),
        entry(2, #""foreign""#, #","_SYSTEMD_UNIT":"torpor-apps-other.scope""#),
        entry(3, #""foreign""#, #","_SYSTEMD_UNIT":"session-9.scope","_SYSTEMD_OWNER_UID":"4711","_UID":"4711""#),
        entry(3, #""two""#),
        entry(4, "[27,91,51,49,109,114,101,100,255]"),
        entry(5, #""foreign""#, #","_SYSTEMD_UNIT":"user@7.service","_SYSTEMD_USER_UNIT":"torpord.service""#),
        entry(6, #""four\ttabs""#),
        entry(7, #""three \u00e9""#),
    ]

    private typealias Run = ([String]) throws -> (code: Int32, output: String)

    private func withJournalctl(_ body: (Daemon, Run) throws -> Void) throws {
        let files = [
            "journalctl": Self.journalctl, "backwards": Self.entries.reversed().joined(),
            "forwards": Self.entries.joined(), "later": Self.entry(8, #""later""#) + Self.entry(9, #""latest""#),
        ]
        try withDaemon(Self.toml, files: files) { daemon throws in
            try body(daemon) { words in
                try Spawn.run(
                    [Built.path("torpor")] + words + ["--socket", daemon.socket],
                    environment: ["PATH": daemon.directory + ":/usr/bin:/bin"]
                )
            }
        }
    }

    private func asked(_ daemon: Daemon) -> String {
        (try? String(contentsOfFile: daemon.directory + "/asked", encoding: .utf8)) ?? ""
    }

    @Test("The last lines are those of the app itself, the oldest first, as a file's are shown")
    func last() throws {
        try withJournalctl { daemon, run throws in
            let all = try run(["logs", "web"])
            #expect(all.code == 0)
            #expect(all.output == "one\ntwo\n\u{1b}[31mred\u{fffd}\nfour\ttabs\nthree é\n")
            #expect(asked(daemon).contains("--reverse _TRANSPORT=stdout SYSLOG_IDENTIFIER=web"))
            #expect(try run(["logs", "web", "-n", "2"]).output == "four\ttabs\nthree é\n")
            #expect(try run(["logs", "web", "-n", "0"]).output.isEmpty)
            #expect(try run(["logs", "web", "--grep", "w"]).output == "two\n")
            #expect(try run(["logs", "web", "-n", "1", "-t"]).output == "2026-01-31T12:00:00.000Z three é\n")
            let json = try run(["logs", "web", "-n", "1", "--json"])
            let line = try LogLine(json: try JSON.parse(json.output))
            #expect(line == LogLine(at: 1_769_860_800_000_007, text: "three é"))
        }
    }

    @Test("Lines since a time are asked of the journal by it, and chosen to the microsecond")
    func since() throws {
        try withJournalctl { daemon, run throws in
            let some = try run(["logs", "web", "--since", "2026-01-31T12:00:00.000004"]).output
            #expect(some == "\u{1b}[31mred\u{fffd}\nfour\ttabs\nthree é\n")
            #expect(asked(daemon).contains("--since=@1769860800 "))
            #expect(!asked(daemon).contains("--reverse"))
            #expect(try run(["logs", "web", "--since", "2026-01-31", "-n", "1"]).output == "three é\n")
        }
    }

    @Test("Following goes on behind the last line shown")
    func follow() throws {
        try withJournalctl { daemon, _ in
            let file = daemon.directory + "/followed"
            let pid = try Spawn.start(
                [Built.path("torpor"), "logs", "web", "-f", "-n", "1", "--socket", daemon.socket],
                environment: ["PATH": daemon.directory + ":/usr/bin:/bin", "TPTEST": daemon.directory],
                output: file
            )
            try daemon.eventually("what is new is shown") {
                (try? String(contentsOfFile: file, encoding: .utf8)) == "three é\nlater\nlatest\n"
            }
            #expect(asked(daemon).contains("--follow --no-tail --after-cursor=c7 "))
            killpg(pid, SIGTERM)
            var status: Int32 = 0
            waitpid(pid, &status, 0)
        }
    }

    @Test("Status and reports have the last lines too")
    func status() throws {
        try withJournalctl { daemon, run throws in
            let text = try run(["status", "web"]).output
            #expect(text.contains("last output:\n  one\n  two\n"), "\(text)")
            #expect(text.contains("  three é\n") && !text.contains("foreign"), "\(text)")
            let json = try JSON.parse(try run(["status", "web", "--json"]).output)
            let status = try AppStatus(json: json)
            #expect(status.log.map(\.text).last == "three é")
        }
    }

    @Test("Where it cannot be read it is said where it is")
    func unreadable() throws {
        try withJournalctl { daemon, run throws in
            try Spawn.lock.withLock {
                try File.write(daemon.directory + "/journalctl", "#!/bin/sh\necho no files >&2\nexit 1\n", mode: 0o755)
            }
            let failed = try run(["logs", "web"])
            #expect(failed.code == 1)
            #expect(failed.output.contains("no files\n") && failed.output.contains("‘journalctl -t web’"))
            #expect(try run(["status", "web"]).output.contains("output: in the journal (‘journalctl -t web’)\n"))
            let nowhere = try Spawn.run(
                [Built.path("torpor"), "logs", "web", "--socket", daemon.socket],
                environment: ["PATH": "/nonexistent"]
            )
            #expect(nowhere.code == 1)
            #expect(nowhere.output.contains("journalctl, which reads it, is not on the PATH"), "\(nowhere.output)")
        }
    }
}
