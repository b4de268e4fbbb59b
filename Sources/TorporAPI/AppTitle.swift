// SPDX-License-Identifier: Apache-2.0

extension AppSummary {
    /// The app's title in the first of these languages that it has one in (RFC 4647, lookup), else the title for all
    /// others;
    /// nil if it has no title.
    ///
    /// - Parameter languages: tags, the best one first: `de-AT`, `de`. For English the title for all others is used
    ///   if there is no English one.
    public func title(in languages: [String]) -> String? {
        guard !titles.isEmpty else { return title }
        for language in languages {
            var parts = language.lowercased().split(separator: "-")
            while !parts.isEmpty {
                if let found = titles[parts.joined(separator: "-")] { return found }
                if parts == ["en"] { return title }
                parts.removeLast()
            }
        }
        return title
    }
}
