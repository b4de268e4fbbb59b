// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import PolicyLibraries
import Testing
import TorporAPI
import Varlink

@Suite("torpor policy reload and order") struct PolicyVerbTests {
    private func policy(_ daemon: Daemon, _ arguments: [String]) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor"), "policy"] + arguments + ["--socket", daemon.socket])
    }

    private func shipped(_ name: String, _ lines: String = "") throws -> (name: String, lines: String) {
        let folder = try Libraries.makeFolder("reloaded")
        let library = "lib\(name.capitalized)Policy.so"
        try copyProgram(Built.path(library), to: folder + "/" + library)
        return (name, "path = \"\(folder)/\(library)\"\ndeadline = \"5s\"\n\(lines)")
    }

    @Test("reload gives a policy another process, and touches nothing else")
    func reload() throws {
        let toml = Governed.toml([try shipped("mobile"), try shipped("jetsam")], apps: Governed.sleeper("a"))
        try withDaemon(toml) { daemon throws in
            try daemon.waitForPolicy("jetsam", "is there") { $0.state == "ready" }
            try daemon.waitForPolicy("mobile", "is there") { $0.state == "ready" }
            try daemon.waitFor("a", "active")
            let before = (try daemon.policies(), try daemon.torpord(), try daemon.summary("a").pid)
            let (code, output) = try policy(daemon, ["reload", "mobile"])
            let after = (try daemon.policies(), try daemon.torpord(), try daemon.summary("a").pid)
            let pid = try #require(after.0[0].pid)
            #expect(code == 0 && output.hasPrefix("mobile: loaded in process \(pid): 1.0, "), "\(output)")
            #expect(pid != before.0[0].pid && after.0[1].pid == before.0[1].pid)
            #expect(after.1 == before.1 && after.2 == before.2)
            try daemon.eventually("the process before is gone") { try daemon.hosts().count == 2 }
            let json = try policy(daemon, ["reload", "jetsam", "--json"])
            #expect(try PolicyStatus(json: JSON.parse(json.output)).pid == (try daemon.policy("jetsam").pid))
            let unknown = try policy(daemon, ["reload", "nobody"])
            #expect(unknown.code == 1)
            #expect(unknown.output == "torpor: there is no policy nobody: there are mobile, jetsam\n")
        }
    }

    @Test("reload of a library that is broken by now says why, and the policy is not asked")
    func broken() throws {
        let folder = try Libraries.makeFolder("broken")
        let library = folder + "/libunreliable.so"
        try copyProgram(try Libraries.path("unreliable.c"), to: library)
        let toml = Governed.toml([("mine", "path = \"\(library)\"")], apps: Governed.sleeper("a"))
        try withDaemon(toml) { daemon throws in
            try daemon.waitForPolicy("mine", "is there") { $0.state == "ready" }
            try File.replace(library, Array("no library".utf8))
            let (code, output) = try policy(daemon, ["reload", "mine"])
            #expect(code == 1)
            #expect(output.hasPrefix("torpor: the policy mine is refused and is not asked: \(library) "), "\(output)")
            try File.remove(library)
            try copyProgram(try Libraries.path("unreliable.c"), to: library)
            #expect(try policy(daemon, ["reload", "mine"]).code == 0)
        }
    }

    @Test("order says whom the policies would end first, and why")
    func order() throws {
        let apps =
            Governed.sleeper("a") + Governed.sleeper("b", "launch = \"background\"")
            + Governed.sleeper("kept", "launch = \"background\"\nevict = \"never\"")
            + Governed.sleeper("c", "launch = \"background\"\npriority = 5")
        try withDaemon(Governed.toml([try shipped("jetsam")], apps: apps)) { daemon throws in
            try daemon.waitForPolicy("jetsam", "is there") { $0.state == "ready" }
            for app in ["b", "c"] { try daemon.waitFor(app, "background") }
            let (code, output) = try policy(daemon, ["order"])
            let rows = output.split(separator: "\n").map { $0.split(separator: " ", omittingEmptySubsequences: true) }
            #expect(code == 0 && rows.count == 3, "\(output)")
            #expect(rows[1].prefix(3) == ["1", "b", "background"] && rows[2].prefix(2) == ["2", "c"], "\(output)")
            #expect(output.contains("jetsam") && output.contains("band background: "), "\(output)")
            let json = try JSON.parse(try policy(daemon, ["order", "--json"]).output)
            let before = try Spawn.run([Built.path("torpor"), "--json", "--socket", daemon.socket, "policy", "order"])
            #expect(try before.code == 0 && JSON.parse(before.output) == json)
            #expect(json.arrayValue?.compactMap { $0["app"]?.stringValue } == ["b", "c"])
        }
    }

    @Test("without policies nobody says who would be ended, and what would help")
    func nobody() throws {
        try withDaemon(Governed.sleeper("a")) { daemon throws in
            let (code, output) = try policy(daemon, ["order"])
            #expect(code == 1 && output.hasPrefix("torpor: no policy is configured, "), "\(output)")
        }
    }
}
