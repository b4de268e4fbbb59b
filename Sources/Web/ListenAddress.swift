// SPDX-License-Identifier: Apache-2.0

/// Where the dashboard listens.
public enum ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// A numeric IP address and a port.
    case tcp(host: String, port: UInt16)
    /// The path of a Unix socket.
    case unix(path: String)

    /// Parses `127.0.0.1:7878`, `[::1]:7878`, `7878` or `unix:/path`; nil for other texts.
    public init?(_ text: String) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard path.hasPrefix("/") else { return nil }
            self = .unix(path: path)
            return
        }
        guard let colon = text.lastIndex(of: ":") else {
            guard let port = UInt16(text) else { return nil }
            self = .tcp(host: "127.0.0.1", port: port)
            return
        }
        guard let port = UInt16(text[text.index(after: colon)...]) else { return nil }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
            guard host.contains(":"), HostRule.isNumeric(host) else { return nil }
        } else if host.contains(":") || !HostRule.isNumeric(host) {
            return nil
        }
        self = .tcp(host: host, port: port)
    }

    /// Whether only this machine can reach the address.
    public var isLocal: Bool {
        switch self {
        case .unix: true
        case .tcp(let host, _): host == "::1" || host.hasPrefix("127.")
        }
    }

    /// The form used in URLs and on the command line.
    public var description: String {
        switch self {
        case .unix(let path): "unix:\(path)"
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }
    }
}
