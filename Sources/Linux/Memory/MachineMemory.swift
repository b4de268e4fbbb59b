// SPDX-License-Identifier: Apache-2.0

/// The machine's memory in bytes, from `/proc/meminfo`. Values that the kernel does not report are 0.
public struct MachineMemory: Hashable, Sendable {
    /// All memory that the kernel manages, in bytes.
    public var total: UInt64 = 0
    /// The kernel's estimate of how many bytes can be allocated without swapping.
    public var available: UInt64 = 0
    /// The size of the swap space in bytes.
    public var swapTotal: UInt64 = 0
    /// The unused part of the swap space in bytes.
    public var swapFree: UInt64 = 0

    /// The current values; nil if they cannot be read.
    ///
    /// - Parameter root: a prefix for paths below `/proc`; empty except in tests.
    public init?(root: String = "") {
        guard let text = try? File.readString(root + "/proc/meminfo") else { return nil }
        for line in text.split(separator: "\n") {
            // A line looks like this: MemTotal:        8043932 kB
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
