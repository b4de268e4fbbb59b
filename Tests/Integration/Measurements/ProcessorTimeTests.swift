// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Processor time", .serialized) struct ProcessorTimeTests {
    @Test("A snapshot's command that has closed its output and goes on keeps torpord from no rest")
    func closedOutput() throws {
        let script = "echo all there is; exec >&-; touch closed; until [ -e go ]; do sleep 0.05; done"
        let toml = Pictured.head + "directory = \"@D\"\n" + Pictured.shell(script, deadline: "1min")
        try withDaemon(toml) { daemon in
            try daemon.waitFor("web", "active")
            try daemon.done(.suspend, "web") { $0.wait = false }
            try daemon.eventually("it has closed its output") { File.exists(daemon.directory + "/closed") }
            let torpord = try daemon.torpord()
            // As much as a process takes that never rests.
            let busy = try Spawn.start(
                ["/bin/sh", "-c", "while :; do :; done"],
                environment: [:],
                output: "/dev/null"
            )
            defer {
                kill(busy, SIGKILL)
                waitpid(busy, nil, 0)
            }
            let before = (try ticks(torpord), try ticks(busy))
            try daemon.eventually("the busy one has had 0.4 s", within: .seconds(60)) {
                try ticks(busy) - before.1 >= 40
            }
            let (own, control) = (try ticks(torpord) - before.0, try ticks(busy) - before.1)
            #expect(own * 4 < control, "torpord \(own) ticks, a busy process \(control)")
            daemon.touch("go")
            try daemon.waitFor("web", "suspended")
        }
    }

    /// Processor time so far, in the kernel's ticks.
    private func ticks(_ pid: Int32) throws -> UInt64 {
        let stat = try ProcFS.stat(pid)
        return stat.userTicks + stat.systemTicks
    }
}
