// SPDX-License-Identifier: Apache-2.0

extension ProcFS {
    /// The ranges of a process's private memory that are writable or anonymous, without special mappings. Unmodified
    /// file pages are not included, because the kernel can drop them at any time. Throws ESRCH if the process has
    /// ended, EACCES for other users' processes.
    ///
    /// - Parameter root: a prefix for paths below `/proc`; empty except in tests.
    public static func privateRanges(_ pid: Int32, root: String = "") throws(Errno) -> [MemoryAdvice.Range] {
        let text = try File.read(root + "/proc/\(pid)/maps", limit: 1 << 26)
        return text.withUnsafeBytes { bytes in
            var ranges: [MemoryAdvice.Range] = []
            var rest = bytes[...]
            while !rest.isEmpty {
                let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
                if let range = privateRange(rest[..<end]) { ranges.append(range) }
                rest = rest[end...].dropFirst()
            }
            return ranges
        }
    }

    private static let special = [
        "[vdso]", "[vsyscall]", "[vvar", "[uprobes]", "/dev/", "/memfd:", "/SYSV", "anon_inode:",
    ]
    .map { Array($0.utf8) }
    private static let zero = Array("/dev/zero".utf8)

    /// Parses a line such as `7f1c2a000000-7f1c2a021000 rw-p 00000000 00:00 0                          [heap]`.
    private static func privateRange(_ line: Slice<UnsafeRawBufferPointer>) -> MemoryAdvice.Range? {
        var rest = line
        guard let start = hexadecimal(&rest), rest.popFirst() == UInt8(ascii: "-"), let end = hexadecimal(&rest),
            end > start, rest.popFirst() == UInt8(ascii: " "), rest.count > 5
        else { return nil }
        let access = rest.prefix(4)
        rest = rest.dropFirst(5)
        guard access.last == UInt8(ascii: "p") else { return nil }
        let isWritable = access.dropFirst().first == UInt8(ascii: "w")
        let isUsable = access.prefix(3).contains { $0 != UInt8(ascii: "-") }
        // Skip the fields offset and device.
        for _ in 0..<2 { rest = rest.drop { $0 != UInt8(ascii: " ") }.dropFirst() }
        let isAnonymous = rest.prefix { $0 != UInt8(ascii: " ") }.elementsEqual([UInt8(ascii: "0")])
        let path = rest.drop { $0 != UInt8(ascii: " ") }.drop { $0 == UInt8(ascii: " ") }
        // A range without access rights is only reserved address space, often gigabytes without content.
        guard isUsable, isWritable || isAnonymous else { return nil }
        if !path.starts(with: zero), special.contains(where: { path.starts(with: $0) }) { return nil }
        return MemoryAdvice.Range(start: start, count: Int(clamping: end - start))
    }

    private static func hexadecimal(_ rest: inout Slice<UnsafeRawBufferPointer>) -> UInt? {
        var value: UInt = 0
        var index = rest.startIndex
        digits: while index < rest.endIndex {
            let byte = rest.base[index]
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt(byte - UInt8(ascii: "a") + 10)
            default: break digits
            }
            index += 1
        }
        let count = index - rest.startIndex
        rest = rest[index...]
        return (1...16).contains(count) ? value : nil
    }
}
