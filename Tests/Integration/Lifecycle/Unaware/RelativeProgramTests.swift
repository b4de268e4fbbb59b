// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Linux
import Testing
import TorporAPI

@Suite("Programs below the working directory") struct RelativeProgramTests {
    @Test("Without ‘directory’, a program is looked up in the home of the app's user", .enabled(if: Users.isRoot))
    func home() throws {
        let toml = """
            [apps.api]
            exec = ["./no-such-program-of-a-test"]
            user = "root"
            launch = "on-demand"
            restart = "never"
            """
        try withDaemon(toml) { daemon throws in
            let result = try daemon.verb(.start, "api")
            #expect(!result.ok)
            #expect(result.message?.contains("could not run /root/./no-such-program-of-a-test") == true, "\(result)")
        }
    }
}
