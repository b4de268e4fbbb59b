// SPDX-License-Identifier: Apache-2.0

/// The names of languages in desktop entries: those of locales, `LANGUAGE_COUNTRY@MODIFIER`.
enum DesktopLocale {
    /// Where a locale is known by a modifier instead of a script.
    private static let scripts = [
        "latn": "latin", "cyrl": "cyrillic", "deva": "devanagari", "arab": "arabic", "hebr": "hebrew",
    ]
    /// Where a locale is known by a country instead of a script.
    private static let countries = ["zh-hans": "CN", "zh-hant": "TW"]

    /// The name for a language tag in lower case (BCP 47); nil if no locale is like it.
    static func name(ofTag tag: String) -> String? {
        let parts = tag.split(separator: "-").map(String.init)
        guard let language = parts.first, parts.count <= 3 else { return nil }
        var country: String?
        var modifier: String?
        for part in parts.dropFirst() {
            switch part.utf8.count {
            case 4 where modifier == nil && country == nil:
                if let known = countries[language + "-" + part] {
                    // A country that is written behind it counts instead.
                    if parts.count == 2 { country = known }
                } else if let known = scripts[part] {
                    modifier = known
                } else {
                    return nil
                }
            case 2 where country == nil, 3 where country == nil && part.allSatisfy(\.isNumber):
                country = part.uppercased()
            default: return nil
            }
        }
        return language + (country.map { "_" + $0 } ?? "") + (modifier.map { "@" + $0 } ?? "")
    }
}
