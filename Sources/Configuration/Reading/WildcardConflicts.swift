// SPDX-License-Identifier: Apache-2.0

import Linux

/// Finds TCP sockets of which one is on all addresses and the other on one of them, at the same port: the kernel lets
/// only the first one listen.
struct WildcardConflicts {
    private struct User {
        let app: String
        let plan: SocketPlan
    }

    /// The sockets on all addresses, and those on one, by port.
    private var wide: [UInt16: [User]] = [:]
    private var narrow: [UInt16: [User]] = [:]

    /// Why a socket conflicts with one of those that were given before; nil if it does not.
    mutating func problem(_ socket: SocketSpecification, _ app: AppSpecification) -> String? {
        let plan = socket.plan
        guard plan.kind == .stream, let port = Self.port(of: plan.address) else { return nil }
        let user = User(app: app.name, plan: plan)
        let isWide = Self.isWide(plan.address)
        // Two equal addresses are an error of their own.
        let others = (wide[port] ?? []) + (isWide ? narrow[port] ?? [] : [])
        let other = others.first { other in
            other.plan.address != plan.address && Self.doConflict(plan, other.plan)
        }
        if isWide { wide[port, default: []].append(user) } else { narrow[port, default: []].append(user) }
        guard let other else { return nil }
        let (own, its) = (quoted("\(plan.address)"), quoted("\(other.plan.address)"))
        return "\(own) and \(its) of \(quoted(other.app)) exclude each other: one is on all addresses, so that only "
            + "the first to be bound listens"
    }

    private static func doConflict(_ one: SocketPlan, _ other: SocketPlan) -> Bool {
        // The kernel shares a port if both sockets allow it, and separates those of different interfaces.
        if one.reusePort && other.reusePort { return false }
        if let device = one.device, let another = other.device, device != another { return false }
        return isIPv4(one) && isIPv4(other) || isIPv6(one) && isIPv6(other)
    }

    private static func port(of address: SocketAddress) -> UInt16? {
        switch address {
        case .port(let port), .ipv4(_, let port), .ipv6(_, let port, _): port == 0 ? nil : port
        case .path, .abstract, .vsock: nil
        }
    }

    private static func isWide(_ address: SocketAddress) -> Bool {
        switch address {
        case .port: true
        case .ipv4(let host, _): host == "0.0.0.0"
        case .ipv6(let host, _, _): host == "::"
        case .path, .abstract, .vsock: false
        }
    }

    /// Whether the socket takes connections by IPv4. Without `bind_ipv6_only`, one on all addresses does, as is the
    /// default of Linux.
    private static func isIPv4(_ plan: SocketPlan) -> Bool {
        switch plan.address {
        case .ipv4: true
        case .port, .ipv6("::", _, _): plan.ipv6Only != true
        case .ipv6, .path, .abstract, .vsock: false
        }
    }

    private static func isIPv6(_ plan: SocketPlan) -> Bool {
        switch plan.address {
        case .port, .ipv6: true
        case .ipv4, .path, .abstract, .vsock: false
        }
    }
}
