// SPDX-License-Identifier: Apache-2.0

/// How short the machine is of memory.
public enum MemoryLevel: String, Sendable, Hashable, CaseIterable, Comparable {
    case none
    /// Work waits for memory now and then: who can do with less is asked to, and what is not in use goes.
    case warning
    /// All work waits, or there is next to nothing left: whoever is not in the foreground may be ended.
    case critical

    /// By severity.
    public static func < (left: MemoryLevel, right: MemoryLevel) -> Bool { left.severity < right.severity }

    private var severity: Int {
        switch self {
        case .none: 0
        case .warning: 1
        case .critical: 2
        }
    }
}

/// What was seen of the machine's memory at one look.
public struct MemoryReading: Sendable, Hashable {
    /// Bytes that the kernel has to give.
    public var total: UInt64
    /// Bytes that could be had without swapping, as the kernel estimates it.
    public var available: UInt64
    /// Bytes of swap.
    public var swapTotal: UInt64
    /// Bytes of swap that are not in use.
    public var swapFree: UInt64
    /// The part of the time since the look before in which some task waited for memory, 0 to 1; nil: nobody knows.
    public var some: Double?
    /// The same for all tasks at once.
    public var full: Double?
    /// Pages that the kernel looked at since then to take them back, for the machine and not for a cgroup at a limit of
    /// its own; nil: nobody knows.
    public var scanned: UInt64?
    /// Pages that were read again soon after they had been taken away; nil: nobody knows.
    public var refaulted: UInt64?

    /// A reading of which no more is known.
    public init(total: UInt64, available: UInt64, swapTotal: UInt64 = 0, swapFree: UInt64 = 0) {
        self.total = total
        self.available = available
        self.swapTotal = swapTotal
        self.swapFree = swapFree
    }

    /// Available memory as a part of all, 0 to 1.
    public var availablePart: Double { total == 0 ? 1 : Double(available) / Double(total) }

    /// Free swap as a part of all, 0 to 1; 0 where there is none.
    public var swapPart: Double { swapTotal == 0 ? 0 : Double(swapFree) / Double(swapTotal) }
}

/// From when on memory counts as short (`[supervisor.memory]`).
public struct MemoryRules: Sendable, Hashable {
    /// Of each second, so long some task waits: warning.
    public var warningStall: Duration = .milliseconds(100)
    /// Of each second, so long all tasks wait at once: critical.
    public var criticalStall: Duration = .milliseconds(100)
    /// Less than this part of memory is available, and of swap free: warning. 0 to 1.
    public var warningAvailable = 0.10
    /// Less than this part of memory is available, and of swap free: critical. 0 to 1.
    public var criticalAvailable = 0.05
    /// How long a step has to show what it brought, before the next one.
    public var settling: Duration = .milliseconds(200)

    /// The defaults.
    public init() {}

    /// How short of memory the machine is. Where work waits, memory available has the second opinion: there may be
    /// plenty, and a single cgroup at its own limit waits, which is that one's affair.
    public func level(_ reading: MemoryReading) -> MemoryLevel {
        let isMachines = isMachines(reading)
        if isShort(reading, criticalAvailable) { return .critical }
        if isMachines, let full = reading.full, full >= criticalStall.perSecond { return .critical }
        if isShort(reading, warningAvailable) { return .warning }
        if isMachines, let some = reading.some, some >= warningStall.perSecond { return .warning }
        return .none
    }

    /// Whether there is no time for what only helps a little: next to nothing is left, or hardly anything runs.
    public func isUrgent(_ reading: MemoryReading) -> Bool {
        isShort(reading, criticalAvailable) || (isMachines(reading) && reading.full.map { $0 >= 0.5 } ?? false)
    }

    /// How long a warning must last before anybody is ended: where there is swap left, work may only wait for what is on
    /// its way.
    public func patience(_ reading: MemoryReading) -> Duration {
        reading.swapPart < 0.1 ? MemoryLadder.shortPatience : MemoryLadder.longPatience
    }

    /// How many bytes an app must have for its end to help where memory is short: a share of what is missing, which is at
    /// least a hundredth of the machine's, since work may wait while there seems to be enough.
    public func worth(_ reading: MemoryReading) -> UInt64 {
        let wanted = UInt64(Double(reading.total) * warningAvailable)
        let missing = wanted > reading.available ? wanted - reading.available : 0
        return Self.worth(missing: max(missing, reading.total / 100))
    }

    /// A hundredth of what is missing. From a mebibyte on every app counts: many of them are much.
    public static func worth(missing bytes: UInt64) -> UInt64 { min(bytes / 100, 1 << 20) }

    /// Whether there is room in swap for what apps have, bytes.
    public func canSwap(free: UInt64, of total: UInt64) -> Bool { free > total / 20 }

    /// Neither memory nor swap has this part left.
    private func isShort(_ reading: MemoryReading, _ part: Double) -> Bool {
        reading.availablePart < part && reading.swapPart < part
    }

    private func isMachines(_ reading: MemoryReading) -> Bool {
        if let scanned = reading.scanned, scanned == 0 { return false }
        if reading.availablePart < max(3 * warningAvailable, 0.1) { return true }
        // There seems to be plenty, but what is counted as available is in use: it is read again and again.
        guard let scanned = reading.scanned, let refaulted = reading.refaulted else { return false }
        return refaulted > scanned / 10
    }
}

extension Duration {
    /// As a part of a second.
    fileprivate var perSecond: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
