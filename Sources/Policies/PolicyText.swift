// SPDX-License-Identifier: Apache-2.0

import WireText

/// Makes text from policies safe for logs and terminals.
public enum PolicyText {
    /// The text as valid UTF-8 in one line of at most `limit` bytes. Characters that move a terminal's cursor, break
    /// the line or change the direction of text are replaced: white space by a space, others by U+FFFD.
    public static func clean(_ bytes: UnsafeRawBufferPointer, limit: Int) -> String {
        if bytes.count <= limit, bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) {
            return String(wire: bytes)
        }
        var text = String.UnicodeScalarView()
        var size = 0
        for scalar in String(wire: bytes.prefix(limit)).unicodeScalars {
            let fit = replacement(for: scalar)
            size += UTF8.width(fit)
            if size > limit { break }
            text.append(fit)
        }
        return String(text)
    }

    /// Cleans a String in the same way as bytes.
    public static func clean(_ text: String, limit: Int) -> String {
        var text = text
        return text.withUTF8 { clean(UnsafeRawBufferPointer($0), limit: limit) }
    }

    private static func replacement(for scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.value {
        case 0x09...0x0D, 0x85, 0x2028, 0x2029: " "
        // The control characters of C0, DEL and C1; and the marks, embeddings, overrides and isolates that change the
        // direction of the text after them.
        case 0..<0x20, 0x7F..<0xA0, 0x200E, 0x200F, 0x061C, 0x202A...0x202E, 0x2066...0x2069: "\u{FFFD}"
        default: scalar
        }
    }
}
