// SPDX-License-Identifier: Apache-2.0

import WireText

/// What the kernel has done so far for want of memory, from `/proc/vmstat`: counters since the machine was started, of
/// which differences tell something. What a kernel does not count is 0.
public struct MemoryActivity: Hashable, Sendable {
    /// Pages that were looked at, so as to be given up, by the kernel's own thread.
    public var scannedInBackground: UInt64 = 0
    /// Pages that were looked at by those who needed one themselves, and waited for it.
    public var scannedDirectly: UInt64 = 0
    /// How often somebody had to do so.
    public var allocationStalls: UInt64 = 0
    /// Pages of swap that were needed again soon after they were given up (Linux 5.9).
    public var refaultsOfSwap: UInt64 = 0
    /// Pages of files that were needed again soon after they were given up.
    public var refaultsOfFiles: UInt64 = 0
    /// Pages that were read from swap.
    public var swappedIn: UInt64 = 0
    /// Pages that were written to swap.
    public var swappedOut: UInt64 = 0
    /// Processes that the kernel's OOM killer has ended (Linux 4.13).
    public var kills: UInt64 = 0

    /// Nothing.
    public static let none = MemoryActivity(nothing: ())

    private init(nothing: Void) {}

    /// The machine's so far; nil where it cannot be read.
    ///
    /// - Parameter root: what stands before `/proc`.
    public init?(root: String = "") { self.init(file: root + "/proc/vmstat") }

    /// That of a file with such counters: a cgroup's `memory.stat` has some of them.
    init?(file: String) {
        guard let text = try? File.read(file) else { return nil }
        var isOne = false
        for line in text.split(separator: UInt8(ascii: "\n")) {
            // pgscan_kswapd 8190423
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
        // The second before Linux 5.9, which counted both together.
        case "workingset_refault_file", "workingset_refault": refaultsOfFiles = count
        case "pswpin": swappedIn = count
        case "pswpout": swappedOut = count
        case "oom_kill": kills = count
        // One a zone: allocstall_normal, allocstall_movable.
        default: if name.hasPrefix("allocstall") { allocationStalls &+= count }
        }
    }

    /// What was done since an earlier reading.
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
