// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("torpor report") struct ReportTests {
    private static func torpor(_ daemon: Daemon, _ words: String...) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor")] + words, environment: ["TORPOR_MANAGER_SOCKET": daemon.socket])
    }

    private static let toml = ["a", "b"].map { name in
        "[apps.\(name)]\nexec = [\"/bin/sh\", \"-c\", \"exit 3\"]\nrestart = \"never\"\nlaunch = \"on-demand\"\n"
    }.joined()

    private static func fail(_ daemon: Daemon, _ app: String, times: Int) throws {
        _ = try? daemon.verbs(.start, [app])
        try daemon.eventually("\(app) has \(times) reports") { try daemon.reports(app).count == times }
    }

    @Test("Without a name, reports are listed, the newest last; one is shown in full")
    func list() throws {
        try withDaemon(Self.toml) { daemon throws in
            #expect(try Self.torpor(daemon, "report").output == "no reports\n")
            try Self.fail(daemon, "a", times: 1)
            let one = try Self.torpor(daemon, "report").output
            #expect(one.hasPrefix("a, run 1: exit-failure") && one.contains("  why:"), "\(one)")
            try Self.fail(daemon, "b", times: 1)
            try Self.fail(daemon, "a", times: 2)
            let lines = try Self.torpor(daemon, "report").output.split(separator: "\n").map(String.init)
            #expect(lines.count == 5 && lines[0].hasPrefix("TIME "), "\(lines)")
            let names = lines.dropFirst().prefix(3).map { line in
                line.split(separator: " ").dropFirst().prefix(3).joined(separator: " ")
            }
            #expect(names == ["a 1 exit-failure", "b 1 exit-failure", "a 2 exit-failure"], "\(lines)")
            #expect(lines[4] == "‘torpor report a -n 1’ shows the last one in full", "\(lines)")
            let last = try Self.torpor(daemon, "report", "-n", "1").output
            #expect(last.hasPrefix("a, run 2: exit-failure"), "\(last)")
            let named = try Self.torpor(daemon, "report", "a").output
            #expect(named.hasPrefix("a, run 2: ") && named.contains("\n\na, run 1: "), "\(named)")
        }
    }

    @Test(
        "An app that fails at its start in a sandbox: list, status, health and report name the sandbox",
        .enabled(if: Confinement.isAvailable() && Users.isRoot, "needs root, and a kernel with Landlock")
    )
    func sandbox() throws {
        // What the sandbox denies, the program says in words of its own.
        let failing = "\nexec = [\"/bin/sh\", \"-c\", \"cat /proc/1/environ || exit 1\"]\nrestart = \"never\"\n"
        let free = "[apps.free]\nrestart = \"never\"\nexec = [\"/bin/false\"]\n"
        try withDaemon("[apps.web]\(failing)sandbox = true\n" + free) { daemon throws in
            for app in ["web", "free"] {
                try daemon.eventually("\(app) has a report") { try !daemon.reports(app).isEmpty }
            }
            let hint = "‘torpor permissions web’ shows what it may do"
            let list = try Self.torpor(daemon, "list").output.split(separator: "\n")
            #expect(list.contains { $0.hasPrefix("web ") && $0.hasSuffix("exit-failure 1 in its sandbox") }, "\(list)")
            #expect(list.contains { $0.hasPrefix("free ") && $0.hasSuffix("exit-failure 1") }, "\(list)")
            let status = try Self.torpor(daemon, "status", "web").output
            #expect(status.replacing(/\s+/, with: " ").contains(hint), "\(status)")
            let report = try #require(try daemon.reports("web").first?.text)
            #expect(report.contains("; it runs in a sandbox: " + hint), "\(report)")
            #expect(try Self.torpor(daemon, "health", "web").output.contains("exit-failure 1 in its sandbox"))
            let other = try #require(try daemon.reports("free").first?.text)
            #expect(!other.contains("sandbox"), "\(other)")
        }
    }
}
