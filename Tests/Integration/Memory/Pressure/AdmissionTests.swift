// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import Testing
import TorporAPI

@Suite("Short memory: launches that need some") struct MemoryAdmissionTests {
    private static let gibibyte: UInt64 = 1 << 30
    /// What is kept free on a machine of 8 GiB: a twentieth, and a little to be on the safe side.
    private static let kept = UInt64(0.05 * Double(8 << 30)) + (1 << 20)

    private static func big(_ name: String, _ keys: String = "") -> String {
        ShortMemory.app(name, 4, "memory_needed = \"2GiB\"\n" + keys)
    }

    private func launch(_ daemon: Daemon, _ app: String) throws { _ = try daemon.verb(.start, app) { $0.wait = false } }

    @Test("A launch waits until there is what it needs, says so, and is admitted then") func waits() throws {
        let room: (KernelFiles) -> Void = { $0.available = Self.gibibyte }
        try ShortMemory.with(Self.big("big") + ShortMemory.app("small"), machine: room) { daemon, kernel throws in
            try launch(daemon, "big")
            let event = try daemon.waitForEvent("big", "waits to be launched")
            #expect(event.text.contains("it needs 2048 MiB (memory_needed), and 614 MiB are free"), "\(event.text)")
            #expect(event.text.contains("of 1024 MiB that are available 410 MiB are kept free"), "\(event.text)")
            #expect(event.kind == "memory")
            #expect(try daemon.status("big").heldBack?.contains("memory_needed") == true)
            // Others are not held up.
            try daemon.bring(["small": "active"])
            #expect(daemon.processes(of: "big").isEmpty)
            kernel.available = Self.kept + 2 * Self.gibibyte
            try daemon.waitFor("big", "active")
            #expect(try daemon.status("big").heldBack == nil)
            #expect(try daemon.events("big").count { $0.text.contains("waits to be launched") } == 1)
        }
    }

    @Test("Where there is enough nobody waits, and what was promised to one is not promised to the next")
    func promised() throws {
        let room: (KernelFiles) -> Void = { $0.available = 3 * Self.gibibyte }
        try ShortMemory.with(Self.big("one") + Self.big("two"), machine: room) { daemon, kernel throws in
            try daemon.bring(["one": "active"])
            try launch(daemon, "two")
            // The kernel still says 3 GiB: the first one has not taken yet what it will.
            try daemon.waitForEvent("two", "waits to be launched")
            #expect(kernel.available == 3 * Self.gibibyte)
            try daemon.done(.stop, "one")
            try daemon.waitFor("two", "active")
        }
    }

    @Test("A promise ends with its run: who is stopped and started, or restarted, does not wait for its own memory")
    func endedRun() throws {
        let room: (KernelFiles) -> Void = { $0.available = 3 * Self.gibibyte }
        try ShortMemory.with(Self.big("one") + ShortMemory.app("old", 32), machine: room) { daemon, _ throws in
            try daemon.bring(["old": "suspended", "one": "active"])
            try daemon.done(.stop, "one")
            try daemon.done(.start, "one")
            try daemon.done(.restart, "one")
            #expect(try !daemon.events("one").contains { $0.text.contains("waits to be launched") })
            #expect(try daemon.summary("old").state == "suspended")
        }
    }

    @Test("Room is made for it: who sleeps goes, when that is enough; who is active stays") func makesRoom() throws {
        let room: (KernelFiles) -> Void = { $0.available = Self.kept + 2 * Self.gibibyte - (16 << 20) }
        let apps = Self.big("big") + ShortMemory.app("old", 32) + ShortMemory.app("web", 32)
        try ShortMemory.with(apps, machine: room) { daemon, kernel throws in
            try daemon.bring(["web": "active", "old": "suspended"])
            try launch(daemon, "big")
            let event = try daemon.waitForStep("evict", "old")
            #expect(event.text.contains("big waits to be launched and needs 2048 MiB"), "\(event.text)")
            kernel.available += 40 << 20
            try daemon.waitFor("big", "active")
            // Memory was there before it was quite gone.
            try daemon.eventually("it is gone") { try daemon.isEvicted("old") }
            #expect(try daemon.summary("web").state == "active")
            #expect(try daemon.memory().level == "none", "the machine was never short")
        }
    }

    @Test("One that was killed in its sleep is launched again after it, under the next torpord too")
    func killedAsleep() throws {
        let room: (KernelFiles) -> Void = { $0.available = Self.gibibyte }
        // Without a connection nothing wakes it.
        let keys = "background_modes = [\"voip\"]\nrestart = \"always\""
        let apps = Self.big("big") + ShortMemory.app("old", 4, keys)
        try ShortMemory.with(apps, machine: room) { daemon, kernel throws in
            try daemon.bring(["old": "suspended"])
            try launch(daemon, "big")
            try daemon.waitForEvent("big", "waits to be launched")
            kill(try #require(daemon.processes(of: "old").first), SIGKILL)
            try daemon.eventually("it is gone") { try daemon.isEvicted("old") }
            let text = "woken by its end while suspended"
            #expect(try !daemon.events("old").contains { $0.text.contains(text) })
            try daemon.replaceTorpord()
            kernel.available = Self.kept + 2 * Self.gibibyte
            try daemon.waitForEvent("old", text)
            try daemon.waitFor("big", "active")
        }
    }

    @Test("One that went for it, and whose port nobody could keep, is launched again after it and not before")
    func notInVain() throws {
        let room: (KernelFiles) -> Void = { $0.available = Self.kept + 2 * Self.gibibyte - (16 << 20) }
        // It listens nowhere, so that there is no port to be held.
        let apps = Self.big("big") + ShortMemory.app("old", 32, "wake_on_connect = true")
        try ShortMemory.with(apps, machine: room) { daemon, kernel throws in
            try daemon.bring(["old": "suspended"])
            try launch(daemon, "big")
            try daemon.waitForStep("evict", "old")
            try daemon.eventually("it is gone") { try daemon.isEvicted("old") }
            try kernel.readings(of: "meminfo").wait(for: 4)
            #expect(daemon.processes(of: "old").isEmpty)
            #expect(try daemon.summary("big").state == "not-running")
            kernel.available += 40 << 20
            try daemon.waitFor("big", "active")
            try daemon.waitForEvent("old", "woken by the loss of its port")
        }
    }

    @Test("Where ending everybody would not be enough, nobody goes for it") func inVain() throws {
        let room: (KernelFiles) -> Void = { $0.available = Self.gibibyte }
        let apps = Self.big("big") + Self.big("later") + ShortMemory.app("old", 32)
        try ShortMemory.with(apps, machine: room) { daemon, kernel throws in
            try daemon.bring(["old": "suspended"])
            try launch(daemon, "big")
            try daemon.waitForEvent("big", "waits to be launched")
            // Not more than 25 times a second: it looks for room again every half a second.
            try kernel.readings(of: "meminfo").wait(for: 20)
            #expect(try daemon.endings().isEmpty && daemon.summary("old").state == "suspended")
            // One that waits can be told not to.
            try daemon.done(.stop, "big")
            kernel.available = 6 * Self.gibibyte
            // Whoever comes later is admitted after those that wait.
            try launch(daemon, "later")
            try daemon.waitFor("later", "active")
            #expect(try daemon.summary("big").state == "not-running" && daemon.records("big").isEmpty)
        }
    }

    @Test("For one in the foreground who is in the background goes too; for one in the background it does not")
    func awake() throws {
        let room: (KernelFiles) -> Void = { $0.available = Self.kept + 2 * Self.gibibyte - (16 << 20) }
        try ShortMemory.with(Self.big("big") + ShortMemory.app("back", 32), machine: room) { daemon, kernel throws in
            try daemon.bring(["back": "background"])
            _ = try daemon.verb(.start, "big") {
                $0.wait = false
                $0.background = true
            }
            try daemon.waitForEvent("big", "waits to be launched")
            try kernel.readings(of: "meminfo").wait(for: 20)
            #expect(try daemon.endings().isEmpty)
            try launch(daemon, "big")
            try daemon.waitForStep("end-background", "back")
            kernel.available += 40 << 20
            try daemon.waitFor("big", "active")
        }
    }

    @Test("A machine that is too small is a refusal in words, at once") func tooSmall() throws {
        let apps = ShortMemory.app("huge", 4, "memory_needed = \"9GiB\"") + ShortMemory.app("old", 32)
        try ShortMemory.with(apps, machine: { $0.available = 7 * Self.gibibyte }) { daemon, _ throws in
            try daemon.bring(["old": "suspended"])
            for verb in [Verb.start, .restart] {
                let result = try daemon.verb(verb, "huge")
                #expect(!result.ok && result.error == "launch-failed")
                let message = result.message ?? ""
                let why = "huge was not launched: it needs 9216 MiB (memory_needed), and the machine has 8192 MiB"
                #expect(message.hasPrefix(why), "\(message)")
            }
            #expect(try daemon.summary("huge").state == "not-running" && daemon.endings().isEmpty)
        }
    }

    @Test("A person who insists is not held up: start --force, from the start and while it waits") func forced() throws
    {
        let apps = Self.big("one") + Self.big("two") + ShortMemory.app("huge", 4, "memory_needed = \"9GiB\"")
        try ShortMemory.with(apps, machine: { $0.available = Self.gibibyte }) { daemon, _ throws in
            try daemon.done(.start, "one") { $0.force = true }
            try launch(daemon, "two")
            try daemon.waitForEvent("two", "waits to be launched")
            try daemon.done(.start, "two") { $0.force = true }
            #expect(try daemon.summary("two").state == "active")
            try daemon.done(.start, "huge") { $0.force = true }
            // Only this time.
            try daemon.done(.stop, "one")
            try launch(daemon, "one")
            try daemon.waitForEvent("one", "waits to be launched")
        }
    }

    @Test("What a requirement needs is waited for by whoever requires it") func required() throws {
        let apps = Self.big("db") + ShortMemory.app("web", 4, "requires = [\"db\"]")
        try ShortMemory.with(apps, machine: { $0.available = Self.gibibyte }) { daemon, kernel throws in
            try launch(daemon, "web")
            try daemon.waitForEvent("db", "waits to be launched")
            #expect(daemon.processes(of: "web").isEmpty)
            kernel.available = 4 * Self.gibibyte
            try daemon.waitFor("web", "active")
        }
    }

    @Test("torpord is killed while a launch waits: the next one goes on waiting, and launches it once") func replaced()
        throws
    {
        let room: (KernelFiles) -> Void = { $0.available = Self.gibibyte }
        try ShortMemory.with(Self.big("big"), machine: room) { daemon, kernel throws in
            try launch(daemon, "big")
            try daemon.waitForEvent("big", "waits to be launched")
            let torpord = try daemon.torpord()
            kill(torpord, SIGKILL)
            try daemon.eventually("another torpord answers") {
                (try? daemon.torpord()) != torpord && (try? daemon.list()) != nil
            }
            try daemon.eventually("it waits again") { try daemon.status("big").heldBack != nil }
            #expect(daemon.records("big").isEmpty)
            kernel.available = 4 * Self.gibibyte
            try daemon.waitFor("big", "active")
            try daemon.waitForRecord("big", "up")
            #expect(daemon.records("big") == ["up"])
        }
    }

    @Test("Switched off by an apply, nobody waits any more") func disabled() throws {
        let room: (KernelFiles) -> Void = { $0.available = Self.gibibyte }
        try ShortMemory.with(Self.big("big"), machine: room) { daemon, _ throws in
            try launch(daemon, "big")
            try daemon.waitForEvent("big", "waits to be launched")
            let off = ShortMemory.head.replacingOccurrences(of: "settling", with: "enabled = false\nsettling")
            try daemon.apply(off + Self.big("big"))
            try daemon.waitFor("big", "active")
        }
    }
}
