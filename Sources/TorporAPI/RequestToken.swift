// SPDX-License-Identifier: Apache-2.0

/// A number that one client gives one request, so that it can be asked again when the connection was lost before the
/// reply, and is carried out once all the same.
///
/// On the wire it is a string of hexadecimal digits: numbers of 64 bits do not survive every JSON library.
public struct RequestToken: Hashable, Sendable {
    /// The number, never 0. Its lowest bit is always 0: what keeps tokens has it for a use of its own.
    public let value: UInt64

    /// One that nobody else has.
    public static func random() -> RequestToken {
        RequestToken(value: .random(in: 1...(.max >> 1)) << 1)
    }

    /// Reads 1 to 16 hexadecimal digits; nil for anything else and for zero. The lowest bit does not count.
    public init?(text: String) {
        guard (1...16).contains(text.utf8.count), !text.hasPrefix("+"), let number = UInt64(text, radix: 16),
            number > 1
        else { return nil }
        value = number & ~1
    }

    private init(value: UInt64) { self.value = value }

    /// It as 16 hexadecimal digits.
    public var text: String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}
