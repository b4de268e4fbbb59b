// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// A folder that stands for `/`, in which the kernel's files about memory say what a test wants: what takes a `root`
/// reads them there. It begins as a machine with 8 GiB, half of them available, no swap and no pressure, and is removed
/// with the last reference.
public final class KernelFiles {
    /// What stands before `/proc`.
    public let root: String

    /// What the machine has, bytes.
    public var total: UInt64 = 8 << 30 { didSet { writeMemory() } }
    /// What could be had, bytes.
    public var available: UInt64 = 4 << 30 { didSet { writeMemory() } }
    /// Swap, bytes: a zram device. 0: there is none.
    public var swapTotal: UInt64 = 0 { didSet { writeMemory() } }
    /// Swap that is in use, bytes.
    public var swapUsed: UInt64 = 0 { didSet { writeMemory() } }
    /// For how long some task has waited for memory, and all, microseconds.
    public var stalls: (some: UInt64, full: UInt64) = (0, 0) { didSet { writePressure() } }
    /// Of the last ten seconds, percent.
    public var averages: (some: Double, full: Double) = (0, 0) { didSet { writePressure() } }
    /// `/proc/vmstat` by its names; what it is not given is 0.
    public var counters: [String: UInt64] = [:] { didSet { writeCounters() } }

    /// A calm machine.
    public init() throws {
        root = NSTemporaryDirectory() + "torpor-kernel-" + UUID().uuidString
        try File.makeDirectories(root + "/proc/pressure")
        for resource in ["cpu", "io"] {
            try File.write(root + "/proc/pressure/" + resource, Self.pressure((0, 0), (0, 0)))
        }
        writeMemory()
        writePressure()
        writeCounters()
    }

    deinit { try? File.removeTree(root) }

    /// The machine now looks short of memory: what could be had is so much of it.
    public func setAvailable(_ part: Double) { available = UInt64(Double(total) * part) }

    /// Work waits for so much longer than so far.
    public func stall(some: Duration, full: Duration = .zero) {
        stalls = (stalls.some + UInt64(some.microseconds), stalls.full + UInt64(full.microseconds))
    }

    /// Counts from now on how often a file of `/proc` is read: `vmstat` once at each look of torpord's at memory. Looks
    /// come every 100 ms while memory is short.
    public func readings(of name: String = "vmstat") throws -> Readings { try Readings(of: name, in: root + "/proc") }

    /// A kernel that keeps no pressure.
    public func removePressure() { try? File.removeTree(root + "/proc/pressure") }

    /// Any other file, by its path below `/`.
    public func write(_ path: String, _ text: String) throws {
        try File.makeDirectories(File.parent(of: root + path) ?? root)
        try File.replace(root + path, Array(text.utf8))
    }

    private func replace(_ path: String, _ text: String) {
        guard File.exists(File.parent(of: root + path) ?? root) else { return }
        do { try write(path, text) } catch { preconditionFailure("\(path): \(error)") }
    }

    private func writeMemory() {
        replace(
            "/proc/meminfo",
            """
            MemTotal:       \(total >> 10) kB
            MemFree:        \(available >> 11) kB
            MemAvailable:   \(available >> 10) kB
            SwapTotal:      \(swapTotal >> 10) kB
            SwapFree:       \((swapTotal - min(swapTotal, swapUsed)) >> 10) kB

            """
        )
        var swaps = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        if swapTotal > 0 {
            swaps += "/dev/zram0                              partition\t\(swapTotal >> 10)\t\(swapUsed >> 10)\t100\n"
        }
        replace("/proc/swaps", swaps)
    }

    private func writePressure() { replace("/proc/pressure/memory", Self.pressure(averages, stalls)) }

    private static func pressure(_ averages: (Double, Double), _ stalls: (UInt64, UInt64)) -> String {
        func line(_ kind: String, _ average: Double, _ total: UInt64) -> String {
            let average = String(format: "%.2f", average)
            return "\(kind) avg10=\(average) avg60=\(average) avg300=\(average) total=\(total)\n"
        }
        return line("some", averages.0, stalls.0) + line("full", averages.1, stalls.1)
    }

    private static let names = [
        "nr_free_pages", "pgscan_kswapd", "pgscan_direct", "allocstall_normal", "workingset_refault_anon",
        "workingset_refault_file", "pswpin", "pswpout", "oom_kill",
    ]

    private func writeCounters() {
        var text = ""
        for name in Self.names + counters.keys.sorted().filter({ !Self.names.contains($0) }) {
            text += "\(name) \(counters[name] ?? 0)\n"
        }
        replace("/proc/vmstat", text)
    }
}
