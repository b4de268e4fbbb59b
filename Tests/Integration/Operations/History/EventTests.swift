// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Events over restarts") struct EventTests {
    static let toml = """
        [apps.web]
        exec = ["/bin/sleep", "1000"]
        [apps.db]
        exec = ["/bin/sleep", "1000"]
        """

    /// Runs the command line.
    private func torpor(_ daemon: Daemon, _ words: String...) throws -> String {
        let (code, output) = try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
        #expect(code == 0, "\(words): \(output)")
        return output
    }

    @Test("history and events --since tell of earlier runs of torpord, in order and once")
    func history() throws {
        let daemon = try Daemon(Self.toml)
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        try daemon.waitFor("db", "active")
        try daemon.done(.suspend, "web")
        try daemon.stop()
        let between = Clock.realtimeMicroseconds()
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "suspended")
        try daemon.done(.foreground, "web")

        let json = try JSON.parse(try torpor(daemon, "history", "web", "--json"))
        let events = try (json.arrayValue ?? []).map { try EventRecord(json: $0) }
        #expect(events.allSatisfy { $0.app == "web" })
        #expect(zip(events, events.dropFirst()).allSatisfy { $0.sequence < $1.sequence })
        let states = events.filter { $0.kind == "state" }.compactMap(\.to)
        #expect(
            states == [
                "inactive", "active", "inactive", "background", "suspended", "background", "not-running", "background",
                "suspended", "background", "inactive", "active",
            ]
        )
        #expect(Set(events.compactMap(\.incarnation)).isSuperset(of: [1, 2]))
        let asked = events.filter { $0.kind == "request" }
        #expect(asked.map(\.text) == ["is asked to suspend", "is asked to go to the foreground"])
        #expect(asked.allSatisfy { $0.reason == (Users.isRoot ? "root" : "uid \(Users.effectiveUID)") })
        // Only what was before torpord was started again, and only since then.
        #expect(try torpor(daemon, "history", "web", "--until", stamp(between)).contains("run 2") == false)
        let later = try torpor(daemon, "history", "web", "--since", stamp(between))
        #expect(later.contains("run 2") && !later.contains("is terminating"))
        #expect(try torpor(daemon, "history", "web", "-n", "2").split(separator: "\n").count == 2)
        let all = try torpor(daemon, "events", "--since", "2 hours ago").split(separator: "\n")
        #expect(all.count { $0.contains("supervises 2 apps") } == 2)
        // An app that is no more still has its history; one that never was has none.
        _ = try Daemon.writeConfiguration("[apps.web]\nexec = [\"/bin/sleep\", \"1000\"]", in: daemon.directory)
        _ = try torpor(daemon, "apply")
        try daemon.eventually("db is gone") { try daemon.list().map(\.name) == ["web"] }
        #expect(try torpor(daemon, "history", "db").contains("was removed from the configuration"))
        #expect(throws: (any Error).self) { try daemon.events("dc") }
        #expect(try torpor(daemon, "events", "--since", "boot").split(separator: "\n").count >= all.count)
        try daemon.stop()
    }

    private func stamp(_ microseconds: Int64) -> String { TimeStamp.string(microseconds: microseconds) }

    @Test("who follows from a time in the past gets every event once: those stored and those to come")
    func follow() throws {
        let daemon = try Daemon(Self.toml)
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        // Several pages of the store.
        for _ in 0..<300 {
            try daemon.done(.interrupt, "web")
            try daemon.done(.interrupt, "web") { $0.end = true }
        }
        try daemon.stop()
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("db", "active")

        let output = daemon.directory + "/followed"
        let follower = try Spawn.start(
            [Built.path("torpor"), "events", "-f", "--json", "--since", "1h", "--socket", daemon.socket],
            environment: [:],
            output: output
        )
        defer {
            kill(follower, SIGKILL)
            waitpid(follower, nil, 0)
        }
        func followed() throws -> [Int64] {
            let text = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
            return text.split(separator: "\n").compactMap { try? JSON.parse(String($0))["sequence"]?.intValue }
        }
        // Events go on while the pages are read.
        for _ in 0..<30 {
            try daemon.done(.interrupt, "db")
            try daemon.done(.interrupt, "db") { $0.end = true }
        }
        // Also over a torpord that is replaced.
        let old = try daemon.torpord()
        kill(old, SIGKILL)
        try daemon.eventually("another torpord answers") {
            (try? daemon.torpord()).map { $0 != old } ?? false && (try? daemon.list()) != nil
        }
        for _ in 0..<30 {
            try daemon.done(.interrupt, "db")
            try daemon.done(.interrupt, "db") { $0.end = true }
        }
        let all = try daemon.events().map(\.sequence)
        #expect(all.count > 600)
        try daemon.eventually("the follower has them all") { try followed().last == all.last }
        let seen = try followed()
        #expect(Set(seen).count == seen.count && seen == seen.sorted(), "none twice, all in order")
        // What the killed one had said in its last milliseconds, too: the journal has it.
        #expect(seen == all, "none left out, none forgotten")
        try daemon.stop()
    }

    @Test("An ending is told once, whoever takes over later")
    func once() throws {
        let toml = """
            [apps.short]
            exec = ["/bin/sh", "-c", "exit 0"]
            [apps.failed]
            exec = ["/bin/sh", "-c", "exit 1"]
            restart = "never"
            """
        try withDaemon(toml) { daemon throws in
            for app in ["short", "failed"] { try daemon.waitForEvent(app, "exited with status") }
            for _ in 0..<2 {
                let before = try daemon.torpord()
                kill(before, SIGKILL)
                try daemon.eventually("another torpord answers") {
                    ((try? daemon.torpord()) ?? before) != before && (try? daemon.list()) != nil
                }
            }
            for app in ["short", "failed"] {
                let exits = try daemon.events(app).filter { $0.kind == "exit" }
                #expect(exits.count == 1, "\(exits.map(\.text))")
            }
        }
    }
}
