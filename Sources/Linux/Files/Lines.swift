// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

extension UnsafeRawBufferPointer {
    /// The index of the first newline; nil if there is none.
    public var firstNewline: Int? {
        guard let baseAddress, let hit = memchr(baseAddress, 0x0a, count) else { return nil }
        return UnsafeRawPointer(hit) - baseAddress
    }

    /// The index of the last newline; nil if there is none.
    public var lastNewline: Int? {
        guard let baseAddress, let hit = tlx_memrchr(baseAddress, 0x0a, count) else { return nil }
        return hit - baseAddress
    }
}

/// Decodes a path from a /proc file, which writes white space as a backslash and three octal digits.
func unescaped(_ text: Substring) -> String {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
        if byte == UInt8(ascii: "\\"), rest.count >= 3,
            let value = UInt8(String(wire: rest.prefix(3)), radix: 8)
        {
            bytes.append(value)
            rest = rest.dropFirst(3)
        } else {
            bytes.append(byte)
        }
    }
    return String(wire: bytes)
}
