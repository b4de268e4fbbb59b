// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A POSIX extended regular expression that must match a whole text.
///
/// Back-references are refused: matching them takes exponential time, and the text may come from untrusted sources.
public final class TextPattern {
    private var compiled = regex_t()

    /// Compiles the pattern; nil if the pattern is invalid.
    public init?(_ pattern: String) {
        guard Self.hasNoBackReference(pattern), !pattern.utf8.contains(0),
            regcomp(&compiled, "^(\(pattern))$", REG_EXTENDED | REG_NOSUB) == 0
        else {
            // After a failed regcomp(3) there is nothing to free. `deinit` calls regfree(3), which accepts zeros.
            compiled = regex_t()
            return nil
        }
    }

    deinit { regfree(&compiled) }

    /// Whether the whole text matches.
    public func fits(_ text: String) -> Bool { regexec(&compiled, text, 0, nil, 0) == 0 }

    private static func hasNoBackReference(_ pattern: String) -> Bool {
        var isEscaped = false
        for byte in pattern.utf8 {
            if isEscaped, (UInt8(ascii: "1")...UInt8(ascii: "9")).contains(byte) { return false }
            isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
        }
        return true
    }
}
