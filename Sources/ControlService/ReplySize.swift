// SPDX-License-Identifier: Apache-2.0

/// How large replies become whose texts come from apps.
enum ReplySize {
    /// About the most bytes of one reply. torpord writes a reply in its loop, and clients read at most 16 MiB.
    static let mostBytes = 4 << 20

    /// The most bytes that a text takes as JSON: six for a control character, and also for one outside of ASCII, which
    /// has at least two bytes.
    static func of(_ text: String) -> Int {
        text.utf8.reduce(0) { bytes, byte in
            switch byte {
            case ..<0x20, 0x7f: bytes + 6
            case 0x80...: bytes + 3
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes + 2
            default: bytes + 1
            }
        }
    }
}
