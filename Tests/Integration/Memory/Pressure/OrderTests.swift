// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import Testing
import TorporAPI

@Suite("Short memory: who goes, in which order") struct MemoryOrderTests {
    @Test("Suspended apps by priority and size, then the background; who is in use, required or protected stays")
    func order() throws {
        let apps =
            ShortMemory.app("web", 4, "requires = [\"db\"]")
            + ShortMemory.app("db", 4, "priority = -1")
            + ShortMemory.app("back", 4)
            + ShortMemory.app("small", 4)
            + ShortMemory.app("large", 40)
            + ShortMemory.app("cheap", 4, "priority = -1")
            + ShortMemory.app("kept", 60, "priority = -5\nevict = \"never\"")
        try ShortMemory.with(apps) { daemon, kernel throws in
            try daemon.bring([
                "web": "active", "back": "background", "small": "suspended", "large": "suspended",
                "cheap": "suspended", "kept": "suspended",
            ])
            try daemon.done(.background, "db")
            let web = try daemon.summary("web").pid
            kernel.setAvailable(ShortMemory.critical)
            try daemon.waitForNews("no app may be evicted")
            #expect(try daemon.endings() == ["evict cheap", "evict large", "evict small", "end-background back"])
            for app in ["cheap", "large", "small", "back"] { #expect(try daemon.isEvicted(app), "\(app)") }
            #expect(try daemon.summary("web").pid == web && daemon.summary("web").state == "active")
            #expect(try daemon.summary("db").state == "background")
            #expect(try daemon.summary("kept").state == "suspended")
            try explained(daemon)
            kernel.setAvailable(ShortMemory.enough)
            try daemon.waitUntilEnough()
        }
    }

    /// Whoever reads the events knows what was measured, who was chosen, and who was passed over and why.
    private func explained(_ daemon: Daemon) throws {
        let short = try daemon.waitForNews("memory is short (critical)")
        #expect(short.text.contains("of 8192 MiB available (3 %), no swap"), "\(short.text)")
        let large = try daemon.waitForStep("evict", "large").text
        for part in ["memory is short (critical)", "it is suspended", "passed over: kept (evict = \"never\")"] {
            #expect(large.contains(part), "\(large)")
        }
        #expect(large.contains(#/has (4|5)\d MiB/#), "40 MiB, and what a Python has: \(large)")
        #expect(try daemon.waitForStep("evict", "cheap").text.contains("priority -1"))
        let back = try daemon.waitForStep("end-background", "back").text
        #expect(back.contains("kept (evict = \"never\"), db (a running app requires it)"), "\(back)")
        #expect(try daemon.waitForNews("more are available without large").reason == "freed")
        let end = try daemon.waitForNews("no app may be evicted").text
        #expect(end.contains("left alone: kept"), "\(end)")
    }

    @Test("Inactive apps after the background, an active one only where last_resort says so, and last")
    func lastResort() throws {
        let apps =
            ShortMemory.app("vital", 40) + ShortMemory.app("spare", 4, "last_resort = true\npriority = -9")
            + ShortMemory.app("paused") + ShortMemory.app("back", 4, "priority = 9")
        try ShortMemory.with(apps) { daemon, kernel throws in
            try daemon.bring(["vital": "active", "spare": "active", "paused": "inactive", "back": "background"])
            kernel.setAvailable(ShortMemory.critical)
            try daemon.waitForNews("no app may be evicted")
            #expect(try daemon.endings() == ["end-background back", "end-inactive paused", "end-active spare"])
            #expect(try daemon.summary("vital").state == "active")
            let spare = try daemon.waitForStep("end-active", "spare").text
            // It was asked, as everybody who runs is.
            #expect(daemon.records("spare").contains("SIGTERM"), "\(spare)")
            #expect(try daemon.isEvicted("spare"))
        }
    }

    @Test("At a warning suspended apps go, when it lasts; whoever runs is left alone however long it does")
    func warning() throws {
        let apps = ShortMemory.app("back") + ShortMemory.app("asleep") + ShortMemory.app("web")
        try ShortMemory.with(apps) { daemon, kernel throws in
            try daemon.bring(["web": "active", "back": "background", "asleep": "suspended"])
            kernel.setAvailable(ShortMemory.warning)
            let short = try daemon.waitForNews("memory is short (warning)")
            let evicted = try daemon.waitForStep("evict", "asleep")
            #expect(evicted.at - short.at >= 900_000, "it waited for it to last")
            try daemon.eventually("it is gone") { try daemon.isEvicted("asleep") }
            // Three settling times.
            try kernel.readings().wait(for: 15)
            #expect(try daemon.endings() == ["evict asleep"])
            #expect(try daemon.summary("back").state == "background")
            #expect(try daemon.memory().level == "warning")
        }
    }

    @Test("One at a time: when one was enough, nobody else goes")
    func enough() throws {
        let apps = ShortMemory.app("one", 40) + ShortMemory.app("two", 8)
        try ShortMemory.with(apps) { daemon, kernel throws in
            try daemon.bring(["one": "suspended", "two": "suspended"])
            kernel.setAvailable(ShortMemory.critical)
            try daemon.waitForStep("evict", "one")
            kernel.setAvailable(0.2)
            try daemon.waitUntilEnough()
            #expect(try daemon.endings() == ["evict one"])
            let freed = try daemon.waitForNews("more are available without one")
            #expect(freed.text.contains("1392 MiB more") || freed.text.contains("1393 MiB more"), "\(freed.text)")
            #expect(try daemon.summary("two").state == "suspended")
        }
    }

    @Test("What would be done is what is done: the rehearsal and the events agree")
    func rehearsed() throws {
        let apps =
            ShortMemory.app("a", 8) + ShortMemory.app("b", 24) + ShortMemory.app("c", 4, "evict = \"never\"")
            + ShortMemory.app("d")
        try ShortMemory.with(apps) { daemon, kernel throws in
            try daemon.bring(["a": "suspended", "b": "suspended", "c": "suspended", "d": "background"])
            let status = try daemon.memory()
            #expect(status.level == "none" && status.totalBytes == 8 << 30 && status.swapTotalBytes == 0)
            #expect(status.apps.map(\.app) == ["b", "a", "c", "d"])
            #expect(status.apps[2].protection == "evict = \"never\"" && status.apps[0].protection == nil)
            #expect(status.apps[0].residentBytes > 24 << 20 && status.apps[0].residentBytes < 48 << 20)
            let rehearsed = status.steps.map { "\($0.rung) \($0.apps.joined(separator: ","))" }
            #expect(rehearsed == ["evict b", "evict a", "end-background d"])
            #expect(try daemon.steps().isEmpty, "a rehearsal does nothing")
            kernel.setAvailable(ShortMemory.critical)
            try daemon.waitForNews("no app may be evicted")
            #expect(try daemon.endings() == rehearsed)
        }
    }
}
