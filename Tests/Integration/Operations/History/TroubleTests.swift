// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Linux
import Testing
import TorporAPI

@Suite("What goes wrong beside an app is in its history") struct TroubleTests {
    @Test("a command of after_stop that fails, and a log that cannot be written")
    func told() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "echo hello; exec sleep 1000"]
            launch = "on-demand"
            log = "file"
            after_stop = [["/bin/sh", "-c", "exit 7"], ["/bin/true"]]
            """
        try withDaemon(toml) { daemon in
            // A folder in the place of the file: that cannot be written.
            let log = daemon.directory + "/l/web.log"
            try File.makeDirectories(log)
            try daemon.done(.start, "web")
            let failed = try daemon.waitForEvent("web", "could not write to \(log): ")
            #expect(failed.kind == "notice" && failed.text.contains("output is dropped"), "\(failed.text)")
            try File.removeDirectory(log)
            try daemon.waitForEvent("web", "\(log) can be written to again; ")
            try daemon.done(.stop, "web")
            try daemon.waitForEvent("web", "after_stop command /bin/sh failed with exit status 7")
            try daemon.eventually("all of it is in the history") {
                let history = try Spawn.run([Built.path("torpor"), "history", "web", "--socket", daemon.socket]).output
                let sentences = ["could not write to", "can be written to again", "after_stop command /bin/sh failed"]
                return sentences.allSatisfy { history.contains($0) }
            }
        }
    }
}
