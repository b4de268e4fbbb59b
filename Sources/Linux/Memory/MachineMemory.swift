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
        text.withUnsafeBytes { text in
            total = Self.bytes("MemTotal:", in: text)
            available = Self.bytes("MemAvailable:", in: text)
            swapTotal = Self.bytes("SwapTotal:", in: text)
            swapFree = Self.bytes("SwapFree:", in: text)
        }
        if total == 0 { return nil }
    }

    /// A field such as `MemTotal:        8043932 kB`, in bytes; 0 if it is missing or not valid. It is read where it is:
    /// while memory is short, this is done ten times a second, and should then allocate nothing.
    private static func bytes(_ name: StaticString, in text: UnsafeRawBufferPointer) -> UInt64 {
        let (newline, space, tab) = (UInt8(ascii: "\n"), UInt8(ascii: " "), UInt8(ascii: "\t"))
        let name = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        var rest = text[...]
        while !rest.starts(with: name) {
            guard let end = rest.firstIndex(of: newline) else { return 0 }
            rest = rest[(end + 1)...]
        }
        rest = rest.dropFirst(name.count).drop { $0 == space || $0 == tab }
        var (count, hasOverflow, hasDigits) = (UInt64(0), false, false)
        while let digit = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) {
            rest.removeFirst()
            hasDigits = true
            let (tens, isTooMuch) = count.multipliedReportingOverflow(by: 10)
            let (sum, isMore) = tens.addingReportingOverflow(UInt64(digit - UInt8(ascii: "0")))
            count = sum
            if isTooMuch || isMore { hasOverflow = true }
        }
        guard hasDigits, !hasOverflow, rest.first == space else { return 0 }
        rest = rest.drop { $0 == space }
        guard rest.starts(with: "kB".utf8) else { return 0 }
        rest = rest.dropFirst(2).drop { $0 == space || $0 == tab }
        guard rest.isEmpty || rest.first == newline else { return 0 }
        let (bytes, overflow) = count.multipliedReportingOverflow(by: 1024)
        return overflow ? 0 : bytes
    }
}
