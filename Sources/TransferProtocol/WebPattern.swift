// SPDX-License-Identifier: Apache-2.0

import WireText

/// A pattern for URLs, from the setting `allow`: `https://*.example.org/releases/*`.
public struct WebPattern: Sendable, Hashable {
    /// The pattern as written.
    public let text: String
    private let isSecure: Bool
    private let host: String
    /// Matches any name below `host`, but not `host` itself.
    private let isBelow: Bool
    private let port: UInt16
    private let path: String

    /// Parses a pattern; nil if it is invalid.
    public init?(_ text: String) {
        self.text = text
        let mark = "://*."
        isBelow = text.hasPrefix("http" + mark) || text.hasPrefix("https" + mark)
        var plain = text
        if isBelow, let star = plain.utf8.firstIndex(of: UInt8(ascii: "*")) {
            plain.removeSubrange(star...plain.utf8.index(after: star))
        }
        guard let address = WebAddress(plain), !address.host.utf8.contains(UInt8(ascii: "*")) else { return nil }
        isSecure = address.isSecure
        host = address.host
        port = address.port
        // Without a path, the pattern means the whole server.
        path = plain.utf8.count { $0 == UInt8(ascii: "/") } == 2 ? "/*" : address.path
    }

    /// Whether a URL matches. A path with `..` matches only the pattern of a whole server.
    public func matches(_ address: WebAddress) -> Bool {
        guard isSecure == address.isSecure, port == address.port else { return false }
        let isHost =
            isBelow
            ? address.host.utf8.count > host.utf8.count + 1
                && Array(address.host.utf8).suffix(host.utf8.count + 1)
                    .elementsEqual([UInt8(ascii: ".")] + host.utf8)
            : address.host.utf8.elementsEqual(host.utf8)
        guard isHost else { return false }
        if path == "/*" { return true }
        let onlyPath = address.path.prefix { $0 != "?" }
        let goesUp = onlyPath.split(separator: "/").contains { part in
            let word = part.lowercased().split(separator: "%2e", omittingEmptySubsequences: false).joined(
                separator: "."
            )
            return word == "." || word == ".."
        }
        return !goesUp && Glob.matches(path, address.path)
    }
}
