// SPDX-License-Identifier: Apache-2.0

/// How short of memory the machine is.
public enum MemoryLevel: String, Sendable, Hashable, CaseIterable, Comparable {
    case none
    /// Some tasks wait for memory, or little memory is left: apps are asked to free memory, and suspended apps may be
    /// evicted.
    case warning
    /// All tasks wait for memory at times, or almost no memory is left: apps that are not suspended may be terminated
    /// too.
    case critical

    /// Compares by severity.
    public static func < (left: MemoryLevel, right: MemoryLevel) -> Bool { left.severity < right.severity }

    private var severity: Int {
        switch self {
        case .none: 0
        case .warning: 1
        case .critical: 2
        }
    }
}

/// One sample of the machine's memory.
public struct MemoryReading: Sendable, Hashable {
    /// Bytes that the kernel manages (MemTotal).
    public var total: UInt64
    /// Bytes available without swapping, as estimated by the kernel (MemAvailable).
    public var available: UInt64
    /// Bytes of swap.
    public var swapTotal: UInt64
    /// Bytes of unused swap.
    public var swapFree: UInt64
    /// The share of the time since the last sample in which some task waited for memory, 0 to 1; nil if unknown.
    public var some: Double?
    /// The share of the time since the last sample in which all tasks waited for memory, 0 to 1; nil if unknown.
    public var full: Double?
    /// Pages that the kernel scanned for reclaim since the last sample, without scans for a cgroup at its own limit;
    /// nil if unknown.
    public var scanned: UInt64?
    /// Pages that tasks read back soon after the kernel had reclaimed them, since the last sample; nil if unknown.
    public var refaulted: UInt64?

    /// A sample of memory and swap, in bytes; all other properties are unknown (nil).
    public init(total: UInt64, available: UInt64, swapTotal: UInt64 = 0, swapFree: UInt64 = 0) {
        self.total = total
        self.available = available
        self.swapTotal = swapTotal
        self.swapFree = swapFree
    }

    /// Available memory as a share of the total, 0 to 1.
    public var availablePart: Double { total == 0 ? 1 : Double(available) / Double(total) }

    /// Free swap as a share of the total, 0 to 1; 0 without swap.
    public var swapPart: Double { swapTotal == 0 ? 0 : Double(swapFree) / Double(swapTotal) }
}

/// The thresholds at which memory counts as short (`[supervisor.memory]`).
public struct MemoryRules: Sendable, Hashable {
    /// The level is `warning` if, in each second, some task waits for memory for at least this long.
    public var warningStall: Duration = .milliseconds(100)
    /// The level is `critical` if, in each second, all tasks wait for memory at once for at least this long.
    public var criticalStall: Duration = .milliseconds(100)
    /// The level is `warning` if both available memory and free swap are below this share, 0 to 1.
    public var warningAvailable = 0.10
    /// The level is `critical` if both available memory and free swap are below this share, 0 to 1.
    public var criticalAvailable = 0.05
    /// How long to wait after a step that frees memory before memory is read again.
    public var settling: Duration = .milliseconds(200)

    /// The default thresholds.
    public init() {}

    /// How short of memory the machine is. Waiting tasks alone do not decide this: the tasks of a single cgroup may
    /// wait at the cgroup's own limit while the machine has plenty of memory.
    public func level(_ reading: MemoryReading) -> MemoryLevel {
        let isMachines = isMachines(reading)
        if isShort(reading, criticalAvailable) { return .critical }
        if isMachines, let full = reading.full, full >= criticalStall.perSecond { return .critical }
        if isShort(reading, warningAvailable) { return .warning }
        if isMachines, let some = reading.some, some >= warningStall.perSecond { return .warning }
        return .none
    }

    /// Whether to skip steps that help only a little: almost no memory is left, or all tasks wait for memory at least
    /// half the time.
    public func isUrgent(_ reading: MemoryReading) -> Bool {
        isShort(reading, criticalAvailable) || (isMachines(reading) && reading.full.map { $0 >= 0.5 } ?? false)
    }

    /// How long memory must be short at the level `warning` before an app is terminated. With free swap this takes
    /// longer, because tasks may wait only until pages are written to swap.
    public func patience(_ reading: MemoryReading) -> Duration {
        reading.swapPart < 0.1 ? MemoryLadder.shortPatience : MemoryLadder.longPatience
    }

    /// How many bytes an app must use so that terminating it is worthwhile, computed from the missing memory by
    /// ``worth(missing:)``. At least a hundredth of the total counts as missing, because tasks may wait for memory
    /// although enough seems to be available.
    public func worth(_ reading: MemoryReading) -> UInt64 {
        let wanted = UInt64(Double(reading.total) * warningAvailable)
        let missing = wanted > reading.available ? wanted - reading.available : 0
        return Self.worth(missing: max(missing, reading.total / 100))
    }

    /// How many bytes an app must use so that terminating it is worthwhile: a hundredth of the missing bytes, at most 1
    /// MiB. The limit is low, because many small apps together may free the missing bytes.
    public static func worth(missing bytes: UInt64) -> UInt64 { min(bytes / 100, 1 << 20) }

    /// Whether swap has room for the memory of apps: more than 5 % is free. Both numbers are bytes.
    public func canSwap(free: UInt64, of total: UInt64) -> Bool { free > total / 20 }

    /// Whether available memory and free swap are both below this share.
    private func isShort(_ reading: MemoryReading, _ part: Double) -> Bool {
        reading.availablePart < part && reading.swapPart < part
    }

    private func isMachines(_ reading: MemoryReading) -> Bool {
        if let scanned = reading.scanned, scanned == 0 { return false }
        if reading.availablePart < max(3 * warningAvailable, 0.1) { return true }
        // If tasks soon read back many of the pages that the kernel has reclaimed, these pages were in use, although
        // the kernel counted them as available. Then the whole machine is short of memory, not only one cgroup.
        guard let scanned = reading.scanned, let refaulted = reading.refaulted else { return false }
        return refaulted > scanned / 10
    }
}

extension Duration {
    /// The duration in seconds, for comparison with a share of time: 100 ms is 0.1.
    fileprivate var perSecond: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
