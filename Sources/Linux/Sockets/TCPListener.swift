// SPDX-License-Identifier: Apache-2.0

import CLinux

/// A listening TCP socket.
public struct TCPListener: Sendable {
    /// The inode number of the socket, as `/proc/PID/fd` shows it.
    public let inode: UInt32
    /// The port that the socket listens on.
    public let port: UInt16
    /// When a connection to this listener was last closed normally (CLOCK_MONOTONIC, to about 10 ms), as far as this
    /// machine knows. The end of a connection that closes first stays in TIME_WAIT for 60 s. If that end is on another
    /// machine, this machine does not know the time. A reset connection is not known either.
    public internal(set) var lastClosed: Duration?

    fileprivate let high: UInt64
    fileprivate let low: UInt64
    fileprivate let isV6Only: Bool

    fileprivate init(_ socket: tlx_tcp_socket) {
        (inode, port) = (socket.inode, socket.local.port)
        (high, low) = (socket.local.high, socket.local.low)
        isV6Only = socket.is_v6_only != 0
    }

    /// All listening TCP sockets of this process's network namespace. Throws an error such as EACCES if socket
    /// diagnostics are forbidden or missing.
    public static func all() throws(Errno) -> [TCPListener] {
        let reading = try TCPConnectionReading()
        _ = try reading.read()
        return reading.listeners
    }

    /// Whether the listener keeps another TCP socket from listening on all addresses, as the plan says. False for a plan
    /// with one address.
    public func blocks(_ plan: SocketPlan) -> Bool {
        let isIPv4 = high == 0 && low >> 32 == TCPListenerTable.mapped
        let isBoth = high == 0 && low == 0 && !isV6Only
        return switch plan.address {
        case .port(let port): port == self.port && (plan.ipv6Only != true || !isIPv4)
        case .ipv4("0.0.0.0", let port): port == self.port && (isIPv4 || isBoth)
        case .ipv6("::", let port, _): port == self.port && (plan.ipv6Only != true || !isIPv4)
        case .ipv4, .ipv6, .path, .abstract, .vsock: false
        }
    }

    /// How well the listener matches a connection to the address `end`, by the kernel's rules for choosing a listener.
    ///
    /// - 3: the listener is on exactly this address.
    /// - 2: the listener is on all addresses of this IP version.
    /// - 1: the listener is on all addresses.
    /// - 0: the listener does not match.
    fileprivate func fit(_ end: tlx_tcp_end) -> Int {
        if high == end.high, low == end.low { return 3 }
        guard high == 0 else { return 0 }
        if low == TCPListenerTable.mapped << 32 { return end.isV4 ? 2 : 0 }
        if low == 0 { return end.isV4 ? (isV6Only ? 0 : 1) : 2 }
        return 0
    }
}

/// All listening sockets, by port.
struct TCPListenerTable {
    private(set) var listeners: [TCPListener] = []
    private var byPort: [UInt16: [Int]] = [:]

    /// The prefix of an IPv4 address that is mapped to IPv6 (::ffff:0:0/96).
    fileprivate static let mapped: UInt64 = 0xffff
    /// How long a socket stays in TIME_WAIT (the kernel's TCP_TIMEWAIT_LEN).
    private static let timeWait = Duration.seconds(60)

    mutating func add(_ listener: tlx_tcp_socket) {
        byPort[listener.local.port, default: []].append(listeners.count)
        listeners.append(TCPListener(listener))
    }

    /// Records when a connection was closed, computed from its socket in TIME_WAIT. That socket belongs to the end that
    /// closed the connection first: the listener's end or, if the client is on this machine too, the client's end.
    mutating func closed(_ socket: tlx_tcp_socket, _ now: Duration) {
        guard socket.milliseconds != .max else { return }
        let time = now - max(.zero, Self.timeWait - .milliseconds(socket.milliseconds))
        if note(time, at: socket.local, isHere: true) { return }
        // A listener on all addresses matches the remote end only if the remote address belongs to this machine.
        let isHere = socket.remote.isLoopback || socket.remote.hasAddress(of: socket.local)
        _ = note(time, at: socket.remote, isHere: isHere)
    }

    /// Records the time in those listeners that match the address `end` best. Returns whether any listener matches it.
    /// `isHere` tells whether the address is known to belong to this machine.
    private mutating func note(_ time: Duration, at end: tlx_tcp_end, isHere: Bool) -> Bool {
        guard let candidates = byPort[end.port] else { return false }
        var best = isHere ? 1 : 3
        var isConcerned = false
        for index in candidates { best = max(best, listeners[index].fit(end)) }
        for index in candidates where listeners[index].fit(end) == best {
            isConcerned = true
            if listeners[index].lastClosed.map({ $0 < time }) ?? true { listeners[index].lastClosed = time }
        }
        return isConcerned
    }
}

extension tlx_tcp_end {
    fileprivate var isV4: Bool { high == 0 && low >> 32 == TCPListenerTable.mapped }

    /// Whether the address is 127.0.0.0/8 or ::1.
    fileprivate var isLoopback: Bool { high == 0 && (low == 1 || low >> 24 == TCPListenerTable.mapped << 8 | 127) }

    fileprivate func hasAddress(of other: tlx_tcp_end) -> Bool { high == other.high && low == other.low }
}
