// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Testing
import TorporAPI

@Suite("Launches that a restart cuts off") struct CutOffLaunchTests {
    @Test("An app that restarts what it requires, before each launch, is delayed and given up, and its start ends")
    func requirement() throws {
        let torpor = Built.path("torpor")
        let toml = """
            [apps.k1]
            exec = ["/bin/sleep", "1000"]
            [apps.k2]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            requires = ["k1"]
            restart_backoff = { initial = "10ms", limit = 3 }
            before_start = [["\(torpor)", "restart", "k1", "--socket", "@D/r/io.torpor"]]
            """
        try withDaemon(toml) { daemon throws in
            try daemon.waitFor("k1", "active")
            let start = try Client(daemon, "start", "k2")
            #expect(try start.finish(daemon) != 0)
            #expect(start.output.contains("was restarted again and again before it was ready"), "\(start.output)")
            try daemon.waitForEvent("k2", "it was restarted too often and stays down")
            let summary = try daemon.summary("k2")
            #expect(summary.restarts == 3 && summary.lastExit?.reason == "launch-failed")
            try daemon.waitFor("k1", "active")
        }
    }
}
