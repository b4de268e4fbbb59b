// SPDX-License-Identifier: Apache-2.0

import CSodium
public import Linux

/// Bytes that must not be left behind: in memory of their own that is not swapped, and is wiped when it is let go of.
public final class Secret {
    private let start: UnsafeMutableRawPointer
    /// The number of bytes.
    public let count: Int

    /// Makes room for so many bytes, all zero.
    public init(count: Int) {
        _ = sodium_init()
        // NULL if memory is short: nothing can go on then.
        start = sodium_malloc(max(1, count))!
        sodium_memzero(start, count)
        self.count = count
    }

    /// Makes random bytes.
    public static func random(count: Int) -> Secret {
        let secret = Secret(count: count)
        randombytes_buf(secret.start, count)
        return secret
    }

    /// Copies bytes, which the caller wipes.
    public convenience init(copying bytes: UnsafeRawBufferPointer) {
        self.init(count: bytes.count)
        self.bytes.copyMemory(from: bytes)
    }

    deinit { sodium_free(start) }

    /// The bytes.
    public var bytes: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(start: start, count: count) }

    var pointer: UnsafeMutablePointer<UInt8> { start.bindMemory(to: UInt8.self, capacity: count) }

    /// The bytes from `first` on, as a secret of its own.
    func part(from first: Int, count: Int) -> Secret {
        Secret(copying: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[first..<(first + count)]))
    }

    /// Reads a line from a descriptor, up to a newline, a NUL or the end.
    ///
    /// - Returns: nil for one of more than 1024 bytes.
    public static func line(from descriptor: Int32) throws(Errno) -> Secret? {
        let buffer = Secret(count: 1024)
        var filled = 0
        // One byte at a time: what follows the line is for the next one who reads.
        while true {
            let next = UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[filled..<(filled + 1)])
            guard let count = try Descriptor.read(descriptor, into: next), count > 0, next[0] != 0x0a, next[0] != 0
            else {
                return buffer.part(from: 0, count: filled)
            }
            filled += 1
            if filled == buffer.count { return nil }
        }
    }

    /// The bytes that hexadecimal digits stand for, without regard to dashes and spaces; nil for other text.
    public var fromHexadecimal: Secret? {
        let result = Secret(count: count / 2)
        var (filled, high) = (0, UInt8?.none)
        for byte in bytes {
            let digit: UInt8
            switch byte {
            case 0x30...0x39: digit = byte - 0x30
            case 0x41...0x46: digit = byte - 0x37
            case 0x61...0x66: digit = byte - 0x57
            case 0x2d, 0x20: continue
            default: return nil
            }
            if let first = high {
                result.bytes[filled] = first << 4 | digit
                filled += 1
                high = nil
            } else {
                high = digit
            }
        }
        return high == nil ? result.part(from: 0, count: filled) : nil
    }

    /// Hexadecimal digits in groups of four, for persons.
    public var groups: Secret {
        let text = Secret(count: count * 2 + (count + 1) / 2 - 1)
        let digits = Array("0123456789abcdef".utf8)
        var at = 0
        for (index, byte) in bytes.enumerated() {
            if index > 0, index % 2 == 0 {
                text.bytes[at] = 0x2d
                at += 1
            }
            text.bytes[at] = digits[Int(byte >> 4)]
            text.bytes[at + 1] = digits[Int(byte & 15)]
            at += 2
        }
        return text
    }
}
