// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Testing
import TorporAPI

@Suite("Common command lines of verbs, which skip the argument parser") struct PlainVerbTests {
    private static func torpor(_ daemon: Daemon, _ words: [String]) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
    }

    @Test("do the same as those that it parses")
    func same() throws {
        try withDaemon(Apps.sleeper("a")) { daemon in
            try daemon.waitFor("a", "active")
            let verbs = [
                ("suspend", "suspended"), ("resume", "background"), ("foreground", "active"),
                ("background", "background"), ("stop", "not-running"), ("start", "active"), ("restart", "active"),
            ]
            for (verb, state) in verbs {
                // Only the parser takes an option and its value as one word.
                for options in [["--timeout", "60s"], ["--timeout=60s"]] {
                    let (code, output) = try Self.torpor(daemon, [verb, "a"] + options)
                    #expect(code == 0 && output.contains("a: \(state)"), "\(verb) \(options): \(output)")
                    #expect(try daemon.summary("a").state == state)
                }
            }
            let (code, output) = try Self.torpor(daemon, ["suspend", "a", "--json", "--force"])
            #expect(code == 0 && output.hasPrefix("[") && output.contains("\"suspended\""), "\(output)")
        }
    }

    @Test("leave mistakes to it, and do nothing")
    func mistakes() throws {
        try withDaemon(Apps.sleeper("a")) { daemon in
            try daemon.eventually("it runs") { try daemon.summary("a").state == "active" }
            for words in [
                ["suspend"], ["suspend", ""], ["suspend", "a", "--timeout"], ["suspend", "a", "--timeout", "soon"],
                ["suspend", "a", "--forse"], ["suspend", "a", "--keep-state"], ["stop", "a", "--force"],
                ["start", "a", "--standby", "--background"], ["wait", "a"], ["wait", "a", "--for", "asleep"],
                ["wait", "a", "--for", "active", "--no-wait"], ["reset", "a", "--timeout", "1s"], ["kill"],
                ["signal", "NOSUCH", "a"], ["signal", "HUP"], ["logs", "a", "-n", "many"], ["logs", "a", "-n", "-1"],
                ["events", "a", "b"], ["history", "a", "--since", "soon"], ["post", "a*", "news"],
                ["post", "a", "news", "--urgent", "--no-wake"], ["mailbox", "a", "--take", "--drop", "1"],
            ] {
                let (code, output) = try Self.torpor(daemon, words)
                #expect(code != 0 && !output.isEmpty, "\(words): \(output)")
                #expect(try daemon.summary("a").state == "active")
            }
        }
    }
}
