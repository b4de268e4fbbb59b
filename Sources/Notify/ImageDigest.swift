// SPDX-License-Identifier: Apache-2.0

/// The SHA-256 digest of a container image.
public struct ImageDigest: Hashable, Sendable, CustomStringConvertible {
    /// The digest as four words, the most significant word first.
    public let words: [UInt64]

    /// A digest from its words; nil unless there are four.
    public init?(_ words: [UInt64]) {
        guard words.count == 4 else { return nil }
        self.words = words
    }

    /// A digest from `sha256:` and 64 hexadecimal digits; nil for any other text.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.starts(with: Self.prefix.utf8), bytes.count == Self.prefix.utf8.count + 64 else { return nil }
        let digits = bytes.dropFirst(Self.prefix.utf8.count)
        var words: [UInt64] = []
        for index in 0..<4 {
            var word: UInt64 = 0
            for digit in digits.dropFirst(index * 16).prefix(16) {
                switch digit {
                case UInt8(ascii: "0")...UInt8(ascii: "9"): word = word << 4 | UInt64(digit - UInt8(ascii: "0"))
                case UInt8(ascii: "a")...UInt8(ascii: "f"): word = word << 4 | UInt64(digit - UInt8(ascii: "a") + 10)
                default: return nil
                }
            }
            words.append(word)
        }
        self.words = words
    }

    /// The digest as podman writes it: `sha256:` and 64 hexadecimal digits.
    public var description: String {
        Self.prefix
            + words.map { word in
                let digits = String(word, radix: 16)
                return String(repeating: "0", count: 16 - digits.count) + digits
            }.joined()
    }

    private static let prefix = "sha256:"
}
