// SPDX-License-Identifier: Apache-2.0

/// Tokens that clients of an endpoint for HTTP show, and how they are compared.
public enum Bearer {
    /// The shortest token in bytes: what is shorter can be guessed.
    public static let shortest = 16

    /// The token of a header `Authorization: Bearer …`; nil where it has none.
    public static func token(authorization: String?) -> [UInt8]? {
        guard let authorization else { return nil }
        // As bytes: a String of a client's is compared in time that grows with the square of its marks.
        let scheme = Array("bearer ".utf8)
        let bytes = Array(authorization.utf8)
        guard bytes.count > scheme.count, zip(bytes, scheme).allSatisfy({ $0 | 0x20 == $1 }) else { return nil }
        return Array(bytes[scheme.count...])
    }

    /// Compares without a branch that depends on a byte: how long it takes tells nothing but lengths. Nothing is equal to
    /// an empty secret.
    @inline(never)
    public static func isEqual(_ given: [UInt8], _ secret: [UInt8]) -> Bool {
        guard !secret.isEmpty, !given.isEmpty else { return false }
        var difference = UInt(bitPattern: given.count ^ secret.count)
        for index in given.indices { difference |= UInt(given[index] ^ secret[index % secret.count]) }
        return difference == 0
    }
}
