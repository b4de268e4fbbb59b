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
        guard let text = try? File.read(root + "/proc/meminfo") else { return nil }
        total = Self.bytes("MemTotal", in: text)
        available = Self.bytes("MemAvailable", in: text)
        swapTotal = Self.bytes("SwapTotal", in: text)
        swapFree = Self.bytes("SwapFree", in: text)
        if total == 0 { return nil }
    }

    /// A field such as `MemTotal:        8043932 kB`, in bytes; 0 if it is missing or not valid.
    private static func bytes(_ name: String, in text: [UInt8]) -> UInt64 {
        let words = ProcFS.field(name, of: text)?.utf8.split(separator: UInt8(ascii: " ")) ?? []
        guard words.count == 2, words[1].elementsEqual("kB".utf8), let count = UInt64(Substring(words[0])) else {
            return 0
        }
        let (bytes, overflow) = count.multipliedReportingOverflow(by: 1024)
        return overflow ? 0 : bytes
    }
}
