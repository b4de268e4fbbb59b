// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// An address to which a socket can be bound.
public enum SocketAddress: Hashable, Sendable {
    /// A port on all addresses of this machine.
    case port(UInt16)
    /// A port on an IPv4 address.
    case ipv4(String, UInt16)
    /// A port on an IPv6 address. Link-local addresses need an `interface` (name or number).
    case ipv6(String, UInt16, interface: String?)
    /// A path in the file system.
    case path(String)
    /// A name in the abstract namespace of Unix sockets, without the `@`.
    case abstract(String)
    /// A port of AF_VSOCK. `UInt32.max` as `cid` stands for any context.
    case vsock(cid: UInt32, port: UInt32)

    /// Any context identifier (VMADDR_CID_ANY).
    public static let anyContext = UInt32.max
}

extension SocketAddress: CustomStringConvertible {
    /// The address in the syntax of the configuration.
    public var description: String {
        switch self {
        case .port(let port): "\(port)"
        case .ipv4(let address, let port): "\(address):\(port)"
        case .ipv6(let address, let port, let interface): "[\(address)\(interface.map { "%" + $0 } ?? "")]:\(port)"
        case .path(let path): path
        case .abstract(let name): "@" + name
        case .vsock(let cid, let port): "vsock:\(cid == Self.anyContext ? "" : "\(cid)"):\(port)"
        }
    }
}

extension SocketAddress {
    /// The key of sockets that are bound to this address: ``SocketFacts/place``.
    public var place: UInt64 {
        switch self {
        case .port(let port), .ipv4(_, let port), .ipv6(_, let port, _): UInt64(port)
        case .path(let path): tlx_place_of_name(path, path.utf8.count)
        case .abstract(let name): tlx_place_of_name("\0" + name, name.utf8.count + 1)
        case .vsock(_, let port): UInt64(port) | 1 << 62
        }
    }
}

/// The properties of a socket that must be set before its bind.
public struct SocketPlan: Hashable, Sendable {
    /// The type of the socket (SOCK_STREAM …).
    public var kind: Sockets.Kind
    /// The address to bind to.
    public var address: SocketAddress
    /// Whether an IPv6 socket on all addresses excludes IPv4 (IPV6_V6ONLY); `nil` for the machine's default.
    public var ipv6Only: Bool?
    /// Whether other sockets may bind to the same port (SO_REUSEPORT).
    public var reusePort = false
    /// Whether the address need not exist on this machine yet (IP_FREEBIND).
    public var freeBind = false
    /// Whether the address need not belong to this machine at all (IP_TRANSPARENT).
    public var transparent = false
    /// The only network interface that the socket receives from (SO_BINDTODEVICE); nil for all.
    public var device: String?

    /// Creates a plan with default properties.
    public init(_ kind: Sockets.Kind, _ address: SocketAddress) {
        self.kind = kind
        self.address = address
    }
}

extension Sockets {
    /// Whether a text is a numeric IPv6 address without a zone.
    public static func isIPv6(_ text: String) -> Bool {
        var address = in6_addr()
        return inet_pton(AF_INET6, text, &address) == 1
    }
}
