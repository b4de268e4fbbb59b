// SPDX-License-Identifier: Apache-2.0

/// Bearer tokens of HTTP clients, and how to compare them.
public enum Bearer {
    /// The shortest accepted token in bytes: shorter ones can be guessed.
    public static let shortest = 16

    /// The token of a header `Authorization: Bearer …`; nil if there is none.
    public static func token(authorization: String?) -> [UInt8]? {
        guard let authorization else { return nil }
        // Compare bytes: comparing a String takes time quadratic in its combining marks.
        let scheme = Array("bearer ".utf8)
        let bytes = Array(authorization.utf8)
        guard bytes.count > scheme.count, zip(bytes, scheme).allSatisfy({ $0 | 0x20 == $1 }) else { return nil }
        return Array(bytes[scheme.count...])
    }

    /// Compares in a time that depends only on the two lengths, so that the time reveals nothing else. An empty secret
    /// equals no value.
    @inline(never)
    public static func isEqual(_ given: [UInt8], _ secret: [UInt8]) -> Bool {
        guard !secret.isEmpty, !given.isEmpty else { return false }
        var difference = UInt(bitPattern: given.count ^ secret.count)
        for index in given.indices { difference |= UInt(given[index] ^ secret[index % secret.count]) }
        return difference == 0
    }
}
