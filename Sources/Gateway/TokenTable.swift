// SPDX-License-Identifier: Apache-2.0

import Bearer
import Configuration
public import GatewayConfiguration

/// The tokens by which clients of the HTTP endpoint are known.
public struct TokenTable: Sendable {
    /// The shortest token in bytes: what is shorter can be guessed.
    public static let shortest = Bearer.shortest

    private let entries: [(token: GatewayToken, secret: [UInt8])]

    /// Reads the secrets of tokens.
    ///
    /// - Throws: ``Secrets/Problem`` for one that cannot be read, is too short, or is another one's too.
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

    /// Tokens whose secrets are at hand.
    package init(_ entries: [(token: GatewayToken, secret: [UInt8])]) { self.entries = entries }

    /// Whose token a header `Authorization: Bearer …` has.
    ///
    /// How long it takes tells nothing of the tokens but their lengths: all are compared, each to its end.
    public func find(authorization: String?) -> GatewayToken? {
        guard let given = Bearer.token(authorization: authorization) else { return nil }
        var found: GatewayToken?
        for entry in entries where Bearer.isEqual(given, entry.secret) { found = entry.token }
        return found
    }
}
