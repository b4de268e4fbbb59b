// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import KernelFiles
import Lifecycle
import Linux
import Notify
import Testing

@testable import MemoryPressure

@Suite("What apps give up without an end") struct GivingUpMemoryTests {
    /// A descriptor in memory with so many bytes.
    private func file(_ bytes: Int) throws -> Descriptor {
        let file = try Memory.file(named: "purge-test")
        try Descriptor.writeAll(file.raw, [UInt8](repeating: 7, count: bytes))
        return file
    }

    @Test("What is purgeable in an app's store is dropped, once, and nothing else of it") func purges() throws {
        let memory = try FakeMemory(["a": "evict = \"never\""])
        let (kept, dropped) = (try file(1 << 16), try file(1 << 20))
        let app = memory.shell.app("a")
        _ = app.store.add(kept, name: "cache", poll: false)
        _ = app.store.add(dropped, name: "purgeable-cache", poll: false)
        try memory.asleep("a")
        memory.kernel.setAvailable(0.07)
        memory.watch.configure()
        try memory.pass(.seconds(3))
        #expect(memory.host.letGo == ["a purgeable-cache"])
        #expect(app.store.entries.map(\.name) == ["cache"])
        #expect(
            memory.told(of: "a") == ["drops 1024 KiB of purgeable memory: memory is short (warning)"]
        )
        #expect(try File.read(dropped.raw, at: 0, maximum: 1 << 21).allSatisfy { $0 == 0 })
        #expect(try File.read(kept.raw, at: 0, maximum: 1 << 21) == [UInt8](repeating: 7, count: 1 << 16))
    }

    @Test("Where there is no time to lose nothing is purged: whoever can be ended is") func urgent() throws {
        let memory = try FakeMemory(["a": ""])
        _ = memory.shell.app("a").store.add(try file(1 << 16), name: "purgeable", poll: false)
        try memory.asleep("a")
        memory.kernel.setAvailable(0.03)
        memory.watch.configure()
        try memory.pass(.milliseconds(300))
        #expect(memory.alive == [] && memory.host.letGo == [])
    }

    // MARK: Page-outs: of apps that have nothing, since what is paged out is real

    private func sleepers(_ names: [String], _ swap: UInt64 = 4 << 30) throws -> FakeMemory {
        let memory =
            switch names.count {
            case 1: try FakeMemory(["a": "page_out_after = \"10s\""], hasCgroups: false)
            default:
                try FakeMemory(
                    ["a": "page_out_after = \"10s\"", "b": "page_out_after = \"3s\"", "c": ""],
                    hasCgroups: false
                )
            }
        memory.kernel.swapTotal = swap
        memory.watch.configure()
        for name in names {
            try memory.shell.start(name)
            try memory.shell.suspend(name)
        }
        return memory
    }

    private func isPagedOut(_ memory: FakeMemory, _ name: String) -> Bool {
        memory.told(of: name).contains { $0.hasPrefix("is paged out") }
    }

    @Test("A suspended app is paged out when it has slept so long as it says, each at its time") func after() throws {
        let memory = try sleepers(["a", "b", "c"])
        try memory.pass(.milliseconds(2999))
        #expect(!isPagedOut(memory, "b"))
        try memory.pass(.milliseconds(1))
        #expect(isPagedOut(memory, "b") && !isPagedOut(memory, "a"))
        try memory.pass(.milliseconds(6999))
        #expect(!isPagedOut(memory, "a"))
        try memory.pass(.seconds(60))
        #expect(memory.told(of: "a") == ["is paged out, 0 bytes of 0 bytes: suspended for 10s"])
        #expect(memory.told(of: "b").count == 1 && memory.told(of: "c").isEmpty)
    }

    @Test("Whoever is awake in between begins its time anew") func awakeInBetween() throws {
        let memory = try sleepers(["a"])
        try memory.pass(.seconds(9))
        memory.watch.continues(memory.shell.app("a"))
        try memory.shell.request(.resume, "a")
        try memory.pass(.seconds(2))
        #expect(!isPagedOut(memory, "a"))
        try memory.shell.suspend("a")
        try memory.pass(.milliseconds(9999))
        #expect(!isPagedOut(memory, "a"))
        try memory.pass(.milliseconds(1))
        #expect(isPagedOut(memory, "a"))
    }

    @Test("One that has ended, or where swap is full, is not") func notAnyMore() throws {
        let memory = try sleepers(["a"])
        try memory.shell.request(.stop(.stopped), "a")
        try memory.pass(.seconds(20))
        #expect(!isPagedOut(memory, "a"))
        #expect(memory.watch.pageOuts.next == nil)
        let full = try sleepers(["a"])
        full.kernel.swapUsed = (4 << 30) / 100 * 96
        try full.pass(.seconds(20))
        #expect(!isPagedOut(full, "a"))
    }

    @Test("It goes on by the same rule where memory is switched off") func switchedOff() throws {
        let memory = try sleepers(["a"])
        memory.host.memoryRules.enabled = false
        memory.watch.configure()
        try memory.pass(.seconds(10))
        #expect(isPagedOut(memory, "a"))
    }
}
