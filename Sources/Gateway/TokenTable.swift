public import Configuration

/// The tokens by which clients of the HTTP endpoint are known.
public struct TokenTable: Sendable {
    /// The shortest token in bytes: what is shorter can be guessed.
    public static let shortest = 16

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
                    description: "the token \(token.name) has \(secret.count) bytes, and could be guessed: make one of "
                        + "at least \(Self.shortest), as ‘openssl rand -hex 32’ does, in "
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

    /// Whose token a header `Authorization: Bearer …` has.
    ///
    /// How long it takes tells nothing of the tokens but their lengths: all are compared, each to its end.
    public func find(authorization: String?) -> GatewayToken? {
        guard let authorization else { return nil }
        let scheme = "bearer "
        guard authorization.utf8.count > scheme.utf8.count,
            authorization.prefix(scheme.count).lowercased() == scheme
        else { return nil }
        let given = Array(authorization.dropFirst(scheme.count).utf8)
        var found: GatewayToken?
        for entry in entries where Self.isEqual(given, entry.secret) { found = entry.token }
        return found
    }

    /// Compares without a branch that depends on a byte.
    @inline(never)
    static func isEqual(_ given: [UInt8], _ secret: [UInt8]) -> Bool {
        guard !secret.isEmpty, !given.isEmpty else { return false }
        var difference = UInt(bitPattern: given.count ^ secret.count)
        for index in given.indices { difference |= UInt(given[index] ^ secret[index % secret.count]) }
        return difference == 0
    }
}
