// SPDX-License-Identifier: Apache-2.0

/// Prepares text from apps and clients for the sentences that torpord writes.
package enum Readable {
    /// Replaces control characters, which could begin a new line or move the cursor of a terminal.
    package static func line(_ text: String) -> String {
        String(
            String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 })
        )
    }

    /// Cuts a text off, so that it has at most this many bytes and an ellipsis.
    package static func bounded(_ text: String, to limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: limit)
        // Do not cut within a character of Unicode.
        while end > text.startIndex, end.samePosition(in: text.unicodeScalars) == nil {
            end = text.utf8.index(before: end)
        }
        return String(text.unicodeScalars[..<end]) + "…"
    }

    /// A number with its noun, such as `1 app` or `2 apps`.
    package static func count(_ count: Int, _ what: String) -> String { count == 1 ? "1 \(what)" : "\(count) \(what)s" }
}
