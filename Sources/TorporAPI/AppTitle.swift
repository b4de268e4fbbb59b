// SPDX-License-Identifier: Apache-2.0

extension AppSummary {
    /// The app's title in the first of `languages` that it has a title in; otherwise its title for all other
    /// languages. nil if the app has no title.
    public func title(in languages: [String]) -> String? { Self.text(title, titles, in: languages) }

    /// What the app is for, in the first of `languages` that it has a summary in; nil if it has no summary.
    public func summary(in languages: [String]) -> String? { Self.text(summary, summaries, in: languages) }

    /// The text in the first of `languages` that `texts` has (RFC 4647, lookup); `other` if it has none of them.
    ///
    /// - Parameter languages: tags, the best one first: `de-AT`, `de`. Without an English text, `other` counts as one.
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
