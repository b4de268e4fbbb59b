// SPDX-License-Identifier: Apache-2.0

import Bearer
import WireText

/// Who may come in: by a token, by the cookie that it was exchanged for, or, at a Unix socket without a token, everybody
/// whom the socket's permissions let in.
public struct WebAccess: Sendable {
    /// How somebody came in, or that nobody did.
    public enum Verdict: Hashable, Sendable {
        /// A program with the token itself.
        case bearer
        /// A browser.
        case cookie
        /// By the socket's permissions.
        case socket
        /// Neither token nor cookie was shown.
        case missing
        /// One that is not ours.
        case wrong
    }

    /// The name of the cookie. Cookies know no ports: two dashboards of a machine have two names.
    public let cookieName: String
    private let token: [UInt8]?
    private let cookie: [UInt8]

    /// Access with that token; without one everybody has it.
    public init(token: [UInt8]?, address: ListenAddress) {
        self.token = token
        switch address {
        case .tcp(_, let port): cookieName = "torpor-web-\(port)"
        case .unix: cookieName = "torpor-web"
        }
        cookie = token.map { Self.cookie(of: $0) } ?? []
    }

    /// What a browser gets instead of the token: made of it, so that it survives a restart, but not it.
    static func cookie(of token: [UInt8]) -> [UInt8] {
        Array(SHA256.hexadecimal(SHA256.authenticate(Array("torpor-web cookie".utf8), key: token)).utf8)
    }

    /// Whether a token is needed.
    public var needsToken: Bool { token != nil }

    /// Whether that is the token.
    public func isToken(_ given: [UInt8]) -> Bool { token.map { Bearer.isEqual(given, $0) } ?? true }

    /// Looks at what a request shows.
    public func judge(authorization: String?, cookie given: String?) -> Verdict {
        guard token != nil else { return .socket }
        if let authorization {
            guard let shown = Bearer.token(authorization: authorization) else { return .wrong }
            return isToken(shown) ? .bearer : .wrong
        }
        guard let given, !given.isEmpty else { return .missing }
        return Bearer.isEqual(Array(given.utf8), cookie) ? .cookie : .wrong
    }

    /// The header `Set-Cookie` for somebody who has shown the token.
    public var setCookie: String {
        "\(cookieName)=\(String(wire: cookie)); Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"
    }
}

/// How many wrong tokens may be tried in a second.
public struct TryLimit: Sendable {
    private let most: Int
    private var second: Int64 = .min
    private var count = 0

    /// So many a second.
    public init(most: Int) { self.most = most }

    /// Whether one may be looked at in that second.
    public func allows(at second: Int64) -> Bool { second != self.second || count < most }

    /// One was wrong.
    public mutating func fail(at second: Int64) {
        if second != self.second { (self.second, count) = (second, 0) }
        count += 1
    }
}
