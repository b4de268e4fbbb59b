// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import KernelFiles
import Lifecycle
import Linux
import Testing

@testable import MemoryPressure

@Suite("When memory counts as short") struct MemoryLevelTests {
    @Test("While there is enough it looks about once a second, and ten times a second while memory is short")
    func howOften() throws {
        let memory = try FakeMemory()
        memory.watch.configure()
        let readings = try memory.kernel.readings()
        try memory.pass(.seconds(10))
        #expect((10...13).contains(readings.count), "\(readings.count)")
        memory.kernel.setAvailable(0.07)
        try memory.pass(.seconds(1))
        let before = readings.count
        try memory.pass(.seconds(2))
        #expect((19...21).contains(readings.count - before), "\(readings.count - before)")
        #expect(memory.host.levels == [.warning])
    }

    @Test("The less is left, the sooner it looks again") func sooner() throws {
        let memory = try FakeMemory()
        memory.kernel.setAvailable(0.11)
        memory.watch.configure()
        let readings = try memory.kernel.readings()
        try memory.pass(.seconds(1))
        #expect((9...11).contains(readings.count), "\(readings.count)")
        #expect(memory.host.levels.isEmpty)
    }

    @Test("A level rises at once, and is over when there was no sign of it for two seconds") func risesAndFalls() throws
    {
        let memory = try FakeMemory()
        memory.watch.configure()
        memory.kernel.setAvailable(0.07)
        try memory.pass(.seconds(1))
        #expect(memory.watch.level == .warning)
        memory.kernel.setAvailable(0.03)
        try memory.pass(.milliseconds(100))
        #expect(memory.watch.level == .critical)
        memory.kernel.setAvailable(0.5)
        try memory.pass(.milliseconds(1900))
        #expect(memory.watch.level == .critical && memory.host.timesEnough == 0)
        try memory.pass(.milliseconds(300))
        #expect(memory.host.levels == [.warning, .critical, .none])
        #expect(memory.host.timesEnough == 1)
        let told = memory.told().filter { !$0.contains("no app may be evicted") }
        #expect(told.count == 3)
        #expect(
            told.first?.hasPrefix("memory is short (warning): 573 MiB of 8192 MiB available (7 %), no swap") == true
        )
        #expect(told.last?.hasPrefix("memory is no longer short: 4096 MiB of 8192 MiB available (50 %)") == true)
    }

    @Test("A sign within the two seconds begins them anew, and a weaker one leaves the level where it is")
    func prolonged() throws {
        let memory = try FakeMemory()
        memory.watch.configure()
        memory.kernel.setAvailable(0.03)
        try memory.pass(.seconds(1))
        for _ in 0..<3 {
            memory.kernel.setAvailable(0.5)
            try memory.pass(.milliseconds(1500))
            memory.kernel.setAvailable(0.07)
            try memory.pass(.milliseconds(200))
        }
        #expect(memory.host.levels == [.critical])
    }

    /// What is counted in one look's time, and the level that follows.
    struct Waiting: CustomTestStringConvertible, Sendable {
        var some: Duration = .zero
        var full: Duration = .zero
        var scanned: UInt64 = 1000
        var refaulted: UInt64 = 0
        var available = 0.2
        let level: MemoryLevel
        var testDescription: String { "\(some) \(full) \(scanned) \(refaulted) \(available): \(level)" }
    }

    @Test(
        "Where work waits memory is short if the machine's is: little is left, or what was taken back is read again",
        arguments: [
            Waiting(some: .milliseconds(11), level: .warning),
            Waiting(some: .milliseconds(9), level: .none),
            Waiting(some: .milliseconds(50), full: .milliseconds(11), level: .critical),
            Waiting(some: .milliseconds(50), full: .milliseconds(9), level: .warning),
            Waiting(some: .milliseconds(50), full: .milliseconds(50), scanned: 0, level: .none),
            Waiting(some: .milliseconds(50), full: .milliseconds(50), available: 0.5, level: .none),
            Waiting(some: .milliseconds(50), refaulted: 100, available: 0.5, level: .none),
            Waiting(some: .milliseconds(50), refaulted: 101, available: 0.5, level: .warning),
        ]
    )
    func waits(_ waiting: Waiting) throws {
        let memory = try FakeMemory()
        // An episode looks each 100 ms.
        memory.kernel.setAvailable(0.07)
        memory.watch.configure()
        try memory.pass(.milliseconds(100))
        memory.kernel.setAvailable(waiting.available)
        // Long enough that the level has fallen, and not so long that it looks less often.
        try memory.pass(.milliseconds(1950))
        var last: MemoryLevel?
        for _ in 0..<3 {
            memory.kernel.counters["pgscan_kswapd", default: 0] += waiting.scanned
            memory.kernel.counters["workingset_refault_file", default: 0] += waiting.refaulted
            memory.kernel.stall(some: waiting.some, full: waiting.full)
            try memory.pass(.milliseconds(100))
            last = memory.watch.reading.map { memory.watch.rules.level($0) }
        }
        #expect(last == waiting.level, "\(String(describing: memory.watch.reading))")
    }

    @Test("A kernel that keeps no pressure leaves what is available as the sign") func noPressure() throws {
        let memory = try FakeMemory()
        memory.kernel.removePressure()
        memory.watch.configure()
        try memory.pass(.seconds(2))
        #expect(memory.host.levels.isEmpty && memory.watch.reading?.some == nil)
        memory.kernel.setAvailable(0.04)
        try memory.pass(.seconds(1))
        #expect(memory.host.levels == [.critical])
    }

    @Test("Free swap keeps what little is available from being short") func swap() throws {
        let memory = try FakeMemory()
        memory.kernel.swapTotal = 4 << 30
        memory.watch.configure()
        memory.kernel.setAvailable(0.03)
        try memory.pass(.seconds(3))
        #expect(memory.host.levels.isEmpty)
        memory.kernel.swapUsed = (4 << 30) / 100 * 93
        try memory.pass(.seconds(1))
        #expect(memory.host.levels == [.warning])
        memory.kernel.swapUsed = 4 << 30
        try memory.pass(.milliseconds(200))
        #expect(memory.host.levels == [.warning, .critical])
    }

    @Test("A limit around all apps counts where it leaves them less than the machine has") func bound() throws {
        let memory = try FakeMemory()
        try memory.kernel.write("/proc/self/cgroup", "0::/box\n")
        try memory.kernel.write("/sys/fs/cgroup/box/memory.max", "\(1 << 30)\n")
        try memory.kernel.write("/sys/fs/cgroup/box/memory.current", "\(1 << 29)\n")
        memory.watch.configure()
        try memory.pass(.seconds(2))
        #expect(memory.watch.memory()?.total == 1 << 30)
        #expect(memory.host.levels.isEmpty)
        try memory.kernel.write("/sys/fs/cgroup/box/memory.current", "\(1000 << 20)\n")
        try memory.pass(.seconds(1))
        #expect(memory.host.levels == [.critical])
        #expect(memory.watch.reading?.total == 1 << 30)
        // It is taken away: what was said of it is over, and no reading of it is compared with one of the machine.
        try memory.kernel.write("/sys/fs/cgroup/box/memory.max", "max\n")
        memory.watch.configure()
        try memory.pass(.seconds(3))
        #expect(memory.host.levels == [.critical, .none])
    }

    @Test("Of a machine that has no files about memory it says that nothing is done, and looks once they are there")
    func unreadable() throws {
        let memory = try FakeMemory()
        let text = try File.read(memory.kernel.root + "/proc/meminfo")
        try File.remove(memory.kernel.root + "/proc/meminfo")
        memory.watch.configure()
        #expect(memory.watch.trouble == "/proc/meminfo cannot be read")
        try memory.pass(.seconds(5))
        #expect(memory.watch.reading == nil && memory.host.levels.isEmpty)
        try memory.kernel.write("/proc/meminfo", String(decoding: text, as: UTF8.self))
        memory.kernel.setAvailable(0.03)
        memory.watch.configure()
        try memory.pass(.seconds(1))
        #expect(memory.watch.trouble == nil && memory.host.levels == [.critical])
        // They are gone for a while in the midst of it: that is no sign that there is enough.
        try File.remove(memory.kernel.root + "/proc/meminfo")
        try memory.pass(.seconds(5))
        #expect(memory.host.levels == [.critical])
        memory.kernel.setAvailable(0.5)
        try memory.pass(.seconds(4))
        #expect(memory.host.levels == [.critical, .none])
    }

    // MARK: Another configuration

    @Test("Another configuration in the midst of it neither ends it nor has it looked at twice as often")
    func configuredAgain() throws {
        let memory = try FakeMemory()
        memory.watch.configure()
        memory.kernel.setAvailable(0.07)
        try memory.pass(.seconds(1))
        for _ in 0..<3 { memory.watch.configure() }
        let readings = try memory.kernel.readings()
        try memory.pass(.seconds(1))
        #expect((9...11).contains(readings.count), "\(readings.count)")
        #expect(memory.host.levels == [.warning])
        memory.host.memoryRules.rules.warningAvailable = 0.06
        memory.watch.configure()
        try memory.pass(.milliseconds(2300))
        #expect(memory.host.levels == [.warning, .none])
    }

    @Test("Switched off, memory is not short any more, and nobody looks until it is switched on again") func off()
        throws
    {
        let memory = try FakeMemory()
        memory.watch.configure()
        memory.kernel.setAvailable(0.03)
        try memory.pass(.seconds(1))
        memory.host.memoryRules.enabled = false
        memory.watch.configure()
        #expect(memory.host.levels == [.critical, .none] && memory.host.timesEnough == 1)
        #expect(memory.watch.trouble == "[supervisor.memory] enabled = false")
        let readings = try memory.kernel.readings()
        try memory.pass(.seconds(60))
        #expect(readings.count == 0)
        memory.host.memoryRules.enabled = true
        memory.watch.configure()
        try memory.pass(.seconds(1))
        #expect(memory.host.levels == [.critical, .none, .critical])
    }
}
