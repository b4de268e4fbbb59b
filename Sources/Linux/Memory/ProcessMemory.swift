// SPDX-License-Identifier: Apache-2.0

/// What memory of the machine a process has, bytes.
public struct ProcessMemory: Hashable, Sendable {
    /// In memory.
    public var resident: UInt64
    /// In swap.
    public var swapped: UInt64

    /// That much.
    public init(resident: UInt64, swapped: UInt64) {
        self.resident = resident
        self.swapped = swapped
    }
}

extension ProcFS {
    /// What a process has, pages that others share with it counted whole (VmRSS and VmSwap of `/proc/PID/status`): some
    /// 10 µs. Of a process that has ended, 0.
    ///
    /// - Parameter root: what stands before `/proc`.
    public static func memory(_ pid: Int32, root: String = "") throws(Errno) -> ProcessMemory {
        let found = try fields([resident, swapped], in: root + "/proc/\(pid)/status")
        return ProcessMemory(resident: found[0], swapped: found[1])
    }

    /// What a process has, of pages that others share with it only its part (PSS and SwapPss). The kernel walks through
    /// all of them: a gigabyte takes it milliseconds, and it waits for a process that is changing its mappings. EACCES
    /// for others' processes, ESRCH for one that has ended.
    ///
    /// - Parameter root: what stands before `/proc`.
    public static func proportionalMemory(_ pid: Int32, root: String = "") throws(Errno) -> ProcessMemory {
        let found = try fields([pss, swapPss], in: root + "/proc/\(pid)/smaps_rollup")
        return ProcessMemory(resident: found[0], swapped: found[1])
    }

    private static let resident = Array("VmRSS:".utf8)
    private static let swapped = Array("VmSwap:".utf8)
    private static let pss = Array("Pss:".utf8)
    private static let swapPss = Array("SwapPss:".utf8)

    /// Fields such as `VmRSS:	    1234 kB`, in bytes; 0 for one that is not there.
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
