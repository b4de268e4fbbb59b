// SPDX-License-Identifier: Apache-2.0

/// The machine's memory in bytes, from `/proc/meminfo`; 0 for what the kernel does not report.
public struct MachineMemory: Hashable, Sendable {
    /// The memory that the kernel manages.
    public var total: UInt64 = 0
    /// The kernel's estimate of what can be allocated without swapping.
    public var available: UInt64 = 0
    /// Swap space.
    public var swapTotal: UInt64 = 0
    /// Unused swap space.
    public var swapFree: UInt64 = 0

    /// The current values; nil if they cannot be read.
    ///
    /// - Parameter root: prefix of `/proc`.
    public init?(root: String = "") {
        guard let text = try? File.readString(root + "/proc/meminfo") else { return nil }
        for line in text.split(separator: "\n") {
            // A line: MemTotal:        8043932 kB
            let words = line.split(separator: " ")
            guard words.count == 3, words[2] == "kB", let count = UInt64(words[1]) else { continue }
            let (bytes, overflow) = count.multipliedReportingOverflow(by: 1024)
            if overflow { continue }
            switch words[0] {
            case "MemTotal:": total = bytes
            case "MemAvailable:": available = bytes
            case "SwapTotal:": swapTotal = bytes
            case "SwapFree:": swapFree = bytes
            default: break
            }
        }
        if total == 0 { return nil }
    }
}
