// SPDX-License-Identifier: Apache-2.0

/// The value of a Content-Range field whose unit is bytes (RFC 9110, 14.4).
public enum ContentRange: Hashable, Sendable {
    /// `bytes 500-999/1234`: the first and last byte of this body, and the length of the whole file if known.
    case part(first: Int64, last: Int64, total: Int64?)
    /// `bytes */1234`: the requested range is beyond the end.
    case unsatisfied(total: Int64)

    /// Nil if the text is invalid or contradicts itself.
    public init?(_ text: String) {
        let bytes = Substring(text).utf8
        guard bytes.count <= 128 else { return nil }
        let words = Bytes.trimmed(bytes)
        guard let space = words.firstIndex(of: 0x20), Bytes.lowercased(Substring(words[..<space])) == "bytes" else {
            return nil
        }
        let rest = Bytes.trimmed(words[words.index(after: space)...])
        let sides = rest.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard sides.count == 2 else { return nil }
        let isUnknown = sides[1].elementsEqual("*".utf8)
        let total = Bytes.count(sides[1])
        if !isUnknown && total == nil { return nil }
        if sides[0].elementsEqual("*".utf8) {
            guard let total else { return nil }
            self = .unsatisfied(total: total)
            return
        }
        let ends = sides[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Bytes.count(ends[0]), let last = Bytes.count(ends[1]), first <= last else {
            return nil
        }
        if let total, last >= total { return nil }
        self = .part(first: first, last: last, total: total)
    }
}
