// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("States of scenes inside an app, for people") struct InnerSceneStateTests {
    @Test("A state that was set aside is given back to the scene while it is not connected, and exported by its name")
    func givenBack() throws {
        try InnerSceneTests.with(keys: "restart_backoff = { initial = \"10ms\" }") { daemon throws in
            func state(_ words: String...) throws -> (code: Int32, output: String) {
                try Spawn.run([Built.path("torpor"), "state"] + words + ["--socket", daemon.socket])
            }
            func disconnect() throws {
                try daemon.done(.background, "desk@fatal")
                try daemon.done(.disconnect, "desk@fatal")
            }
            try InnerSceneTests.open(daemon, "fatal")
            try disconnect()
            try? InnerSceneTests.open(daemon, "fatal")
            try daemon.eventually("the event says how to give it back") {
                let hint = "‘torpor state import desk@fatal --raw \(daemon.archive("set-aside", of: "desk@fatal"))’"
                return try daemon.events("desk").contains { $0.text.contains(hint) }
            }
            try daemon.eventually("it is connected without its state") {
                daemon.records("desk").last == "active fatal"
            }
            let file = daemon.directory + "/rescued"
            try File.write(file, "given back")
            let early = try state("import", "desk@fatal", "--raw", file)
            #expect(early.code == 1 && early.output.contains("‘torpor scene disconnect desk@fatal’"), "\(early)")
            try disconnect()
            let given = try state("import", "desk@fatal", "--raw", file)
            #expect(given.code == 0, "\(given)")
            let exported = try state("export", "desk@fatal", "-o", file)
            #expect(exported.code == 0 && !exported.output.contains("without"), "\(exported)")
            let whole = try state("export", "desk", "-o", file + "-of-desk")
            #expect(whole.code == 0 && whole.output.contains("without that of its scene desk@fatal"), "\(whole)")
            try InnerSceneTests.open(daemon, "fatal")
            #expect(daemon.records("desk").contains("connect fatal front given back"))
            // What it has saved since is replaced by the export.
            try disconnect()
            let again = try state("import", "desk@fatal", file)
            #expect(again.code == 0, "\(again)")
            try InnerSceneTests.open(daemon, "fatal")
            #expect(daemon.records("desk").count { $0 == "connect fatal front given back" } == 2)
        }
    }
}
