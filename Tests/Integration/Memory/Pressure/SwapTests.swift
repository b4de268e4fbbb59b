// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Short memory: swap") struct MemorySwapTests {
    private static func swap(_ free: Double) -> (KernelFiles) throws -> Void {
        { kernel in
            kernel.swapTotal = 1 << 30
            kernel.swapUsed = UInt64((1 - free) * Double(1 << 30))
        }
    }

    @Test(
        "Where swap has room, sleeping apps go there before anybody is ended",
        .enabled(if: Users.isRoot, "only root may page others out")
    )
    func room() throws {
        let apps = ShortMemory.app("asleep", 24) + ShortMemory.app("other", 4) + ShortMemory.app("web", 4)
        try ShortMemory.with(apps, machine: Self.swap(0.08)) { daemon, kernel throws in
            try daemon.bring(["web": "active", "asleep": "suspended", "other": "suspended"])
            kernel.setAvailable(ShortMemory.warning)
            try daemon.waitForStep("evict", "other")
            let steps = try daemon.steps().filter { !$0.hasPrefix("tell") }
            #expect(Set(steps.prefix(2)) == ["page-out asleep", "page-out other"], "\(steps)")
            #expect(steps.dropFirst(2) == ["evict asleep", "evict other"], "each goes to swap once")
            #expect(try daemon.summary("web").state == "active")
        }
    }

    @Test("Where swap is full, nothing is paged out, neither for want of memory nor after a while") func full() throws {
        let apps = ShortMemory.app("asleep", 8, "page_out_after = \"50ms\"") + ShortMemory.app("web")
        try ShortMemory.with(apps, machine: Self.swap(0)) { daemon, kernel throws in
            try daemon.bring(["asleep": "suspended", "web": "active"])
            kernel.setAvailable(ShortMemory.warning)
            try daemon.waitForStep("evict", "asleep")
            #expect(try daemon.events("asleep").allSatisfy { !$0.text.contains("paged out") })
            let short = try daemon.waitForNews("memory is short (warning)")
            #expect(short.text.contains("swap 0 % free"), "\(short.text)")
        }
    }

    @Test("Little memory is no want while swap is free") func plenty() throws {
        try ShortMemory.with(ShortMemory.app("asleep"), machine: Self.swap(0.9)) { daemon, kernel throws in
            try daemon.bring(["asleep": "suspended"])
            kernel.setAvailable(ShortMemory.critical)
            try kernel.readings().wait(for: 5)
            #expect(try daemon.endings().isEmpty && daemon.memory().level == "none")
            // Until it is used up too.
            kernel.swapUsed = kernel.swapTotal
            try daemon.waitForStep("evict", "asleep")
        }
    }

    // MARK: With a swap that is there

    private static let hasSwap =
        geteuid() == 0 && File.exists("/sys/class/zram-control/hot_add") && MemoryAdvice.support == .available

    @Test(
        "After page_out_after an app's memory is in swap; it comes back when it is wanted",
        .enabled(if: hasSwap, "root makes one of zram")
    )
    func afterAWhile() throws {
        let swap = try ZramSwap()
        defer { withExtendedLifetime(swap) {} }
        let apps = ShortMemory.app("asleep", 32, "page_out_after = \"200ms\"") + ShortMemory.app("own", 32)
        try ShortMemory.with(apps, machine: Self.swap(1)) { daemon, _ throws in
            try daemon.bring(["asleep": "suspended", "own": "suspended"])
            let event = try daemon.waitForStep("page-out", "asleep")
            #expect(event.text.contains("suspended for 200ms"), "\(event.text)")
            let apps = try daemon.memory().apps
            let asleep = try #require(apps.first { $0.app == "asleep" })
            #expect(asleep.swappedBytes >= 32 << 20 && asleep.residentBytes < 8 << 20, "\(asleep)")
            let own = try #require(apps.first { $0.app == "own" })
            #expect(own.swappedBytes < 8 << 20, "it did not ask for it: \(own)")
            let pid = try #require(try daemon.summary("asleep").pid)
            try daemon.done(.foreground, "asleep")
            try daemon.done(.stop, "asleep")
            #expect(daemon.records("asleep") == ["up", "SIGTERM"], "it went on as if nothing had happened")
            #expect(try daemon.events("asleep").count { $0.reason == "page-out" } == 1, "\(pid)")
        }
    }

    @Test(
        "Resumed while it is being paged out, nothing more of it goes to swap",
        .enabled(if: hasSwap, "root makes one of zram")
    )
    func resumed() throws {
        let swap = try ZramSwap(size: 256 << 20)
        defer { withExtendedLifetime(swap) {} }
        let app = ShortMemory.app("asleep", 96, "page_out_after = \"1ms\"")
        try ShortMemory.with(app, machine: Self.swap(1)) { daemon, _ throws in
            try daemon.bring(["asleep": "suspended"])
            let pid = Int32(try #require(try daemon.summary("asleep").pid))
            func swapped() throws -> UInt64 { try ProcFS.memory(pid).swapped }
            let torpord = try daemon.torpord()
            // A thread does it, which is there for nothing else here.
            func pagesOut() throws -> Bool {
                try ProcFS.tasks(torpord).contains { (try? ProcFS.taskStat(torpord, $0).comm) == "memory" }
            }
            for _ in 0..<5 {
                try daemon.done(.resume, "asleep")
                let before = try swapped()
                // The step of 8 MiB that was under way comes to its end.
                try daemon.eventually("nothing is paged out any more") { try !pagesOut() }
                #expect(try swapped() <= before + (9 << 20))
                try daemon.done(.suspend, "asleep")
            }
            try daemon.eventually("left alone, it is paged out") { try swapped() > 80 << 20 }
        }
    }
}
