// SPDX-License-Identifier: Apache-2.0

/// Makes text fit for the sentences that torpord writes.
package enum Readable {
    /// Replaces control characters in text from outside: they could begin a new line or move a terminal's cursor.
    package static func line(_ text: String) -> String {
        String(
            String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 })
        )
    }

    /// `1 app`, `2 apps`.
    package static func count(_ count: Int, _ what: String) -> String { count == 1 ? "1 \(what)" : "\(count) \(what)s" }
}
