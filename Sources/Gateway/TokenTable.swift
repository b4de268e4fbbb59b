// SPDX-License-Identifier: Apache-2.0

import Bearer
import Configuration
public import GatewayConfiguration

/// The tokens by which clients of the HTTP endpoint authenticate.
public struct TokenTable: Sendable {
    /// The minimum length of a token in bytes: a shorter one can be guessed.
    public static let shortest = Bearer.shortest

    private let entries: [(token: GatewayToken, secret: [UInt8])]

    /// Reads the secrets of tokens.
    ///
    /// - Throws: ``Secrets/Problem`` if a secret cannot be read, is too short, or belongs to two tokens.
    public init(_ tokens: [GatewayToken], _ secrets: Secrets) throws(Secrets.Problem) {
        var entries: [(token: GatewayToken, secret: [UInt8])] = []
        for token in tokens {
            let secret = try secrets.read(token.secret)
            guard secret.count >= Self.shortest else {
                throw Secrets.Problem(
                    description: "the token \(token.name) has only \(secret.count) bytes and could be guessed: write "
                        + "at least \(Self.shortest), as from ‘openssl rand -hex 32’, into "
                        + secrets.path(token.secret)
                )
            }
            if let other = entries.first(where: { $0.secret == secret }) {
                throw Secrets.Problem(
                    description: "the tokens \(other.token.name) and \(token.name) are the same: make one for each"
                )
            }
            entries.append((token, secret))
        }
        self.entries = entries
    }

    /// Creates a table from secrets that were read already.
    package init(_ entries: [(token: GatewayToken, secret: [UInt8])]) { self.entries = entries }

    /// The token in a header `Authorization: Bearer …`; nil if it is unknown.
    ///
    /// All tokens are compared, each to its end, so the time that this takes reveals only their lengths.
    public func find(authorization: String?) -> GatewayToken? {
        guard let given = Bearer.token(authorization: authorization) else { return nil }
        var found: GatewayToken?
        for entry in entries where Bearer.isEqual(given, entry.secret) { found = entry.token }
        return found
    }
}
