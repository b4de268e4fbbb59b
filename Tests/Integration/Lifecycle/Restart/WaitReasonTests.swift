// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Testing
import TorporAPI

@Suite("Why an app waits for another one") struct WaitReasonTests {
    @Test("The reason of an app that waits for one which is restarted is a whole sentence")
    func waitsForRestart() throws {
        let toml = """
            [apps.db]
            exec = ["/bin/sh", "-c", "exit 3"]
            ready = "notify"
            launch = "on-demand"
            restart = "always"
            restart_backoff = { initial = "1h", cap = "1h", jitter = 0 }
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            requires = ["db"]
            """
        try withDaemon(toml) { daemon throws in
            let words = ["start", "web", "--no-wait", "--socket", daemon.socket]
            #expect(try Spawn.run([Built.path("torpor")] + words).code == 0)
            try daemon.eventually("the reason says why db is not ready") {
                let reason = try daemon.summary("web").heldBack
                return reason?.hasPrefix("db is not ready: it ended (exit-failure 3), restart ") ?? false
            }
        }
    }
}
