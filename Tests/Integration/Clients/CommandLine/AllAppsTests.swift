// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Verbs that show apps") struct AllAppsTests {
    private static let toml = ["a", "b", "c"].map { name in
        "[apps.\(name)]\nexec = [\"/bin/sh\", \"-c\", \"echo I am \(name); exec sleep 1000\"]\n"
            + (name == "c" ? "launch = \"on-demand\"\n" : "")
    }.joined()

    private static func torpor(
        _ daemon: Daemon,
        _ words: [String],
        zone: String = ""
    ) throws -> (
        code: Int32, output: String
    ) {
        let variables = ["TORPOR_MANAGER_SOCKET": daemon.socket, "TZ": zone]
        return try Spawn.run([Built.path("torpor")] + words, environment: variables)
    }

    private static func withApps(_ body: (Daemon) throws -> Void) throws {
        try withDaemon(toml) { daemon in
            for app in ["a", "b"] { try daemon.waitFor(app, "active") }
            try daemon.eventually("both have written") {
                try torpor(daemon, ["logs", "*"]).output.split(separator: "\n").count == 2
            }
            try body(daemon)
        }
    }

    @Test("list and status are about those that are named, and about all if none is")
    func chosen() throws {
        try Self.withApps { daemon in
            func json(_ words: String...) throws -> JSON {
                try JSON.parse(Self.torpor(daemon, words + ["--json"]).output)
            }
            // One that is not named may be down.
            for (words, code, names) in [
                ("list", 0, ["a", "b", "c"]), ("list b c", 0, ["b", "c"]), ("list a*", 0, ["a"]), ("list nope", 4, []),
                ("status", 0, ["a", "b", "c"]), ("status a b", 0, ["a", "b"]), ("status a c", 3, ["a", "c"]),
                ("status a nope", 4, []),
            ] as [(String, Int32, [String])] {
                let (status, output) = try Self.torpor(daemon, words.components(separatedBy: " "))
                // Without a name, status is a table.
                let end: Character = words.hasPrefix("list") || words == "status" ? " " : ":"
                let shown = output.split(separator: "\n").compactMap { line in
                    ["a", "b", "c"].first { line.hasPrefix("\($0)\(end)") }
                }
                #expect(status == code && shown == names, "\(words): \(status), \(output)")
            }
            let one = try json("status", "b")
            #expect(one["name"]?.stringValue == "b")
            #expect(try json("list", "b").arrayValue?.compactMap { $0["name"]?.stringValue } == ["b"])
            #expect(try json("status", "b", "c").arrayValue?.compactMap { $0["name"]?.stringValue } == ["b", "c"])
            #expect(try json("status", "b*").arrayValue?.count == 1)
            #expect(try json("status").arrayValue?.count == 3)
        }
    }

    @Test("logs without a name are those of all apps, followed too")
    func logs() throws {
        try Self.withApps { daemon in
            let output = try Self.torpor(daemon, ["logs"]).output
            #expect(Set(output.split(separator: "\n")) == ["a | I am a", "b | I am b"], "\(output)")
            let client = try Client(daemon, "logs", "-f")
            try daemon.eventually("what there is is shown") { client.output.split(separator: "\n").count == 2 }
            try daemon.done(.start, "c")
            try daemon.eventually("what comes is shown") { client.output.contains("c | I am c\n") }
        }
    }

    @Test("what is left of the log of a removed app is shown, with the time of the removal")
    func removed() throws {
        let toml = "[apps.b]\nexec = [\"/bin/echo\", \"I was b\"]\nrestart = \"never\"\n"
        try withDaemon(Apps.sleeper("a") + toml) { daemon in
            try daemon.waitForEvent("b", "exit")
            try daemon.eventually("its output is written") {
                try Self.torpor(daemon, ["logs", "b"]).output == "I was b\n"
            }
            try daemon.apply(Apps.sleeper("a"))
            for words in [["logs", "b"], ["logs", "-f", "b"]] {
                let (code, output) = try Self.torpor(daemon, words)
                let lines = output.split(separator: "\n")
                #expect(code == 0 && lines.contains("I was b"), "\(output)")
                let said = /b is not in the configuration since \d{4}-.*: this is what is left of its log/
                #expect(output.contains(said), "\(output)")
            }
            let other = try Self.torpor(daemon, ["logs", "c"])
            #expect(other.code == 4 && other.output.contains("there is no app c"), "\(other)")
            #expect(try Self.torpor(daemon, ["logs", "../b"]).code == 4)
        }
    }

    @Test("Times are those of the local zone, or of UTC; what is shown can be given back")
    func zones() throws {
        try Self.withApps { daemon in
            func first(_ words: [String], zone: String) throws -> String {
                let output = try Self.torpor(daemon, words, zone: zone).output
                let match = try #require(
                    output.firstMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*[Z+-][\d:]*/),
                    "\(output)"
                )
                return String(match.0)
            }
            let verbs = [["events"], ["status", "a"], ["history", "a"], ["logs", "a", "-t"]]
            for verb in verbs {
                let utc = try first(verb, zone: "UTC0")
                let local = try first(verb, zone: "<+0930>-9:30")
                #expect(utc.hasSuffix("Z") && local.hasSuffix("+09:30"), "\(verb): \(utc), \(local)")
                #expect(try first(verb + ["--utc"], zone: "<+0930>-9:30") == utc)
            }
            // The last event by its time: with its offset, in the local zone, and in UTC.
            let events = try Self.torpor(daemon, ["events"], zone: "<-03>3").output.split(separator: "\n")
            let last = try #require(events.last)
            let time = String(last.prefix { $0 != " " })
            #expect(time.hasSuffix("-03:00"))
            func since(_ text: String, _ more: String...) throws -> Bool {
                let output = try Self.torpor(daemon, ["events", "--since", text] + more, zone: "<-03>3").output
                return !output.isEmpty && output.split(separator: "\n").count < events.count
            }
            #expect(try since(time) && since(String(time.dropLast(6))))
            #expect(try !since(String(time.dropLast(6)), "--utc"))
            let (code, output) = try Self.torpor(daemon, ["events", "--since", "2026-01-31T10:00+1:00"])
            #expect(code == 2 && output.contains("wants how long ago"), "\(output)")
        }
    }
}
