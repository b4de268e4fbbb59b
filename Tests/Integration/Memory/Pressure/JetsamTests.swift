// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import PolicyLibraries
import Testing
import TorporAPI

@Suite("Short memory: Jetsam says who goes") struct MemoryJetsamTests {
    @Test(
        "Who was in use longest ago goes first whatever its size, and whom it protects stays also when nobody else is left"
    )
    func order() throws {
        let folder = try Libraries.makeFolder("jetsam")
        try copyProgram(Built.path("libJetsamPolicy.so"), to: folder + "/libJetsamPolicy.so")
        let policy = """
            path = "\(folder)/libJetsamPolicy.so"
            deadline = "5s"
            options = { protect = ["db"] }

            """
        let apps = ShortMemory.app("db", 60) + ShortMemory.app("early", 4) + ShortMemory.app("late", 30)
        let toml = Governed.toml([("jetsam", policy)], apps: ShortMemory.head + apps)
        try ShortMemory.with(toml) { daemon, kernel throws in
            try daemon.waitForPolicy("jetsam", "is there") { $0.state == "ready" }
            try daemon.bring(["db": "suspended", "early": "suspended", "late": "suspended"])
            let db = try daemon.summary("db").pid
            kernel.setAvailable(ShortMemory.warning)
            let end = try daemon.waitForNews("0 bytes more are available without late")
            #expect(try daemon.endings() == ["evict early", "evict late"])
            let early = try daemon.waitForStep("evict", "early").text
            #expect(early.contains("jetsam: band suspended"), "\(early)")
            // It would be its turn, and there was time for it.
            kernel.setAvailable(ShortMemory.critical)
            let left = try daemon.waitForNews("no app may be evicted").text
            #expect(left.contains("left alone: db") && left.contains("the policies do not name it"), "\(left)")
            #expect(try daemon.summary("db").pid == db && daemon.summary("db").state == "suspended")
            #expect(end.reason == "freed")
            kernel.setAvailable(ShortMemory.enough)
            try daemon.waitUntilEnough()
        }
    }
}
