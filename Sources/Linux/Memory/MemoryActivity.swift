// SPDX-License-Identifier: Apache-2.0

import WireText

/// The kernel's reclaim counters since boot, from `/proc/vmstat`. Only differences between two readings are
/// meaningful. Counters that the kernel lacks are 0.
public struct MemoryActivity: Hashable, Sendable {
    /// Pages scanned for reclaim by kswapd.
    public var scannedInBackground: UInt64 = 0
    /// Pages scanned by tasks that had to wait for memory (direct reclaim).
    public var scannedDirectly: UInt64 = 0
    /// How often a task had to wait in direct reclaim.
    public var allocationStalls: UInt64 = 0
    /// How many swapped-out pages were soon needed again (Linux 5.9).
    public var refaultsOfSwap: UInt64 = 0
    /// How many file pages were soon needed again after they were reclaimed.
    public var refaultsOfFiles: UInt64 = 0
    /// Pages that were read from swap.
    public var swappedIn: UInt64 = 0
    /// Pages that were written to swap.
    public var swappedOut: UInt64 = 0
    /// Processes killed by the OOM killer (Linux 4.13).
    public var kills: UInt64 = 0

    /// Counters that are all zero.
    public static let none = MemoryActivity(nothing: ())

    private init(nothing: Void) {}

    /// The machine's counters; nil if they cannot be read.
    ///
    /// - Parameter root: a prefix for paths below `/proc`; empty except in tests.
    public init?(root: String = "") { self.init(file: root + "/proc/vmstat") }

    /// Reads counters from a file in the format of `/proc/vmstat`. A cgroup's `memory.stat` has this format and some of
    /// the counters.
    init?(file: String) {
        guard let text = try? File.read(file) else { return nil }
        var isOne = false
        for line in text.split(separator: UInt8(ascii: "\n")) {
            // A line looks like this: pgscan_kswapd 8190423
            guard let blank = line.firstIndex(of: UInt8(ascii: " ")),
                let count = UInt64(String(wire: line[line.index(after: blank)...]))
            else { continue }
            isOne = true
            take(count, String(wire: line[..<blank]))
        }
        if !isOne { return nil }
    }

    private mutating func take(_ count: UInt64, _ name: String) {
        switch name {
        case "pgscan_kswapd", "pgscan_khugepaged", "pgscan_proactive": scannedInBackground &+= count
        case "pgscan_direct": scannedDirectly = count
        case "workingset_refault_anon": refaultsOfSwap = count
        // Before Linux 5.9 `workingset_refault` counts files and swap together.
        case "workingset_refault_file", "workingset_refault": refaultsOfFiles = count
        case "pswpin": swappedIn = count
        case "pswpout": swappedOut = count
        case "oom_kill": kills = count
        // There is one counter for each memory zone, such as allocstall_normal and allocstall_movable.
        default: if name.hasPrefix("allocstall") { allocationStalls &+= count }
        }
    }

    /// The differences from an earlier reading.
    public func since(_ earlier: MemoryActivity) -> MemoryActivity {
        var result = MemoryActivity.none
        for field in Self.fields {
            let (now, before) = (self[keyPath: field], earlier[keyPath: field])
            result[keyPath: field] = now > before ? now - before : 0
        }
        return result
    }

    private static var fields: [WritableKeyPath<MemoryActivity, UInt64>] {
        [
            \.scannedInBackground, \.scannedDirectly, \.allocationStalls, \.refaultsOfSwap, \.refaultsOfFiles,
            \.swappedIn, \.swappedOut, \.kills,
        ]
    }
}
