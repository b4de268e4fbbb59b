// SPDX-License-Identifier: Apache-2.0

/// A process's memory in bytes.
public struct ProcessMemory: Hashable, Sendable {
    /// The resident memory in bytes.
    public var resident: UInt64
    /// The swapped-out memory in bytes.
    public var swapped: UInt64

    /// Creates a value from its parts, in bytes.
    public init(resident: UInt64, swapped: UInt64) {
        self.resident = resident
        self.swapped = swapped
    }
}

extension ProcFS {
    /// Reads a process's memory, with shared pages counted in full (VmRSS and VmSwap of `/proc/PID/status`). Takes
    /// some 10 µs. The values are 0 for a process that has ended.
    ///
    /// - Parameter root: a prefix for paths below `/proc`; empty except in tests.
    public static func memory(_ pid: Int32, root: String = "") throws(Errno) -> ProcessMemory {
        let found = try fields([resident, swapped], in: root + "/proc/\(pid)/status")
        return ProcessMemory(resident: found[0], swapped: found[1])
    }

    /// Reads a process's memory, with shared pages counted proportionally (Pss and SwapPss). The kernel walks all pages
    /// of the process, which takes milliseconds per gigabyte. It also blocks while the process changes its mappings.
    /// Throws EACCES for other users' processes, ESRCH for a process that has ended.
    ///
    /// - Parameter root: a prefix for paths below `/proc`; empty except in tests.
    public static func proportionalMemory(_ pid: Int32, root: String = "") throws(Errno) -> ProcessMemory {
        let found = try fields([pss, swapPss], in: root + "/proc/\(pid)/smaps_rollup")
        return ProcessMemory(resident: found[0], swapped: found[1])
    }

    private static let resident = Array("VmRSS:".utf8)
    private static let swapped = Array("VmSwap:".utf8)
    private static let pss = Array("Pss:".utf8)
    private static let swapPss = Array("SwapPss:".utf8)

    /// Reads fields such as `VmRSS:      1234 kB`, and returns bytes; 0 for a missing field.
    private static func fields(_ names: [[UInt8]], in path: String) throws(Errno) -> [UInt64] {
        var result = [UInt64](repeating: 0, count: names.count)
        for line in try File.read(path).split(separator: UInt8(ascii: "\n")) {
            guard let index = names.firstIndex(where: { line.starts(with: $0) }) else { continue }
            var kilobytes: UInt64 = 0
            for byte in line.dropFirst(names[index].count) {
                let digit = byte &- UInt8(ascii: "0")
                if digit < 10 { kilobytes = kilobytes &* 10 &+ UInt64(digit) }
            }
            result[index] = kilobytes &* 1024
        }
        return result
    }
}
