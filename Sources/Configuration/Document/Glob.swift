// SPDX-License-Identifier: Apache-2.0

import WireText

/// The patterns of `include`. A wildcard matches within one path component.
extension Glob {
    static func isPattern(_ text: String) -> Bool {
        text.utf8.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "[") }
    }

    /// The sorted paths that match the pattern. A wildcard matches a hidden name only if the pattern's component begins
    /// with a dot. `names` lists the names in a folder.
    static func paths(_ pattern: String, names: (String) -> [String]?) -> [String] {
        let parts = pattern.split(separator: "/").map(String.init)
        var found = [pattern.hasPrefix("/") ? "/" : "."]
        var isMatched = false
        for part in parts {
            guard isPattern(part) else {
                // This component has no wildcard. If an earlier component has one, keep only those folders found so far
                // that contain this name.
                if isMatched { found = found.filter { names($0)?.contains(part) ?? false } }
                found = found.map { Path.normal($0 + "/" + part) }
                continue
            }
            isMatched = true
            found = found.flatMap { folder in
                (names(folder) ?? []).filter { name in
                    (!name.hasPrefix(".") || part.hasPrefix(".")) && matches(part, name)
                }
                .map { Path.normal(folder + "/" + $0) }
            }
        }
        return found.sorted()
    }
}
