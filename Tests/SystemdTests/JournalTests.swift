// SPDX-License-Identifier: Apache-2.0

import TestMachine
import Testing

extension Booted {
    @Suite("The journal", .serialized) struct JournalTests {
        @Test("What an app writes is there under its own name, and torpor logs shows it too") func output() throws {
            let machine = try service(app("singer", nil, "log = \"journal\""))
            let pid = try #require(try machine.waitFor("singer", in: "active").pid)
            try machine.eventually("the journal has its output") {
                try machine.run("journalctl -t singer _PID=\(pid) -o cat").text == "hello from singer"
            }
            try machine.eventually("torpor logs has it") {
                try machine.run("torpor logs singer").output.contains("hello from singer")
            }
        }

        @Test("What happened to an app is found by its name, with state, reason and incarnation") func fields() throws {
            let machine = try service(app("walker"))
            try machine.waitFor("walker", in: "active")
            try machine.done("torpor suspend walker && torpor kill walker")
            try machine.eventually("the journal tells of the suspend and of the end") {
                let entries = try machine.run("journalctl TORPOR_APP=walker -o json").output
                return entries.contains("\"TORPOR_STATE\":\"suspended\"")
                    && entries.contains("\"TORPOR_REASON\":\"force-quit\"") && entries.contains("TORPOR_INCARNATION")
                    && entries.contains("MESSAGE_ID")
            }
        }

        @Test("journalctl -x explains what an entry means") func catalogue() throws {
            let machine = try service("[apps.dies]\nexec = [\"/bin/false\"]\nrestart = \"never\"\n")
            try machine.eventually("the catalogue's words are shown") {
                try machine.run("journalctl -x TORPOR_APP=dies -o short").output.contains("Subject: App dies failed")
            }
        }
    }
}
