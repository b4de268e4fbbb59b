// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// What can be set of a socket at any time (socket(7), tcp(7), ip(7)).
public enum SocketOption: Int32, Sendable, CaseIterable {
    /// SO_KEEPALIVE: 0 or 1.
    case keepAlive = 0
    /// TCP_NODELAY: 0 or 1.
    case noDelay
    /// TCP_DEFER_ACCEPT: seconds.
    case deferAccept
    /// SO_BROADCAST: 0 or 1.
    case broadcast
    /// SO_PASSCRED: 0 or 1.
    case passCredentials
    /// IP_PKTINFO or IPV6_RECVPKTINFO: 0 or 1.
    case packetInfo
    /// SO_PRIORITY: 0 to 6, above only with CAP_NET_ADMIN.
    case priority
    /// SO_RCVBUFFORCE, where that is forbidden SO_RCVBUF: bytes.
    case receiveBuffer
    /// SO_SNDBUFFORCE, where that is forbidden SO_SNDBUF: bytes.
    case sendBuffer
}

/// What waits in a socket until the program takes it.
public struct SocketBacklog: Hashable, Sendable {
    /// Connections; of a datagram socket bytes of memory.
    public var waiting: UInt32
    /// The most that may wait.
    public var most: UInt32
    /// Datagrams that found no room.
    public var dropped: UInt32 = 0

    /// What waits, of how much.
    public init(waiting: UInt32, most: UInt32) {
        self.waiting = waiting
        self.most = most
    }
}

extension Sockets {
    /// Sets an option.
    public static func set(_ socket: Int32, _ option: SocketOption, _ value: Int32) throws(Errno) {
        try call { tlx_set_socket_option(socket, option.rawValue, value) }
    }

    /// Keeps new connections to a TCP socket that listens waiting, or lets them in again: what a client sends to begin one
    /// is dropped, and sent again by its kernel, first after a second.
    public static func holdBack(_ socket: Int32, _ on: Bool) throws(Errno) {
        do throws(Errno) {
            try call { tlx_hold_back(socket, on ? 1 : 0) }
        } catch {
            // There was nothing to take away.
            if on || error != .noSuchFileOrDirectory { throw error }
        }
    }

    /// The most connections that may wait at any socket of this network namespace (`net.core.somaxconn`).
    public static var mostBacklog: Int32? {
        guard let text = try? File.readString("/proc/sys/net/core/somaxconn") else { return nil }
        return Int32(String(text.filter { $0.isNumber }))
    }

    /// What waits at a TCP socket that listens.
    public static func tcpBacklog(_ socket: Int32) throws(Errno) -> SocketBacklog {
        var (waiting, most): (UInt32, UInt32) = (0, 0)
        try call { tlx_tcp_backlog(socket, &waiting, &most) }
        return SocketBacklog(waiting: waiting, most: most)
    }

    /// What waits at a Unix socket that listens, by the kernel's socket diagnostics.
    public static func unixBacklog(_ socket: Int32) throws(Errno) -> SocketBacklog {
        let inode = try File.status(descriptor: socket).inode
        let netlink = Descriptor(owning: try call { tlx_diagnostics_socket() })
        var (waiting, most): (UInt32, UInt32) = (0, 0)
        try call { tlx_unix_backlog(netlink.raw, UInt32(truncatingIfNeeded: inode), &waiting, &most) }
        return SocketBacklog(waiting: waiting, most: most)
    }

    /// What waits in the receive buffer, in bytes of the kernel's memory.
    public static func bufferBacklog(_ socket: Int32) throws(Errno) -> SocketBacklog {
        var (used, most, dropped): (UInt32, UInt32, UInt32) = (0, 0, 0)
        try call { tlx_receive_memory(socket, &used, &most, &dropped) }
        var backlog = SocketBacklog(waiting: used, most: most)
        backlog.dropped = dropped
        return backlog
    }
}
