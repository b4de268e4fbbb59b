// SPDX-License-Identifier: Apache-2.0

import Linux

/// Parses socket addresses in the syntax of systemd.socket(5).
enum AddressReader {
    static let forms =
        "a port like \"8080\", \"127.0.0.1:8080\", \"[::1]:8080\", a path, \"@name\" or \"vsock:CID:PORT\""

    /// Parses the text of an address. Returns nil if the text is not an address. A relative path is resolved against
    /// `folder`.
    static func address(_ text: String, folder: String) -> SocketAddress? {
        if text.hasPrefix("/") || text.hasPrefix("./") { return .path(Path.join(folder, text)) }
        if text.hasPrefix("@") { return text.utf8.count > 1 ? .abstract(String(text.dropFirst())) : nil }
        if text.hasPrefix("vsock:") { return vsock(text.dropFirst(6)) }
        if let port = port(text[...]) { return .port(port) }
        if text.hasPrefix("[") { return ipv6(text) }
        guard let colon = text.lastIndex(of: ":"), let port = port(text[text.index(after: colon)...]) else {
            return nil
        }
        let host = text[..<colon]
        return isIPv4(host) ? .ipv4(String(host), port) : nil
    }

    private static func port(_ text: Substring) -> UInt16? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(text), port > 0
        else { return nil }
        return port
    }

    private static func isIPv4(_ text: Substring) -> Bool {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4
            && parts.allSatisfy { part in
                !part.isEmpty && part.utf8.count <= 3 && part.utf8.allSatisfy { (0x30...0x39).contains($0) }
                    && (part.utf8.count == 1 || part.first != "0") && UInt8(part) != nil
            }
    }

    private static func ipv6(_ text: String) -> SocketAddress? {
        guard let end = text.firstIndex(of: "]") else { return nil }
        let inner = text[text.index(after: text.startIndex)..<end]
        let rest = text[text.index(after: end)...]
        guard rest.first == ":", let port = port(rest.dropFirst()) else { return nil }
        let parts = inner.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        guard Sockets.isIPv6(String(parts[0])) else { return nil }
        guard parts.count == 2 else { return .ipv6(String(parts[0]), port, interface: nil) }
        guard !parts[1].isEmpty, parts[1].utf8.count < 16 else { return nil }
        return .ipv6(String(parts[0]), port, interface: String(parts[1]))
    }

    private static func vsock(_ text: Substring) -> SocketAddress? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let port = UInt32(parts[1]), port != .max else { return nil }
        if parts[0].isEmpty { return .vsock(cid: SocketAddress.anyContext, port: port) }
        return UInt32(parts[0]).map { .vsock(cid: $0, port: port) }
    }
}

extension SocketAddress {
    /// Whether the address consists of an IP address and a TCP or UDP port.
    var isInternet: Bool {
        switch self {
        case .port, .ipv4, .ipv6: true
        case .path, .abstract, .vsock: false
        }
    }

    /// Whether the address is that of a Unix socket.
    var isUnix: Bool {
        switch self {
        case .path, .abstract: true
        case .port, .ipv4, .ipv6, .vsock: false
        }
    }
}
