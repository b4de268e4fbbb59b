// SPDX-License-Identifier: Apache-2.0

import Bearer
import Configuration
public import GatewayConfiguration

/// The tokens that clients of the HTTP endpoint use.
public struct TokenTable: Sendable {
    /// The shortest allowed token in bytes: shorter ones can be guessed.
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

    /// For secrets that were read already.
    package init(_ entries: [(token: GatewayToken, secret: [UInt8])]) { self.entries = entries }

    /// The token in a header `Authorization: Bearer …`; nil if it is unknown.
    ///
    /// The time of the comparison only reveals the tokens' lengths: all are compared, each to its end.
    public func find(authorization: String?) -> GatewayToken? {
        guard let given = Bearer.token(authorization: authorization) else { return nil }
        var found: GatewayToken?
        for entry in entries where Bearer.isEqual(given, entry.secret) { found = entry.token }
        return found
    }
}
