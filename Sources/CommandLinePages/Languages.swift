// SPDX-License-Identifier: Apache-2.0

import Linux

/// The user's languages, preferred first, from the same environment variables as gettext.
package enum Languages {
    package static let wanted: [String] = wanted { ThisProcess.environment($0) }

    package static func wanted(_ variable: (String) -> String?) -> [String] {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap(variable).first { !$0.isEmpty } ?? ""
        guard !["", "C", "POSIX"].contains(code(locale)) else { return [] }
        let list = (variable("LANGUAGE") ?? "").split(separator: ":").map { tag(String($0)) }
        return list.isEmpty ? [tag(locale)] : list
    }

    /// The language and country of a locale: `de_AT` of `de_AT.UTF-8@euro`.
    private static func code(_ locale: String) -> String {
        String(locale.prefix { $0 != "." && $0 != "@" })
    }

    private static func tag(_ locale: String) -> String {
        String(code(locale).map { $0 == "_" ? "-" : $0 })
    }
}
