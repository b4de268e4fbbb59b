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
}
