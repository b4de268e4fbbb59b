// SPDX-License-Identifier: Apache-2.0

/// Texts in sentences of ours.
package enum Readable {
    /// A text from outside without what would begin another line or move a terminal's cursor.
    package static func line(_ text: String) -> String {
        String(
            String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 })
        )
    }

    /// `1 app`, `2 apps`.
    package static func count(_ count: Int, _ what: String) -> String { count == 1 ? "1 \(what)" : "\(count) \(what)s" }
}
