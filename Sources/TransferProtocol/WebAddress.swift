// SPDX-License-Identifier: Apache-2.0

import WireText

/// The parts of an http or https URL.
public struct WebAddress: Hashable, Sendable {
    /// Whether the scheme is https.
    public var isSecure: Bool
    /// The host in lower case; an IPv6 address in brackets.
    public var host: String
    /// The port; if the URL has none, the default port of the scheme.
    public var port: UInt16
    /// The path with the query, beginning with `/`.
    public var path: String

    /// Parses a URL; nil if it is neither http nor https, or contains a user.
    public init?(_ url: String) {
        guard let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        switch Self.lowercased(url.utf8[..<colon]) {
        case "http": isSecure = false
        case "https": isSecure = true
        default: return nil
        }
        let rest = url.utf8[url.utf8.index(after: colon)...]
        guard rest.starts(with: "//".utf8) else { return nil }
        let authority = rest.dropFirst(2).prefix { !"/?#\\".utf8.contains($0) }
        guard !authority.contains(UInt8(ascii: "@")) else { return nil }
        let target = url.utf8[authority.endIndex...].prefix { $0 != UInt8(ascii: "#") }
        guard target.first != UInt8(ascii: "\\") else { return nil }
        var name = authority
        port = isSecure ? 443 : 80
        let isBracketed = authority.first == UInt8(ascii: "[")
        let afterHost: Substring.UTF8View
        if isBracketed {
            guard let end = authority.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            name = authority[...end]
            afterHost = authority[authority.index(after: end)...]
        } else {
            name = authority.prefix { $0 != UInt8(ascii: ":") }
            afterHost = authority[name.endIndex...]
        }
        if !afterHost.isEmpty {
            guard afterHost.first == UInt8(ascii: ":") else { return nil }
            let digits = afterHost.dropFirst()
            if !digits.isEmpty {
                guard digits.count <= 5, digits.allSatisfy({ (0x30...0x39).contains($0) }),
                    let number = UInt16(Substring(digits)), number > 0
                else { return nil }
                port = number
            }
        }
        host = Self.lowercased(name)
        let isFit = isBracketed ? Self.isOfAddress : Self.isOfName
        guard (1...253).contains(host.utf8.count), host.utf8.allSatisfy(isFit) else { return nil }
        path = (target.first == UInt8(ascii: "/") ? "" : "/") + String(wire: target)
    }

    /// Host and port.
    public var server: String { "\(host):\(port)" }

    /// The host, with the port if it is not the scheme's default.
    public var named: String { port == (isSecure ? 443 : 80) ? host : server }

    private static func isOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x61...0x7a, 0x30...0x39, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
        default: false
        }
    }

    private static func isOfAddress(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x61...0x66, 0x30...0x39, UInt8(ascii: ":"), UInt8(ascii: "."), UInt8(ascii: "["), UInt8(ascii: "]"): true
        default: false
        }
    }

    private static func lowercased(_ bytes: some Sequence<UInt8>) -> String {
        String(wire: bytes.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 })
    }
}
