// SPDX-License-Identifier: Apache-2.0

/// Prepares text from apps and clients for the sentences that torpord writes.
package enum Readable {
    /// Replaces control characters, which could begin a new line or move the cursor of a terminal.
    package static func line(_ text: String) -> String {
        String(
            String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 })
        )
    }

    /// A number with its noun, such as `1 app` or `2 apps`.
    package static func count(_ count: Int, _ what: String) -> String { count == 1 ? "1 \(what)" : "\(count) \(what)s" }
}
