// SPDX-License-Identifier: Apache-2.0

/// Language names in desktop entries, in the form of locales: `LANGUAGE_COUNTRY@MODIFIER`.
enum DesktopLocale {
    /// Codes of scripts (ISO 15924), with the modifiers that locales use instead.
    private static let scripts = [
        "latn": "latin", "cyrl": "cyrillic", "deva": "devanagari", "arab": "arabic", "hebr": "hebrew",
    ]
    /// Languages with scripts, with the countries that locales use instead.
    private static let countries = ["zh-hans": "CN", "zh-hant": "TW"]

    /// The locale's name for a language tag in lower case (BCP 47); nil if no locale corresponds to the tag.
    static func name(ofTag tag: String) -> String? {
        let parts = tag.split(separator: "-").map(String.init)
        guard let language = parts.first, parts.count <= 3 else { return nil }
        var country: String?
        var modifier: String?
        for part in parts.dropFirst() {
            switch part.utf8.count {
            case 4 where modifier == nil && country == nil:
                if let known = countries[language + "-" + part] {
                    // A country in the tag takes precedence over the country that stands for the script.
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
