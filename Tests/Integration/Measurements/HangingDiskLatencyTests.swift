// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Latency on a disk that hangs", .serialized) struct HangingDiskLatencyTests {
    /// How long list, suspend and resume take, one after the other.
    private func walk(_ daemon: Daemon) throws -> Duration {
        let start = Clock.monotonic()
        _ = try daemon.list()
        try daemon.done(.suspend, "web")
        try daemon.done(.resume, "web")
        return Clock.monotonic() - start
    }

    @Test("while the disk hangs for ten seconds every transition is as quick as ever, and afterwards all is stored")
    func transitions() throws {
        let disk = try HangingDisk()
        defer { disk.remove() }
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            [apps.db]
            exec = ["/bin/sleep", "1000"]
            """
        let daemon = try Daemon(toml, environment: disk.environment)
        // Its disk never hangs: walked in turn with the other, since the machine may be busier now than a second ago.
        let usual = try Daemon(toml)
        for one in [daemon, usual] {
            try one.waitUntilItAnswers()
            try one.waitFor("web", "active")
            try one.waitFor("db", "active")
            try one.done(.background, "web")
        }

        try disk.hang()
        let began = Clock.monotonic()
        try daemon.done(.interrupt, "db")
        try daemon.eventually("the disk hangs") { disk.waits }
        var walks: [(hanging: Duration, usual: Duration)] = []
        while Clock.monotonic() - began < .seconds(10) {
            walks.append((try walk(daemon), try walk(usual)))
            usleep(20_000)
        }
        // A stop, a start and a question of events too; the question is answered with what is in memory.
        try daemon.done(.stop, "db")
        try daemon.done(.start, "db")
        #expect(try daemon.events("web").last?.to == "background")
        // All of it while the disk has not answered once.
        try disk.answer()

        let slow = walks.map(\.hanging).sorted()
        let quick = walks.map(\.usual).sorted()
        let medians = (slow[slow.count / 2], quick[quick.count / 2])
        print("list, suspend and resume: \(medians.1), while the disk hangs: \(medians.0), at most \(slow.last!)")
        #expect(medians.0 < medians.1 * 3 + .milliseconds(5))
        // The least that torpord ever waits for a disk is 2 s.
        #expect(slow.last! < max(.seconds(2), quick.last! * 3), "one waited for the disk")
        let told = { (text: String) in daemon.log.split(separator: "\n").count { $0.contains(text) } }
        try daemon.eventually("the disk answers again") {
            told("the disk answers again") + told("can be written again") == 1
        }
        #expect(told("the disk does not answer") == 1)

        let events = try daemon.events()
        #expect(events.count { $0.to == "suspended" } == walks.count)
        try usual.stop()
        try daemon.stop()
        let stored = try Sqlite.ask(
            daemon,
            "SELECT count(*) FROM events WHERE to_state = 'suspended' AND kind = 'state'"
        )
        #expect(Int(stored) == walks.count)
        #expect(try Sqlite.ask(daemon, "SELECT goal FROM apps WHERE name = 'web'") == "background")
    }
}
