// SPDX-License-Identifier: Apache-2.0

import CSodium
public import Linux

/// Secret bytes that must not leave traces: they are in memory of their own that is not swapped, and that is wiped when
/// it is freed.
public final class Secret {
    private let start: UnsafeMutableRawPointer
    /// The number of bytes.
    public let count: Int

    /// Allocates memory for `count` bytes, filled with zeros.
    public init(count: Int) {
        _ = sodium_init()
        // The result is NULL if memory is short. Then the process cannot continue.
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

    /// A copy of the bytes from `first` on, as another secret.
    func part(from first: Int, count: Int) -> Secret {
        Secret(copying: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[first..<(first + count)]))
    }

    /// Reads a line from a descriptor, up to a newline, a NUL or the end.
    ///
    /// - Returns: the line; nil if it has more than 1024 bytes.
    public static func line(from descriptor: Int32) throws(Errno) -> Secret? {
        let buffer = Secret(count: 1024)
        var filled = 0
        // Read one byte at a time, so that the bytes after the line stay in the descriptor for the next reader.
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

    /// The bytes that the text encodes in hexadecimal; dashes and spaces are ignored. Nil for any other text.
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

    /// The bytes as hexadecimal digits in groups of four, for people to read and type.
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
