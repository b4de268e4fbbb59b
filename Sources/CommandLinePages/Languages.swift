// SPDX-License-Identifier: Apache-2.0

import Linux

/// The languages that the person at the terminal wants to read, the best one first, as gettext finds them.
package enum Languages {
    package static let wanted: [String] = wanted { ThisProcess.environment($0) }

    package static func wanted(_ variable: (String) -> String?) -> [String] {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap(variable).first { !$0.isEmpty } ?? ""
        guard !["", "C", "POSIX"].contains(code(locale)) else { return [] }
        let list = (variable("LANGUAGE") ?? "").split(separator: ":").map { tag(String($0)) }
        return list.isEmpty ? [tag(locale)] : list
    }

    /// `de_AT.UTF-8@euro` without character set and variant.
    private static func code(_ locale: String) -> String {
        String(locale.prefix { $0 != "." && $0 != "@" })
    }

    private static func tag(_ locale: String) -> String {
        String(code(locale).map { $0 == "_" ? "-" : $0 })
    }
}
