// SPDX-License-Identifier: Apache-2.0

/// The host names to which a request may be addressed. This prevents DNS rebinding: an attacker can make their domain
/// resolve to 127.0.0.1, but the browser still sends that domain in the header `Host`.
public struct HostRule: Sendable {
    private let names: Set<String>
    private let takesNumeric: Bool
    private let takesAll: Bool

    /// Creates the rule for an address. For a Unix socket, every name is allowed if `further` is empty: browsers reach
    /// the socket only through a proxy, which has checked the name.
    ///
    /// - Parameter further: the host names of a proxy, without ports.
    public init(_ address: ListenAddress, further: [String]) {
        var names = Set(further.map { $0.lowercased() })
        switch address {
        case .unix:
            takesAll = names.isEmpty
            takesNumeric = false
        case .tcp(let host, _):
            takesAll = false
            // For requests from a network, allow any numeric address: DNS rebinding needs a name.
            takesNumeric = !address.isLocal
            names.formUnion(address.isLocal ? ["localhost", "127.0.0.1", "[::1]"] : [])
            names.insert(host.contains(":") ? "[\(host)]" : host)
        }
        self.names = names
    }

    /// Whether a request with this value of `Host` may be served.
    public func allows(_ host: String?) -> Bool {
        if takesAll { return true }
        guard let host, let name = Self.name(of: host) else { return false }
        if names.contains(name) { return true }
        return takesNumeric && Self.isNumeric(name.hasPrefix("[") ? String(name.dropFirst().dropLast()) : name)
    }

    /// The name in a value of `Host`, without its port and in lower case; nil if it is not valid.
    static func name(of host: String) -> String? {
        let host = host.lowercased()
        var name = host[...]
        if host.hasPrefix("[") {
            guard let end = host.firstIndex(of: "]") else { return nil }
            name = host[...end]
        } else if let colon = host.firstIndex(of: ":") {
            name = host[..<colon]
        }
        let rest = host[name.endIndex...]
        guard rest.isEmpty || rest.hasPrefix(":") && UInt16(rest.dropFirst()) != nil, !name.isEmpty else { return nil }
        return String(name)
    }

    /// Whether a host is an IP address: four numbers with dots, or hexadecimal digits with colons.
    public static func isNumeric(_ host: String) -> Bool {
        if host.contains(":") { return host.allSatisfy { $0.isHexDigit || $0 == ":" || $0 == "." } }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
    }
}

/// Decides whether a request that changes something comes from the dashboard's own page (protection against CSRF).
public enum OriginRule {
    /// Decides by the header `Sec-Fetch-Site` of browsers. If the browser does not send that header, `Origin` must
    /// equal `Host`. A program sends neither header, but must send the token itself.
    public static func allows(origin: String?, fetchSite: String?, host: String?, hasBearer: Bool) -> Bool {
        if let fetchSite { return fetchSite == "same-origin" }
        guard let origin else { return hasBearer }
        guard let host else { return false }
        return origin == "http://\(host)" || origin == "https://\(host)"
    }
}
