// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A POSIX extended regular expression that must match a whole text.
///
/// Back-references are refused: matching them takes exponential time, and the text may come from untrusted sources.
/// Nested repetitions that multiply to more than ``most`` are refused too: regcomp(3) writes each repetition out, in
/// memory and on the stack.
public final class TextPattern {
    private var compiled = regex_t()

    /// The maximum number of nodes in regcomp(3)'s syntax tree of a pattern, with each repetition written out.
    public static let most = 1024

    /// Compiles the pattern; nil if the pattern is invalid or refused.
    public init?(_ pattern: String) {
        guard Self.hasNoBackReference(pattern), !pattern.utf8.contains(0), Self.cost(pattern) <= Self.most,
            regcomp(&compiled, "^(\(pattern))$", REG_EXTENDED | REG_NOSUB) == 0
        else {
            // A failed regcomp(3) leaves nothing to free, so clear `compiled` for the regfree(3) in `deinit`.
            compiled = regex_t()
            return nil
        }
    }

    deinit { regfree(&compiled) }

    /// Whether the whole text matches.
    public func fits(_ text: String) -> Bool { regexec(&compiled, text, 0, nil, 0) == 0 }

    /// Estimates the number of nodes in regcomp(3)'s syntax tree. The estimate stops once it is above ``most``.
    static func cost(_ pattern: String) -> Int {
        var groups = [0]
        var last = 0
        var rest = Array(pattern.utf8)[...]
        while let byte = rest.popFirst() {
            var times = 1
            switch byte {
            case UInt8(ascii: "("):
                guard groups.count <= 32 else { return .max }
                groups.append(0)
                last = 0
                continue
            case UInt8(ascii: ")") where groups.count > 1:
                last = groups.removeLast() + 1
                groups[groups.count - 1] += last
            case UInt8(ascii: "+"), UInt8(ascii: "*"), UInt8(ascii: "?"): times = 2
            case UInt8(ascii: "{"):
                let bounds = rest.prefix { $0 != UInt8(ascii: "}") }
                let numbers = bounds.split(separator: UInt8(ascii: ",")).map { number($0) }
                times = max(2, (numbers.max() ?? 1) + 1)
                rest = rest.dropFirst(bounds.count + 1)
            case UInt8(ascii: "["):
                if rest.first == UInt8(ascii: "^") { rest.removeFirst() }
                if rest.first == UInt8(ascii: "]") { rest.removeFirst() }
                while let inner = rest.popFirst(), inner != UInt8(ascii: "]") {}
                last = 1
                groups[groups.count - 1] += last
            default:
                if byte == UInt8(ascii: "\\") { _ = rest.popFirst() }
                last = 1
                groups[groups.count - 1] += last
            }
            if times > 1 {
                groups[groups.count - 1] += last * (times - 1)
                last *= times
            }
            if groups[groups.count - 1] > most { return .max }
        }
        return groups.reduce(0, +)
    }

    /// Parses a number of at most four digits. For other texts, returns a number too large for a repetition.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int {
        guard digits.count <= 4 else { return most }
        return digits.reduce(0) { value, digit in
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) ? value * 10 + Int(digit - UInt8(ascii: "0")) : most
        }
    }

    private static func hasNoBackReference(_ pattern: String) -> Bool {
        var isEscaped = false
        for byte in pattern.utf8 {
            if isEscaped, (UInt8(ascii: "1")...UInt8(ascii: "9")).contains(byte) { return false }
            isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
        }
        return true
    }
}
