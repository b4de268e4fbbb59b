// SPDX-License-Identifier: Apache-2.0

public import TransferProtocol

/// What a redirection makes of a request.
public struct Redirect: Hashable, Sendable {
    /// More than this is a loop.
    public static let most = 10

    /// Where to.
    public var address: WebAddress
    /// The method of the next request.
    public var method: String
    /// Whether the file is sent again: not after 303, which names a page about what became of it.
    public var sendsFile: Bool

    /// Whether a status is one that leads somewhere else.
    public static func isRedirect(_ status: Int) -> Bool { [301, 302, 303, 307, 308].contains(status) }

    /// The next request. 301 and 302 keep the method, as RFC 9110 has it (15.4.2): what browsers make of POST would lose a
    /// file without a word.
    ///
    /// - Parameters:
    ///   - count: how many were followed before.
    ///   - target: the absolute URL that it leads to.
    ///   - allow: where it may lead to; empty for anywhere.
    public static func follow(
        _ status: Int,
        from address: WebAddress,
        to target: String,
        method: String,
        sendsFile: Bool,
        count: Int,
        allow: [WebPattern] = []
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
        let isElsewhere = status == 303 && method != "GET"
        return Redirect(
            address: next,
            method: isElsewhere ? "GET" : method,
            sendsFile: sendsFile && !isElsewhere
        )
    }
}

extension WebAddress {
    /// Whether what is secret for one server may be told to the other: scheme, host and port are the same.
    public func isSameServer(as other: WebAddress) -> Bool {
        isSecure == other.isSecure && host == other.host && port == other.port
    }
}

extension TransferHeader {
    /// Those that a request to `address` may have, of those that were meant for `origin`: not Authorization and Cookie where
    /// that is another server.
    public static func fields(
        _ headers: [TransferHeader],
        for address: WebAddress,
        origin: WebAddress
    ) -> [TransferHeader] {
        if address.isSameServer(as: origin) { return headers }
        return headers.filter { !["authorization", "cookie"].contains(Bytes.lowercased($0.name)) }
    }
}
