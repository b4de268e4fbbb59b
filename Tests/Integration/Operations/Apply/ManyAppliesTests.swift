// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Applies without end") struct ManyAppliesTests {
    /// A configuration of a round: some apps stay, some change, some come and go, some crash all the time.
    private static func toml(_ round: Int) -> String {
        var text = ""
        for number in 0..<10 { text += Apps.sleeper("steady\(number)") }
        for number in 0..<3 {
            text += """
                [apps.crash\(number)]
                exec = ["/bin/sh", "-c", "sleep 0.0\(number + 1); exit 1"]
                restart_backoff = { initial = "10ms", cap = "20ms", limit = 10000 }
                tags = ["round\(round)"]

                """
        }
        text += Apps.sleeper("live", "grace = \"\(round + 1)s\"")
        text += Apps.sleeper("walker", "requires = [\"live\"]")
        text += Apps.sleeper("often", seconds: 1000 + round)
        text += Apps.sleeper("pool", "instances = \(1 + round % 4)")
        if round % 2 == 0 { text += Apps.sleeper("even", "requires = [\"live\"]") }
        if round % 3 == 0 {
            // It takes longer to end than the next apply to come.
            text += """
                [apps.slow]
                exec = ["/bin/sh", "-c", "trap 'sleep 0.05; exit 0' TERM; while :; do sleep 0.01; done"]

                """
        }
        return text
    }

    @Test("50 in a row while apps crash and walk: what stays is never touched, and the last one is what is")
    func fifty() throws {
        try withDaemon(Self.toml(0)) { daemon throws in
            let steady = (0..<10).map { "steady\($0)" } + ["live"]
            for app in steady + ["walker"] { try daemon.waitFor(app, "active") }
            let pids = try steady.map { try daemon.process(of: $0) }
            var verbs = [Verb.background, .suspend, .resume, .foreground, .interrupt]
            for round in 1...50 {
                for _ in 0..<3 {
                    _ = try daemon.verb(verbs[0], "walker") { $0.wait = false }
                    verbs.append(verbs.removeFirst())
                }
                let reply = try daemon.apply(Self.toml(round)) { request in
                    request.restart = round % 5 == 0
                    request.wait = round % 4 == 0
                }
                #expect(reply.apps.contains { $0.app == "live" && $0.kind == "changed" })
                let failed = reply.apps.filter { !$0.ok && $0.error != "overtaken" && !$0.app.hasPrefix("crash") }
                #expect(failed.isEmpty, "round \(round): \(failed)")
            }
            // 50 is even, and 2 more than a multiple of 4 and of 3.
            let names = ["even", "live", "often", "pool@1", "pool@2", "pool@3", "walker"] + steady.dropLast()
            try daemon.eventually("all is as the last one says") {
                let list = try daemon.list()
                return Set(list.map(\.name)) == Set(names + ["crash0", "crash1", "crash2"])
                    && list.allSatisfy { $0.name.hasPrefix("crash") || $0.state == "active" || $0.name == "walker" }
            }
            #expect(try steady.map { try daemon.process(of: $0) } == pids)
            for name in names { #expect(daemon.processes(of: name).count == 1, "\(name)") }
            // What was removed is in no list any more, though it may still be ending.
            try daemon.eventually("the last slow one is gone") { daemon.processes(of: "slow").isEmpty }
            #expect(try daemon.verbs(.background, ["tag:round50"]).count == 3)
            #expect(try daemon.words(of: "often") == ["/bin/sleep", "1050"])
            #expect(try daemon.apply().apps.isEmpty)
        }
    }

    @Test("Requests and signals on top of each other end with the configuration that is on disk")
    func floods() throws {
        try withDaemon(Apps.sleeper("a")) { daemon throws in
            try daemon.waitFor("a", "active")
            let pid = try daemon.process(of: "a")
            let client = try daemon.connect()
            for round in 1...30 {
                try daemon.configure(Apps.sleeper("a", "grace = \"\(round)s\"") + Apps.sleeper("x\(round % 3)"))
                kill(daemon.pid, SIGHUP)
                var request = ApplyRequest()
                request.wait = false
                _ = try client.call(ManagerRequest.apply(request).call, timeoutMilliseconds: 10_000)
            }
            try daemon.apply(Apps.sleeper("a", "grace = \"1s\"") + Apps.sleeper("last"))
            try daemon.eventually("what was removed is gone") { try daemon.list().map(\.name) == ["a", "last"] }
            #expect(try daemon.process(of: "a") == pid)
            try daemon.eventually("only the two run") {
                Truth.processes(marked: daemon.directory).count { (try? ProcFS.cmdline($0).first) == "/bin/sleep" } == 2
            }
        }
    }
}
