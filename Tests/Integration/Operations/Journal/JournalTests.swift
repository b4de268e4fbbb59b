// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("A daemon with a journal", .enabled(if: ScriptedJournal.isPossible))
struct JournalTests {
    /// Runs a scenario with a daemon that logs to a scripted journal.
    private func withJournal(
        _ toml: String,
        files: [String: String] = [:],
        hasSockets: Bool = true,
        reads: Bool = true,
        at location: SourceLocation = #_sourceLocation,
        _ body: (Daemon, ScriptedJournal) throws -> Void
    ) throws {
        let journal = try ScriptedJournal(hasSockets: hasSockets, reads: reads)
        defer { journal.close() }
        let daemon = try Daemon(toml, files: files, program: journal.program)
        try daemon.waitUntilItAnswers(at: location)
        try body(daemon, journal)
        try daemon.stop(at: location)
    }

    @Test("tells it in fields what happens to an app: launched, states, who asked, and how it ended")
    func life() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            """
        try withJournal(toml) { daemon, journal in
            try daemon.waitFor("web", "active")
            let pid = try #require(try daemon.summary("web").pid)
            // Read before more is told: there is room for ten entries.
            _ = journal.all
            try daemon.done(.suspend, "web")
            _ = journal.all
            try daemon.done(.stop, "web")
            try daemon.eventually("the end is told") {
                journal.entries(of: "web").contains { $0["TORPOR_EVENT"] == "exit" }
            }
            let entries = journal.entries(of: "web")
            let launch = try #require(entries.first { $0["TORPOR_EVENT"] == "launch" })
            #expect(launch["MESSAGE"] == "web: launched as process \(pid)")
            #expect(launch["PRIORITY"] == "6" && launch["SYSLOG_IDENTIFIER"] == "torpord")
            #expect(launch["TORPOR_INCARNATION"] == "1" && launch["TORPOR_REASON"] == "boot")
            #expect(launch["OBJECT_PID"] == "\(pid)")
            let states = entries.filter { $0["TORPOR_EVENT"] == "state" && $0["PRIORITY"] == "6" }
            #expect(states.map { $0["TORPOR_STATE"] } == ["active", "suspended"])
            #expect(states.last?["TORPOR_PREVIOUS_STATE"] == "background")
            // What it only passed through is for those who look closely.
            let passed = entries.filter { $0["TORPOR_EVENT"] == "state" && $0["PRIORITY"] == "7" }
            let names = ["inactive", "inactive", "background", "background", "not-running"]
            #expect(passed.map { $0["TORPOR_STATE"] } == names)
            let asked = entries.filter { $0["TORPOR_EVENT"] == "request" }
            #expect(asked.map { $0["MESSAGE"] } == ["web is asked to suspend", "web is asked to stop"])
            let exit = try #require(entries.last { $0["TORPOR_EVENT"] == "exit" })
            #expect(exit["PRIORITY"] == "6" && exit["TORPOR_REASON"] == "stopped")
            #expect(exit["EXIT_CODE"] == "killed" && exit["EXIT_STATUS"] == "15" && exit["TORPOR_NEXT"] == "rest")
            #expect(exit["TORPOR_STATE"] == "not-running")
            // The event log has the same sentences.
            for event in try daemon.events("web") where event.kind == "exit" {
                #expect(exit["MESSAGE"] == "web \(event.text)")
            }
        }
    }

    @Test("tells failures, planned restarts and giving up with priorities and ids of their own")
    func failures() throws {
        let toml = """
            [apps.bad]
            exec = ["/bin/sh", "-c", "exit 3"]
            restart_backoff = { initial = "50ms", cap = "50ms", limit = 2 }
            """
        try withJournal(toml) { daemon, journal in
            try daemon.eventually("it is given up") {
                journal.entries(of: "bad").contains { $0["TORPOR_NEXT"] == "give-up" }
            }
            let exits = journal.entries(of: "bad").filter { $0["TORPOR_EVENT"] == "exit" }
            #expect(exits.map { $0["TORPOR_NEXT"] } == ["restart", "restart", "give-up"])
            #expect(exits.map { $0["PRIORITY"] } == ["4", "4", "3"])
            #expect(exits.allSatisfy { $0["EXIT_CODE"] == "exited" && $0["EXIT_STATUS"] == "3" })
            #expect(exits.allSatisfy { $0["TORPOR_REASON"] == "exit-failure" })
            let ids = exits.compactMap { $0["MESSAGE_ID"] }
            #expect(ids.count == 3 && ids[0] == ids[1] && ids[1] != ids[2])
            #expect(Int64(exits[0]["TORPOR_RESTART_USEC"] ?? "").map { $0 > 40_000 && $0 < 60_000 } ?? false)
        }
    }

    @Test("explains every entry of an app, and what it tells of itself, in the catalogue")
    func catalogue() throws {
        let path = Sources.root + "/systemd/torpor.catalog"
        let catalogue = try String(contentsOfFile: path, encoding: .utf8)
        try withJournal("[apps.a]\nexec = [\"/bin/sleep\", \"1000\"]") { daemon, journal in
            try daemon.waitFor("a", "active")
            try daemon.done(.restart, "a")
            let ids = journal.all.compactMap { $0["MESSAGE_ID"] }
            #expect(ids.count >= 8)
            for id in Set(ids) { #expect(catalogue.contains("-- \(id)\n")) }
            #expect(journal.all.contains { $0["TORPOR_EVENT"] == "supervisor" && $0["TORPOR_APP"] == nil })
        }
    }

    @Test("goes on as ever while it takes nothing")
    func unread() throws {
        try withJournal("[apps.a]\nexec = [\"/bin/sleep\", \"1000\"]", reads: false) { daemon, _ in
            try daemon.waitFor("a", "active")
            // Many times what fits into the queues of its sockets.
            for _ in 0..<150 {
                try daemon.done(.background, "a")
                try daemon.done(.foreground, "a")
            }
            #expect(try daemon.summary("a").restarts == 0)
        }
    }

    @Test("gets lines with a priority where it takes no entries, and the keeper's with no name before them")
    func lines() throws {
        try withJournal("[apps.a]\nexec = [\"/bin/sleep\", \"1000\"]", hasSockets: false) { daemon, journal in
            try daemon.waitFor("a", "active")
            try daemon.eventually("lines came") {
                journal.streams(of: "torpord").contains { $0.text.contains("<6>a is active") }
            }
            kill(try daemon.torpord(), SIGKILL)
            try daemon.eventually("the keeper tells of it") {
                journal.streams(of: "torpord").contains {
                    $0.text.contains { $0.hasPrefix("<4>torpord was ended by signal 9") }
                }
            }
            try daemon.waitUntilItAnswers()
            let text = journal.streams(of: "torpord").flatMap(\.text)
            #expect(text.allSatisfy { $0.hasPrefix("<") }, "\(text)")
            #expect(!text.contains { $0.contains("torpor-keeper: ") || $0.contains("torpord: ") })
        }
    }

    @Test("is given an app's output by the app itself, under the app's name, also while torpord is away")
    func output() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "mkfifo @D/go; echo to out; echo to err >&2; read line < @D/go; echo alone; read end"]
            log = "journal"
            """
        try withJournal(toml) { daemon, journal in
            let go = daemon.directory + "/go"
            try daemon.waitFor("web", "active")
            try daemon.eventually("both streams came") {
                journal.streams(of: "web").last?.text.contains("to err") ?? false
            }
            let stream = try #require(journal.streams(of: "web").last)
            #expect(stream.header.dropFirst(2) == ["6", "1", "0", "0", "0"])
            #expect(stream.text == ["to out", "to err"])
            // Without a torpord the app still writes.
            kill(daemon.pid, SIGSTOP)
            defer { kill(daemon.pid, SIGCONT) }
            kill(try daemon.torpord(), SIGKILL)
            try Spawn.lock.withLock { try File.open(go, [.write]).withRaw { try Descriptor.writeAll($0, [10]) } }
            try daemon.eventually("it wrote alone") {
                journal.streams(of: "web").last?.text == ["to out", "to err", "alone"]
            }
        }
    }

    @Test("is where any client is sent for the output of an app that writes there")
    func elsewhere() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "sleep 0.1; exit 4"]
            restart = "never"
            log = "journal"
            """
        try withJournal(toml) { daemon, _ in
            try daemon.waitForEvent("web", "exit-failure")
            do {
                try daemon.call(.logs(LogsRequest(app: "web")))
                Issue.record("the daemon has its output")
            } catch let error as VarlinkClientError {
                guard case .service(let name, let parameters) = error else { throw error }
                #expect(name == "io.torpor.Manager.InJournal")
                #expect(parameters["app"]?.stringValue == "web")
                let place = try JournalPlace(json: parameters["journal"] ?? .null)
                #expect(place.identifier == "web")
                #expect(parameters["message"]?.stringValue?.contains("‘journalctl -t web’") ?? false)
            }
            #expect(try daemon.status("web").journal?.identifier == "web")
            #expect(try daemon.reports("web").first?.journal?.identifier == "web")
        }
    }

    @Test("is missed in words by an app that should write there")
    func missing() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            log = "journal"
            """
        try withJournal(toml, hasSockets: false) { daemon, _ in
            let result = try daemon.verb(.start, "web")
            let message = result.message ?? ""
            #expect(!result.ok && message.contains("no journal at /run/systemd/journal/stdout"), "\(message)")
            #expect(message.contains("choose log = \"file\""), "\(message)")
        }
    }

    @Test("is told as errors why it does not start, each line one")
    func refusal() throws {
        let journal = try ScriptedJournal()
        defer { journal.close() }
        let daemon = try Daemon("[apps.web]\nexek = [\"/bin/true\"]\n", program: journal.program)
        try daemon.waitForEnd()
        #expect(daemon.reap() == .exited(2))
        // By the stream, which the journal knows to be the unit's: torpord ends at once.
        func lines() -> [Substring] { journal.streams(of: "torpord").flatMap(\.text) }
        let last = "<3>the configuration is not valid, so nothing was started"
        try daemon.eventually("everything is told") { lines().last ?? "" == last }
        #expect(lines().allSatisfy { $0.hasPrefix("<3>") } && lines().count >= 3, "\(lines())")
        #expect(lines().contains { $0.contains("there is no such key; did you mean \"exec\"") }, "\(lines())")
    }

    @Test("is spared an app that changes all the time; the history has everything")
    func flood() throws {
        let toml = """
            [apps.a]
            exec = ["/bin/sleep", "1000"]
            """
        try withJournal(toml) { daemon, journal in
            try daemon.waitFor("a", "active")
            _ = journal.all
            for _ in 0..<20 {
                try daemon.done(.background, "a")
                _ = journal.all
                try daemon.done(.foreground, "a")
                _ = journal.all
            }
            let told = journal.entries(of: "a").filter { ["5", "6"].contains($0["PRIORITY"]) }
            #expect(told.count == 31)
            #expect(told.last?["MESSAGE"]?.contains("torpor history a") ?? false)
            #expect(try daemon.walk("a").count > 60)
            // What goes wrong is told all the same.
            kill(try #require(try daemon.summary("a").pid), SIGKILL)
            try daemon.eventually("its end is told") {
                journal.entries(of: "a").contains { $0["TORPOR_EVENT"] == "exit" && $0["PRIORITY"] == "4" }
            }
        }
    }
}
