// SPDX-License-Identifier: Apache-2.0

extension AppSummary {
    /// The app's title in the first of `languages` for which the app has a title; otherwise its title for all other
    /// languages. Nil if the app has no title.
    public func title(in languages: [String]) -> String? { Self.text(title, titles, in: languages) }

    /// The app's purpose in the first of `languages` for which the app has a summary; otherwise its summary for all
    /// other languages. Nil if the app has no summary.
    public func summary(in languages: [String]) -> String? { Self.text(summary, summaries, in: languages) }

    /// The text in the first of `languages` for which `texts` has an entry (RFC 4647, lookup); otherwise `other`.
    ///
    /// - Parameter languages: language tags, the preferred one first, such as `de-AT`, `de`. If `texts` has no entry
    ///   for `en`, `other` counts as the English text.
    static func text(_ other: String?, _ texts: [String: String], in languages: [String]) -> String? {
        guard !texts.isEmpty else { return other }
        for language in languages {
            var parts = language.lowercased().split(separator: "-")
            while !parts.isEmpty {
                if let found = texts[parts.joined(separator: "-")] { return found }
                if parts == ["en"] { return other }
                parts.removeLast()
            }
        }
        return other
    }
}
