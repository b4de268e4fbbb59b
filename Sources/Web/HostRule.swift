// SPDX-License-Identifier: Apache-2.0

/// Which host names a request may be for. This blocks DNS rebinding: if an attacker's domain suddenly resolves to
/// 127.0.0.1, its pages still send that domain in `Host`.
public struct HostRule: Sendable {
    private let names: Set<String>
    private let takesNumeric: Bool
    private let takesAll: Bool

    /// The rule for an address. A Unix socket accepts every name if `further` is empty: browsers reach it only
    /// through a proxy, which has checked the name.
    ///
    /// - Parameter further: names of a proxy, without ports.
    public init(_ address: ListenAddress, further: [String]) {
        var names = Set(further.map { $0.lowercased() })
        switch address {
        case .unix:
            takesAll = names.isEmpty
            takesNumeric = false
        case .tcp(let host, _):
            takesAll = false
            // On a network, any numeric address of the machine is valid: rebinding needs a name.
            takesNumeric = !address.isLocal
            names.formUnion(address.isLocal ? ["localhost", "127.0.0.1", "[::1]"] : [])
            names.insert(host.contains(":") ? "[\(host)]" : host)
        }
        self.names = names
    }

    /// Whether a request with that `Host` may be served.
    public func allows(_ host: String?) -> Bool {
        if takesAll { return true }
        guard let host, let name = Self.name(of: host) else { return false }
        if names.contains(name) { return true }
        return takesNumeric && Self.isNumeric(name.hasPrefix("[") ? String(name.dropFirst().dropLast()) : name)
    }

    /// The name in a `Host` without its port, in lower case; nil if invalid.
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

    /// Whether it is an IP address: four numbers with dots, or hexadecimal digits with colons.
    public static func isNumeric(_ host: String) -> Bool {
        if host.contains(":") { return host.allSatisfy { $0.isHexDigit || $0 == ":" || $0 == "." } }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
    }
}

/// Whether a request that changes something comes from the dashboard's own page (protection against CSRF).
public enum OriginRule {
    /// Decides by the browser's `Sec-Fetch-Site`, else by `Origin`, which must equal `Host`. A program sends neither
    /// header and must send the token itself.
    public static func allows(origin: String?, fetchSite: String?, host: String?, hasBearer: Bool) -> Bool {
        if let fetchSite { return fetchSite == "same-origin" }
        guard let origin else { return hasBearer }
        guard let host else { return false }
        return origin == "http://\(host)" || origin == "https://\(host)"
    }
}
