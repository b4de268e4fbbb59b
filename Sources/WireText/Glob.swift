// SPDX-License-Identifier: Apache-2.0

/// Glob patterns: `*`, `?` and `[a-z]` (glob(7)).
public enum Glob {
    /// Whether a name matches a pattern; `*` and `?` match `/` too.
    public static func matches(_ pattern: String, _ name: String) -> Bool {
        let pattern = Array(pattern.unicodeScalars)
        let name = Array(name.unicodeScalars)
        var p = 0
        var n = 0
        // The position of the last `*` and the end of what it covers: backtracking to the last `*` is enough.
        var star: (pattern: Int, name: Int)?
        while n < name.count {
            if p < pattern.count, pattern[p] == "*" {
                star = (p, n)
                p += 1
                continue
            }
            if p < pattern.count, let next = step(pattern, p, name[n]) {
                p = next
                n += 1
                continue
            }
            guard let last = star else { return false }
            star = (last.pattern, last.name + 1)
            p = last.pattern + 1
            n = last.name + 1
        }
        return pattern[p...].allSatisfy { $0 == "*" }
    }

    /// Matches one character of the text with the pattern's part at an index. Returns the index after that part; nil if
    /// the character does not match.
    private static func step(_ pattern: [Unicode.Scalar], _ at: Int, _ scalar: Unicode.Scalar) -> Int? {
        if pattern[at] == "?" { return at + 1 }
        guard pattern[at] == "[", let end = pattern[(at + 1)...].dropFirst().firstIndex(of: "]") else {
            return pattern[at] == scalar ? at + 1 : nil
        }
        var set = pattern[(at + 1)..<end]
        let isNegated = set.first == "!" && set.count > 1
        if isNegated { set = set.dropFirst() }
        var isIn = false
        while let first = set.first {
            if set.count >= 3, set[set.startIndex + 1] == "-" {
                let last = set[set.startIndex + 2]
                if first <= scalar, scalar <= last { isIn = true }
                set = set.dropFirst(3)
            } else {
                if first == scalar { isIn = true }
                set = set.dropFirst()
            }
        }
        return isIn != isNegated ? end + 1 : nil
    }
}
