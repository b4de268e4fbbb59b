// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("How short memory is")
struct MemoryRulesTests {
    private let rules = MemoryRules()

    /// A machine of 1000 bytes.
    private func machine(_ available: UInt64, swap: UInt64 = 0, free: UInt64 = 0) -> MemoryReading {
        MemoryReading(total: 1000, available: available, swapTotal: swap, swapFree: free)
    }

    private func waiting(
        _ available: UInt64,
        some: Double?,
        full: Double?,
        scanned: UInt64? = 1000,
        refaulted: UInt64? = 0
    ) -> MemoryReading {
        var reading = machine(available)
        (reading.some, reading.full, reading.scanned, reading.refaulted) = (some, full, scanned, refaulted)
        return reading
    }

    @Test("without swap, less than a tenth available is a warning, less than a twentieth critical")
    func available() {
        #expect(rules.level(machine(1000)) == .none)
        #expect(rules.level(machine(100)) == .none, "a tenth is not less than a tenth")
        #expect(rules.level(machine(99)) == .warning)
        #expect(rules.level(machine(50)) == .warning)
        #expect(rules.level(machine(49)) == .critical)
        #expect(rules.level(machine(0)) == .critical)
        #expect(rules.level(MemoryReading(total: 0, available: 0)) == .none, "a file that says nothing is no reason")
    }

    @Test("while swap is free little available is no want: both have to be used up")
    func swap() {
        #expect(rules.level(machine(10, swap: 1000, free: 900)) == .none)
        #expect(rules.level(machine(10, swap: 1000, free: 99)) == .warning)
        #expect(rules.level(machine(10, swap: 1000, free: 49)) == .critical)
        #expect(rules.level(machine(500, swap: 1000, free: 0)) == .none, "a full swap alone says nothing")
        #expect(machine(1, swap: 1000, free: 250).swapPart == 0.25)
        #expect(machine(1).swapPart == 0)
    }

    @Test("work that waits for a tenth of the time is a warning; where all of it does, critical")
    func stalls() {
        #expect(rules.level(waiting(200, some: 0.09, full: 0.09)) == .none)
        #expect(rules.level(waiting(200, some: 0.1, full: 0)) == .warning)
        #expect(rules.level(waiting(200, some: 0.5, full: 0.1)) == .critical)
        #expect(rules.level(waiting(200, some: nil, full: nil)) == .none)
    }

    @Test("a cgroup that waits at a limit of its own is its own affair: the kernel looks for no page of the machine's")
    func ownLimit() {
        #expect(rules.level(waiting(200, some: 0.9, full: 0.9, scanned: 0)) == .none)
        #expect(!rules.isUrgent(waiting(200, some: 0.9, full: 0.9, scanned: 0)))
        // But where memory is gone, it is.
        #expect(rules.level(waiting(49, some: 0.9, full: 0.9, scanned: 0)) == .critical)
    }

    @Test("where plenty seems available, it counts only when what was taken is read again and again")
    func refaults() {
        #expect(rules.level(waiting(500, some: 0.5, full: 0, refaulted: 100)) == .none)
        #expect(rules.level(waiting(500, some: 0.5, full: 0, refaulted: 101)) == .warning)
        #expect(rules.level(waiting(500, some: 0.5, full: 0.2, refaulted: 500)) == .critical)
        // Below three tenths there is no plenty.
        #expect(rules.level(waiting(299, some: 0.5, full: 0, refaulted: 0)) == .warning)
        #expect(rules.level(waiting(301, some: 0.5, full: 0, refaulted: 0)) == .none)
    }

    @Test("a kernel that keeps no counters is believed where little is available, and not where there is plenty")
    func withoutCounters() {
        #expect(rules.level(waiting(200, some: 0.5, full: 0, scanned: nil, refaulted: nil)) == .warning)
        #expect(rules.level(waiting(500, some: 0.5, full: 0.5, scanned: nil, refaulted: nil)) == .none)
        #expect(rules.level(waiting(500, some: 0.5, full: 0, scanned: 10, refaulted: nil)) == .none)
    }

    @Test("it is urgent when next to nothing is left, or hardly anything runs")
    func urgent() {
        #expect(!rules.isUrgent(machine(50)))
        #expect(rules.isUrgent(machine(49)))
        #expect(!rules.isUrgent(machine(49, swap: 100, free: 50)))
        #expect(!rules.isUrgent(waiting(200, some: 1, full: 0.49)))
        #expect(rules.isUrgent(waiting(200, some: 1, full: 0.5)))
        #expect(!rules.isUrgent(waiting(900, some: 1, full: 0.5)), "there is plenty")
    }

    @Test("the configuration's bounds are those that count")
    func configured() {
        var rules = MemoryRules()
        rules.warningAvailable = 0.4
        rules.criticalAvailable = 0.3
        rules.warningStall = .milliseconds(500)
        rules.criticalStall = .milliseconds(700)
        #expect(rules.level(machine(399)) == .warning && rules.level(machine(299)) == .critical)
        #expect(rules.level(waiting(450, some: 0.49, full: 0.49)) == .none)
        #expect(rules.level(waiting(450, some: 0.5, full: 0.69)) == .warning)
        #expect(rules.level(waiting(450, some: 1, full: 0.7)) == .critical)
        rules.warningAvailable = 0
        rules.criticalAvailable = 0
        #expect(rules.level(machine(0)) == .none, "0 % switches it off")
    }

    @Test("levels are ordered by how bad they are")
    func order() {
        #expect(MemoryLevel.allCases.sorted().map(\.rawValue) == ["none", "warning", "critical"])
    }
}
