// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("A disk that hangs", .serialized) struct HangingDiskTests {
    @Test("torpord starts and ends although the disk hangs all the time")
    func start() throws {
        let disk = try HangingDisk()
        defer { disk.remove() }
        try disk.hang()
        let daemon = try Daemon("[apps.web]\nexec = [\"/bin/sleep\", \"1000\"]", environment: disk.environment)
        try daemon.waitUntilItAnswers()
        try daemon.eventually("web is launched all the same") {
            try daemon.summary("web").state == "active"
        }
        try daemon.eventually("the disk hangs") { disk.waits }
        // It answers never again: this end waits for it in vain, or not at all.
        try daemon.stop()
    }

    @Test("A program that is looked for in a folder there delays no app but its own")
    func program() throws {
        let disk = try HangingDisk("/far/", lookups: true)
        defer { disk.remove() }
        let toml = """
            [apps.far]
            exec = ["sleep", "1000"]
            launch = "on-demand"
            environment = { PATH = "@D/far:/usr/bin:/bin" }

            """
        let near = Apps.sleeper("near", "launch = \"on-demand\"")
        try withDaemon(toml + near, environment: disk.environment) { daemon in
            try disk.hang()
            _ = try daemon.verb(.start, "far") { $0.wait = false }
            try daemon.eventually("the program is looked for") { disk.waits }
            try daemon.done(.start, "near")
            #expect(try daemon.summary("far").pid == nil)
            try disk.answer()
            try daemon.waitFor("far", "active")
        }
    }
}
