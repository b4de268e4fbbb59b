// SPDX-License-Identifier: Apache-2.0

extension AppSummary {
    /// What the app is called in the first of these languages that it has a title in (RFC 4647, lookup), or for all others;
    /// nil where it has none but its name.
    ///
    /// - Parameter languages: tags, the best one first: `de-AT`, `de`. Who wants English is given what is for all others,
    ///   where there is none in English.
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
