// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A POSIX extended regular expression that the whole of a text fits, or not.
///
/// Without back-references, of which matching takes exponential time: what is matched may come from strangers.
public final class TextPattern {
    private var compiled = regex_t()

    /// nil for a text that is none.
    public init?(_ pattern: String) {
        guard Self.hasNoBackReference(pattern), !pattern.utf8.contains(0),
            regcomp(&compiled, "^(\(pattern))$", REG_EXTENDED | REG_NOSUB) == 0
        else {
            // What failed to compile has nothing to be freed, and regfree(3) takes what is all zero.
            compiled = regex_t()
            return nil
        }
    }

    deinit { regfree(&compiled) }

    /// Whether all of the text fits.
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
