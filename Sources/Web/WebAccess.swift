// SPDX-License-Identifier: Apache-2.0

import Bearer
import WireText

/// Authenticates requests by the token, or by the cookie that a browser gets in exchange for it. For a Unix socket
/// without a token, the socket's permissions decide.
public struct WebAccess: Sendable {
    /// The result of a check.
    public enum Verdict: Hashable, Sendable {
        /// The request contains the right token, as programs send it.
        case bearer
        /// The request contains the right cookie, as browsers send it.
        case cookie
        /// No token is needed: the socket's permissions decide.
        case socket
        /// Neither token nor cookie was sent.
        case missing
        /// The token or cookie is wrong.
        case wrong
    }

    /// The cookie's name. Cookies ignore ports, so two dashboards on a machine need two names.
    public let cookieName: String
    private let token: [UInt8]?
    private let cookie: [UInt8]

    /// Creates access that requires this token; nil to allow every client.
    public init(token: [UInt8]?, address: ListenAddress) {
        self.token = token
        switch address {
        case .tcp(_, let port): cookieName = "torpor-web-\(port)"
        case .unix: cookieName = "torpor-web"
        }
        cookie = token.map { Self.cookie(of: $0) } ?? []
    }

    /// The value of the browser's cookie. It is derived from the token, so that it stays valid when torpor-web
    /// restarts, but does not reveal the token.
    static func cookie(of token: [UInt8]) -> [UInt8] {
        Array(SHA256.hexadecimal(SHA256.authenticate(Array("torpor-web cookie".utf8), key: token)).utf8)
    }

    /// Whether a token is required.
    public var needsToken: Bool { token != nil }

    /// Whether `given` is the token; always true if no token is required. The comparison takes constant time.
    public func isToken(_ given: [UInt8]) -> Bool { token.map { Bearer.isEqual(given, $0) } ?? true }

    /// Checks the headers `Authorization` and `Cookie` of a request.
    public func judge(authorization: String?, cookie given: String?) -> Verdict {
        guard token != nil else { return .socket }
        if let authorization {
            guard let shown = Bearer.token(authorization: authorization) else { return .wrong }
            return isToken(shown) ? .bearer : .wrong
        }
        guard let given, !given.isEmpty else { return .missing }
        return Bearer.isEqual(Array(given.utf8), cookie) ? .cookie : .wrong
    }

    /// The value of the header `Set-Cookie` after a login.
    public var setCookie: String {
        "\(cookieName)=\(String(wire: cookie)); Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"
    }
}

/// Limits how many tokens are rejected per second.
public struct TryLimit: Sendable {
    private let most: Int
    private var second: Int64 = .min
    private var count = 0

    /// - Parameter most: the most rejections per second.
    public init(most: Int) { self.most = most }

    /// Whether another token may be rejected in this second.
    public func allows(at second: Int64) -> Bool { second != self.second || count < most }

    /// Counts a rejected token.
    public mutating func fail(at second: Int64) {
        if second != self.second { (self.second, count) = (second, 0) }
        count += 1
    }
}
