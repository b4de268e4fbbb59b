// SPDX-License-Identifier: Apache-2.0

/// Makes a request idempotent: if the connection is lost before the reply, the client sends the request again with
/// the same token, and the supervisor carries out the request only once.
///
/// On the wire, the token is a string of hexadecimal digits, because some JSON libraries damage 64-bit numbers.
public struct RequestToken: Hashable, Sendable {
    /// The token's number, never 0.
    public let value: UInt64

    /// Creates a random token, which in practice no other request has. It is even: 0.2.0 records an odd token in another
    /// form than later versions, which do not recognise such a request if it is repeated after an upgrade.
    public static func random() -> RequestToken {
        RequestToken(value: .random(in: 1...UInt64.max >> 1) << 1)
    }

    /// Parses 1 to 16 hexadecimal digits; nil for anything else and for zero.
    public init?(text: String) {
        guard (1...16).contains(text.utf8.count), !text.hasPrefix("+"), let number = UInt64(text, radix: 16),
            number > 0
        else { return nil }
        value = number
    }

    private init(value: UInt64) { self.value = value }

    /// The token as 16 hexadecimal digits.
    public var text: String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}
