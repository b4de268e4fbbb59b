// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Where a socket is bound.
public enum SocketAddress: Hashable, Sendable {
    /// A port of every address of this machine.
    case port(UInt16)
    /// A port of an IPv4 address.
    case ipv4(String, UInt16)
    /// A port of an IPv6 address; `interface` by name or number, for link-local ones.
    case ipv6(String, UInt16, interface: String?)
    /// A path.
    case path(String)
    /// A name in the abstract namespace of Unix sockets, without the `@`.
    case abstract(String)
    /// A port of AF_VSOCK; `UInt32.max` is every context.
    case vsock(cid: UInt32, port: UInt32)

    /// Every context identifier (VMADDR_CID_ANY).
    public static let anyContext = UInt32.max
}

extension SocketAddress: CustomStringConvertible {
    /// As a configuration writes it.
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

/// What a socket is before its bind, and cannot be any more after it.
public struct SocketPlan: Hashable, Sendable {
    /// The sort of socket.
    public var kind: Sockets.Kind
    /// Where it is bound.
    public var address: SocketAddress
    /// Whether an IPv6 socket of every address leaves IPv4 alone (IPV6_V6ONLY); `nil`: as the machine has it.
    public var ipv6Only: Bool?
    /// Others may be bound to the same port (SO_REUSEPORT).
    public var reusePort = false
    /// The address need not be one of this machine yet (IP_FREEBIND).
    public var freeBind = false
    /// The address need not be one of this machine at all (IP_TRANSPARENT).
    public var transparent = false
    /// The interface that it listens on alone (SO_BINDTODEVICE).
    public var device: String?

    /// A socket with nothing special.
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
