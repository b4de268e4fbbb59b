// SPDX-License-Identifier: Apache-2.0

extension AppSummary {
    /// The app's title in the first of these languages that it has one in; nil if it has no title.
    public func title(in languages: [String]) -> String? { Self.text(title, titles, in: languages) }

    /// What the app is for, in the first of these languages that it is said in; nil if it has no summary.
    public func summary(in languages: [String]) -> String? { Self.text(summary, summaries, in: languages) }

    /// The text in the first of these languages that it has (RFC 4647, lookup), else the one for all others.
    ///
    /// - Parameter languages: tags, the best one first: `de-AT`, `de`. For English the text for all others is used if
    ///   there is no English one.
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
