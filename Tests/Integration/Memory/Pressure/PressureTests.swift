// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import Testing
import TorporAPI

@Suite("Short memory: pressure that comes and goes, and kernels that say little") struct MemoryPressureTests {
    @Test("Bursts of warnings that do not last kill nobody, however often they come") func flapping() throws {
        try ShortMemory.with(ShortMemory.app("asleep") + ShortMemory.app("web")) { daemon, kernel throws in
            try daemon.bring(["asleep": "suspended", "web": "active"])
            for _ in 0..<6 {
                kernel.setAvailable(ShortMemory.warning)
                try kernel.readings().wait(for: 2)
                kernel.setAvailable(ShortMemory.enough)
                // More than half a second: what comes then is another burst.
                try kernel.readings().wait(for: 8)
            }
            #expect(try daemon.events().contains { $0.text.contains("memory is short (warning)") }, "it was seen")
            #expect(try daemon.endings().isEmpty)
            #expect(try daemon.summary("asleep").state == "suspended")
            // The same, when it lasts.
            kernel.setAvailable(ShortMemory.warning)
            try daemon.waitForStep("evict", "asleep")
        }
    }

    @Test("Work that waits for memory is enough, while memory seems available: a warning, then critical") func stalls()
        throws
    {
        let head = ShortMemory.head.replacingOccurrences(
            of: "settling",
            with: "critical_stall = \"50ms\"\nwarning_stall = \"50ms\"\nsettling"
        )
        let apps = ShortMemory.app("asleep") + ShortMemory.app("back")
        try ShortMemory.with(head + apps, machine: { $0.setAvailable(0.25) }) { daemon, kernel throws in
            try daemon.bring(["asleep": "suspended", "back": "background"])
            var last = Clock.monotonic()
            /// All that has to be for the next moments: a part of them is waited, and pages are looked for.
            func press(some: Double, full: Double) {
                let now = Clock.monotonic()
                let span = Double((now - last).microseconds)
                last = now
                kernel.counters["pgscan_kswapd", default: 0] += 100
                kernel.stall(some: .microseconds(Int64(span * some)), full: .microseconds(Int64(span * full)))
            }
            try daemon.eventually("the sleeping one goes") {
                press(some: 0.3, full: 0)
                return try daemon.isEvicted("asleep")
            }
            let short = try daemon.waitForNews("memory is short (warning)")
            #expect(short.text.contains("some task waited"), "\(short.text)")
            #expect(try daemon.summary("back").state == "background")
            try daemon.eventually("the one in the background goes") {
                press(some: 0.3, full: 0.2)
                return try daemon.isEvicted("back")
            }
            try daemon.waitUntilEnough()
        }
    }

    @Test("A cgroup that waits at its own limit is not the machine's want: nobody goes for it") func ownLimit() throws {
        try ShortMemory.with(ShortMemory.app("asleep"), machine: { $0.setAvailable(0.25) }) { daemon, kernel throws in
            try daemon.bring(["asleep": "suspended"])
            let looks = try kernel.readings()
            var last = Clock.monotonic()
            try daemon.eventually("it was looked at six times") {
                let now = Clock.monotonic()
                kernel.stall(some: now - last, full: now - last)
                last = now
                return looks.count >= 6
            }
            #expect(try daemon.events().allSatisfy { $0.kind != "memory" && !$0.text.contains("memory is short") })
            #expect(try daemon.summary("asleep").state == "suspended")
        }
    }

    @Test("A kernel without PSI and counters: memory available alone is enough to go by") func withoutPressure() throws
    {
        let bare: (KernelFiles) throws -> Void = { kernel in
            kernel.removePressure()
            try File.remove(kernel.root + "/proc/vmstat")
        }
        try ShortMemory.with(ShortMemory.app("asleep") + ShortMemory.app("web"), machine: bare) {
            daemon,
            kernel throws in
            try daemon.bring(["asleep": "suspended", "web": "active"])
            kernel.setAvailable(ShortMemory.critical)
            try daemon.waitForStep("evict", "asleep")
            let short = try daemon.waitForNews("memory is short (critical)")
            #expect(!short.text.contains("waited"), "\(short.text)")
            #expect(try daemon.memory().somePercent == nil)
            kernel.setAvailable(ShortMemory.enough)
            try daemon.waitUntilEnough()
            #expect(try daemon.summary("web").state == "active")
        }
    }

    @Test("A kernel that tells nothing of memory: apps run as ever, and it is said why nothing is done") func nothing()
        throws
    {
        let none: (KernelFiles) throws -> Void = { try File.removeTree($0.root + "/proc") }
        try ShortMemory.with(ShortMemory.app("web", 4, "memory_needed = \"1TiB\""), machine: none) { daemon, _ throws in
            try daemon.bring(["web": "active"])
            #expect(try daemon.memory().trouble == "/proc/meminfo cannot be read")
            try daemon.done(.suspend, "web")
            try daemon.done(.foreground, "web")
        }
    }

    @Test("Switched off, nothing is done; switched on by an apply, it is") func disabled() throws {
        let app = ShortMemory.app("asleep")
        let off = ShortMemory.head.replacingOccurrences(of: "settling", with: "enabled = false\nsettling")
        try ShortMemory.with(off + app) { daemon, kernel throws in
            try daemon.bring(["asleep": "suspended"])
            let control = try Daemon(
                ShortMemory.head + app,
                files: ["app.py": ShortMemory.program],
                environment: ["TORPOR_KERNEL_FILES": kernel.root]
            )
            try control.waitUntilItAnswers()
            try control.bring(["asleep": "suspended"])
            kernel.setAvailable(ShortMemory.critical)
            // One that is switched on, on the same machine, does it.
            try control.waitForStep("evict", "asleep")
            try control.stop()
            #expect(try daemon.summary("asleep").state == "suspended")
            #expect(try daemon.memory().trouble == "[supervisor.memory] enabled = false")
            try daemon.apply(ShortMemory.head + app)
            try daemon.waitForStep("evict", "asleep")
            #expect(try daemon.memory().trouble == nil)
        }
    }

    @Test("The files are cut off while they are read, or full of nonsense: nothing is done, and torpord lives")
    func nonsense() throws {
        try ShortMemory.with(ShortMemory.app("asleep")) { daemon, kernel throws in
            try daemon.bring(["asleep": "suspended"])
            let torpord = try daemon.torpord()
            for text in [
                "", "MemTotal:", "MemTotal: x kB\nMemAvailable: -1 kB\n", "MemTotal: 99999999999999999999999 kB\n",
            ] {
                for name in ["meminfo", "vmstat", "pressure/memory", "swaps"] {
                    try kernel.write("/proc/" + name, text)
                }
                try kernel.readings(of: "meminfo").wait(for: 2)
            }
            #expect(try daemon.torpord() == torpord && daemon.summary("asleep").state == "suspended")
            // As soon as they say something again, it counts.
            kernel.setAvailable(ShortMemory.critical)
            try daemon.waitForStep("evict", "asleep")
        }
    }
}
