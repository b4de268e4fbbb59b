// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("A store that cannot be used") struct BadStoreTests {
    static let toml = """
        [apps.web]
        exec = ["/bin/sleep", "1000"]
        """

    /// Starts torpord with a state folder that was spoiled, walks an app, and gives what torpord said of its store.
    private func told(_ spoil: (String) throws -> Void, stored: Bool) throws -> String {
        let daemon = try Daemon(Self.toml)
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        try daemon.stop()
        try spoil(daemon.directory + "/s")
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        try daemon.done(.suspend, "web")
        try daemon.done(.resume, "web")
        #expect(try daemon.walk("web").suffix(2) == ["suspended", "background"])
        let events = try daemon.events().filter { $0.kind == "store" }
        #expect(events.count == 1, "\(events)")
        let checks = try (daemon.call(.doctor)["checks"]?.arrayValue ?? []).map { try DoctorCheck(json: $0) }
        let store = try #require(checks.first { $0.name == "store" })
        let problem = stored ? "may be lost: look through ‘torpor list’" : "cannot be written"
        #expect(!store.ok && store.message?.contains(problem) ?? false, "\(store)")
        // A goal that is not stored lasts until the next reboot only.
        let told = try #require(try daemon.done(.suspend, "web").message)
        #expect(told.contains("a reboot undoes this") == !stored, "\(told)")
        try daemon.done(.resume, "web")
        let health = try Spawn.run([Built.path("torpor"), "--socket", daemon.socket, "health"])
        #expect(health.code == 1 && health.output.contains(problem), "\(health)")
        try daemon.stop()
        if stored { try expectForgotten(daemon) }
        if stored { #expect(try Sqlite.ask(daemon, "SELECT goal FROM apps WHERE name = 'web'") == "background") }
        return events.first?.text ?? ""
    }

    /// A torpord that is started later says it too, until the file is gone.
    private func expectForgotten(_ daemon: Daemon) throws {
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        func health() throws -> (code: Int32, output: String) {
            let health = try Spawn.run([Built.path("torpor"), "--socket", daemon.socket, "health"])
            return (health.code, health.output)
        }
        try daemon.eventually("the next torpord says it") { try health().output.contains("may be lost: look through") }
        let names = try File.list(daemon.directory + "/s").filter { $0.hasPrefix("torpor.db.") }
        for name in names { try File.remove(daemon.directory + "/s/" + name) }
        try daemon.eventually("it is no longer said") { try health().code == 0 }
        let checks = try (daemon.call(.doctor)["checks"]?.arrayValue ?? []).map { try DoctorCheck(json: $0) }
        #expect(checks.first { $0.name == "store" }?.ok == true)
        try daemon.stop()
    }

    @Test("damaged, emptied, of a later version, or another program's: it is set aside, and said")
    func setAside() throws {
        let garbage = try told(
            { try File.write($0 + "/torpor.db", [UInt8](repeating: 7, count: 9_000)) },
            stored: true
        )
        #expect(garbage.contains("damaged") && garbage.contains("torpor.db.corrupt-"))
        let emptied = try told({ try File.write($0 + "/torpor.db", "") }, stored: true)
        #expect(emptied.contains("was emptied") && emptied.contains("torpor.db.corrupt-"))
        let newer = try told({ try Self.run("PRAGMA user_version = 1000", in: $0) }, stored: true)
        #expect(newer.contains("later torpord") && newer.contains("1000") && newer.contains("torpor.db.newer-1000-"))
        let foreign = try told({ try Self.run("PRAGMA application_id = 99", in: $0) }, stored: true)
        #expect(foreign.contains("another program") && foreign.contains("torpor.db.foreign-"))
    }

    @Test("where nothing can be stored apps live on, and it is said")
    func nowhere() throws {
        // A folder in its place, and no folder at all: both stop root too.
        let folder = try told(
            {
                try File.remove($0 + "/torpor.db")
                try File.makeDirectories($0 + "/torpor.db/x")
            },
            stored: false
        )
        #expect(folder.contains("cannot be written") && folder.contains("kept in memory"))
        let nothing = try told(
            {
                try File.removeTree($0)
                try File.write($0, "")
            },
            stored: false
        )
        #expect(nothing.contains("cannot be written"))
    }

    private static func run(_ sql: String, in state: String) throws {
        let script = "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute(sys.argv[2]); d.commit()"
        let (code, output) = try Spawn.run(["/usr/bin/python3", "-c", script, state + "/torpor.db", sql])
        #expect(code == 0, "\(output)")
    }
}
