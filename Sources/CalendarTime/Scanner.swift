// SPDX-License-Identifier: Apache-2.0

import WireText

/// Reads a text byte by byte.
struct Scanner {
    let bytes: [UInt8]
    private(set) var position = 0

    init(_ text: String) {
        bytes = Array(text.utf8)
    }

    var isAtEnd: Bool { position == bytes.count }
    var next: UInt8? { isAtEnd ? nil : bytes[position] }

    /// The text not read yet.
    var rest: String { String(wire: bytes[position...]) }

    /// Reads `text` if it comes next, ignoring case; returns whether it did.
    mutating func take(_ text: StaticString) -> Bool {
        let length = text.utf8CodeUnitCount
        guard bytes.count - position >= length else { return false }
        for index in 0..<length where lowered(bytes[position + index]) != lowered(text.utf8Start[index]) {
            return false
        }
        position += length
        return true
    }

    /// Reads bytes while they match; returns them, maybe none.
    mutating func take(while fits: (UInt8) -> Bool) -> String {
        let start = position
        while let next, fits(next) { position += 1 }
        return String(wire: bytes[start..<position])
    }

    /// Reads a decimal number up to `limit`; nil, with nothing read, if there is no number or it is larger.
    mutating func number(limit: Int) -> Int? {
        var value = 0
        var end = position
        while end < bytes.count, isDigit(bytes[end]) {
            value = value * 10 + Int(bytes[end] - UInt8(ascii: "0"))
            guard value <= limit else { return nil }
            end += 1
        }
        guard end > position else { return nil }
        position = end
        return value
    }
}

func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

func isLetter(_ byte: UInt8) -> Bool {
    lowered(byte) >= UInt8(ascii: "a") && lowered(byte) <= UInt8(ascii: "z")
}

/// The byte in lower case, if it is an ASCII letter.
func lowered(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte + 32 : byte
}
