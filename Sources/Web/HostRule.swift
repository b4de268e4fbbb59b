// SPDX-License-Identifier: Apache-2.0

/// Which names a request may be for. A page of somebody else whose name suddenly means 127.0.0.1 (DNS rebinding) still
/// names itself in `Host`, and is turned away by that.
public struct HostRule: Sendable {
    private let names: Set<String>
    private let takesNumeric: Bool
    private let takesAll: Bool

    /// The rule of an address. A Unix socket takes every name where none is listed: no browser gets there but by a proxy,
    /// which has looked at the name.
    ///
    /// - Parameter further: names by which a proxy is known, without ports.
    public init(_ address: ListenAddress, further: [String]) {
        var names = Set(further.map { $0.lowercased() })
        switch address {
        case .unix:
            takesAll = names.isEmpty
            takesNumeric = false
        case .tcp(let host, _):
            takesAll = false
            // Whoever listens to the network is found by any address of the machine; a rebound name is none.
            takesNumeric = !address.isLocal
            names.formUnion(address.isLocal ? ["localhost", "127.0.0.1", "[::1]"] : [])
            names.insert(host.contains(":") ? "[\(host)]" : host)
        }
        self.names = names
    }

    /// Whether a request with that `Host` is meant for us.
    public func allows(_ host: String?) -> Bool {
        if takesAll { return true }
        guard let host, let name = Self.name(of: host) else { return false }
        if names.contains(name) { return true }
        return takesNumeric && Self.isNumeric(name.hasPrefix("[") ? String(name.dropFirst().dropLast()) : name)
    }

    /// The name of a `Host` without its port, in small letters; nil for what is none.
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

    /// Whether it is an address and no name: four numbers with dots, or hexadecimal digits with colons.
    public static func isNumeric(_ host: String) -> Bool {
        if host.contains(":") { return host.allSatisfy { $0.isHexDigit || $0 == ":" || $0 == "." } }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
    }
}

/// Whether a request that changes something comes from our own page.
public enum OriginRule {
    /// By what a browser says itself (`Sec-Fetch-Site`), else by the origin, which must be the host that was asked. Neither
    /// of both says a program, which then has to show a token itself.
    public static func allows(origin: String?, fetchSite: String?, host: String?, hasBearer: Bool) -> Bool {
        if let fetchSite { return fetchSite == "same-origin" }
        guard let origin else { return hasBearer }
        guard let host else { return false }
        return origin == "http://\(host)" || origin == "https://\(host)"
    }
}
