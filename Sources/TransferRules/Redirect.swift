// SPDX-License-Identifier: Apache-2.0

public import TransferProtocol

/// The request that follows a redirect.
public struct Redirect: Hashable, Sendable {
    /// The most redirects; more count as a loop.
    public static let most = 10

    /// The new target.
    public var address: WebAddress
    /// The new method.
    public var method: String
    /// Whether the file is sent again: not after 303, which leads to a page about the result.
    public var sendsFile: Bool

    /// Whether a status is a redirect.
    public static func isRedirect(_ status: Int) -> Bool { [301, 302, 303, 307, 308].contains(status) }

    /// Returns the next request. For 301 and 302 it keeps the method, which RFC 9110 allows (15.4.2 and 15.4.3):
    /// browsers turn POST into GET, which would silently lose the file.
    ///
    /// - Parameters:
    ///   - count: how many redirects were followed before.
    ///   - target: the absolute URL of the redirect.
    ///   - allow: patterns, one of which the target must match; empty for any target.
    ///   - ports: the ports that the target may have; empty for all ports.
    public static func follow(
        _ status: Int,
        from address: WebAddress,
        to target: String,
        method: String,
        sendsFile: Bool,
        count: Int,
        allow: [WebPattern] = [],
        ports: [UInt16] = []
    ) throws(TransferRefusal) -> Redirect {
        guard count < most else { throw TransferRefusal("redirects", "more than \(most) redirects") }
        let next: WebAddress
        do throws(TransferRefusal) {
            next = try TransferRefusal.address(target)
        } catch {
            throw TransferRefusal(
                error.reason == "scheme" ? "scheme" : "redirects",
                "the server redirects to a URL that is not followed: \(error)"
            )
        }
        guard next.isSecure || !address.isSecure else {
            throw TransferRefusal("scheme", "the server redirects from https to http")
        }
        guard allow.isEmpty || allow.contains(where: { $0.matches(next) }) else {
            throw TransferRefusal(
                "not-allowed",
                "the server redirects to \(next.named), which transfers.allow does not permit"
            )
        }
        try TransferRefusal.check(port: next.port, ports)
        let isElsewhere = status == 303 && method != "GET"
        return Redirect(
            address: next,
            method: isElsewhere ? "GET" : method,
            sendsFile: sendsFile && !isElsewhere
        )
    }
}

extension WebAddress {
    /// Whether credentials for one server may be sent to the other: scheme, host and port are equal.
    public func isSameServer(as other: WebAddress) -> Bool {
        isSecure == other.isSecure && host == other.host && port == other.port
    }
}

extension TransferHeader {
    /// The header fields for a request to `address`. If `address` and `origin` are on different servers, the fields
    /// Authorization and Cookie are dropped.
    public static func fields(
        _ headers: [TransferHeader],
        for address: WebAddress,
        origin: WebAddress
    ) -> [TransferHeader] {
        if address.isSameServer(as: origin) { return headers }
        return headers.filter { !["authorization", "cookie"].contains(Bytes.lowercased($0.name)) }
    }
}
