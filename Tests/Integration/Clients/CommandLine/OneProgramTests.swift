// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("What scripts, people and apps call often is one program") struct OneProgramTests {
    private static let toml = """
        [apps.a]
        exec = ["/bin/sh", "-c", "echo one; exec sleep 1000"]
        topics = { news = "all" }
        accepts_from = ["script"]

        [apps.script]
        exec = ["/bin/sh", "@D/script.sh"]
        launch = "on-demand"
        environment = { TORPOR = "@D/alone/torpor" }

        [apps.told]
        exec = ["/bin/sh", "@D/told.sh"]
        ready = "delegate"
        launch = "on-demand"
        """

    private static let told = """
        exec @D/alone/torpor app delegate --on 'didFinishLaunching=echo told >>@D/rec.told' -- /bin/sleep 1000
        """

    /// What an app's script calls; each verb is followed by its exit status.
    private static let script = """
        run() { "$TORPOR" "$@" >>@D/said 2>&1; echo "$? $*" >>@D/statuses; }
        run app task begin index
        run app task list --json
        run app task time
        run app task end index
        run app task run --name copy --stop-before 1s -- /bin/true
        run app state save @D/script.sh --json
        run app state restore @D/restored
        run app state discard
        run post a news --payload '[1]' --no-wake
        run mailbox --take
        run app badge 1
        echo done >>@D/statuses
        exec sleep 1000
        """

    /// A copy of torpor without the programs that belong to it: what it does, it does itself.
    private static func alone(_ daemon: Daemon) throws -> String {
        let folder = daemon.directory + "/alone"
        try File.makeDirectories(folder)
        try copyProgram(Built.path("torpor"), to: folder + "/torpor")
        // A release build loads this from the folder where it is.
        symlink(Built.path("libtorpor-swift.so"), folder + "/libtorpor-swift.so")
        return folder + "/torpor"
    }

    @Test("so torpor-verbs is not needed for it")
    func verbs() throws {
        try withDaemon(Self.toml) { daemon in
            let torpor = try Self.alone(daemon)
            func run(_ words: [String]) throws -> (code: Int32, output: String) {
                try Spawn.run([torpor] + words + ["--socket", daemon.socket])
            }
            let lines: [[String]] = [
                ["list"], ["status", "a", "--utc"], ["wait", "a", "--for", "active", "--timeout", "60s"],
                ["health", "a", "--timeout", "60s"], ["logs", "a", "-n", "5", "-t", "--utc"],
                ["logs", "a", "--since", "1h", "--grep", "one"], ["events", "a", "-n5"],
                ["history", "a", "--since", "1h"], ["signal", "WINCH", "a"],
                ["post", "a", "news", "--payload", "{}", "--no-wake"], ["mailbox", "a"], ["stop", "a"],
                ["reset", "a"], ["start", "a"], ["force-quit", "a", "--timeout", "60s"],
            ]
            for words in lines {
                let (code, output) = try run(words)
                #expect(code == 0, "\(words): \(output)")
            }
            let (code, output) = try run(["memory"])
            #expect(code == 1 && output.contains("torpor-verbs is neither"), "\(output)")
        }
    }

    @Test("in an app too")
    func app() throws {
        let files = ["script.sh": Self.script, "told.sh": Self.told]
        try withDaemon(Self.toml, files: files) { daemon in
            let torpor = try Self.alone(daemon)
            try daemon.done(.start, "script")
            let path = daemon.directory + "/statuses"
            func statuses() -> [String] {
                ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
            }
            try daemon.eventually("the script is through") { statuses().last == "done" }
            let said = try String(contentsOfFile: daemon.directory + "/said", encoding: .utf8)
            // There is no state to restore, and ‘app badge’ is not called often.
            let wanted = ["0", "0", "0", "0", "0", "0", "3", "0", "0", "0", "1"]
            let found = statuses().dropLast().map { String($0.prefix { $0 != " " }) }
            #expect(found == wanted, "\(statuses()): \(said)")

            try daemon.done(.start, "told")
            #expect(daemon.records("told") == ["told"])
            let pid = try #require(try daemon.summary("told").pid)
            #expect(try File.readLink("/proc/\(pid)/exe") == torpor)
        }
    }

    @Test("and says the same as with the argument parser")
    func same() throws {
        try withDaemon(Self.toml) { daemon in
            func run(_ words: [String]) throws -> (code: Int32, output: String) {
                try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
            }
            try daemon.waitFor("a", "active")
            try daemon.eventually("its output is in the log") { try run(["logs", "a"]).output == "one\n" }
            // Only the parser takes an option and its value as one word.
            let pairs: [(plain: [String], parsed: [String])] = [
                (["logs", "a", "-n", "1"], ["logs", "a", "--lines=1"]),
                (["logs", "-t", "--utc", "--grep", "n"], ["logs", "-t", "--utc", "--grep=n"]),
                (["logs", "a", "--json", "--since", "1h"], ["logs", "a", "--json", "--since=1h"]),
                (["events", "a", "-n4"], ["events", "a", "--lines=4"]),
                (["events", "a", "--json", "-n", "4"], ["events", "a", "--json", "--lines=4"]),
                (["history", "a", "-n", "4"], ["history", "a", "--lines=4"]),
                (["history", "a", "--json", "--since", "1h"], ["history", "a", "--json", "--since=1h"]),
                (["wait", "a", "--for", "active"], ["wait", "a", "--for=active"]),
                (["post", "a", "news", "--coalesce", "latest"], ["post", "a", "news", "--coalesce=latest"]),
                (["mailbox", "a", "--drop", "1000000"], ["mailbox", "a", "--drop=1000000"]),
            ]
            // It says how long it waited, which is never the same.
            for words in [["--for", "suspended", "--timeout", "10ms"], ["--for=suspended", "--timeout=10ms"]] {
                let late = try run(["wait", "a"] + words)
                #expect(late.code != 0 && late.output.hasPrefix("torpor: a is still active after "), "\(late)")
            }
            for (plain, parsed) in pairs {
                let (one, other) = (try run(plain), try run(parsed))
                #expect(one.code == other.code && one.output == other.output, "\(plain): \(one), \(other)")
            }
        }
    }
}
