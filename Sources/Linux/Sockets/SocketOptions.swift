// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Options that can be set on a socket at any time (socket(7), tcp(7), ip(7)).
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
    /// SO_PRIORITY: 0 to 6; more needs CAP_NET_ADMIN.
    case priority
    /// The size of the receive buffer in bytes: SO_RCVBUFFORCE, or SO_RCVBUF without CAP_NET_ADMIN.
    case receiveBuffer
    /// The size of the send buffer in bytes: SO_SNDBUFFORCE, or SO_SNDBUF without CAP_NET_ADMIN.
    case sendBuffer
}

/// The length and the limit of a socket's queue of connections or datagrams.
public struct SocketBacklog: Hashable, Sendable {
    /// The queued connections; for a datagram socket, the memory in bytes that queued datagrams use.
    public var waiting: UInt32
    /// The limit of `waiting`, in the same unit.
    public var most: UInt32
    /// How many datagrams were dropped because the queue was full.
    public var dropped: UInt32 = 0

    /// Creates a backlog from its length and its limit.
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

    /// Stops or resumes accepting new connections to a listening TCP socket. While `on` is true, the kernel drops the
    /// SYN packets of clients. The clients' kernels send these packets again, first after a second, so that the clients
    /// connect late but without an error.
    public static func holdBack(_ socket: Int32, _ on: Bool) throws(Errno) {
        do throws(Errno) {
            try call { tlx_hold_back(socket, on ? 1 : 0) }
        } catch {
            // ENOENT means only that no filter was attached.
            if on || error != .noSuchFileOrDirectory { throw error }
        }
    }

    /// The maximum backlog of sockets in this network namespace (`net.core.somaxconn`).
    public static var mostBacklog: Int32? {
        guard let text = try? File.readString("/proc/sys/net/core/somaxconn") else { return nil }
        return Int32(String(text.filter { $0.isNumber }))
    }

    /// The queue of a listening TCP socket.
    public static func tcpBacklog(_ socket: Int32) throws(Errno) -> SocketBacklog {
        var (waiting, most): (UInt32, UInt32) = (0, 0)
        try call { tlx_tcp_backlog(socket, &waiting, &most) }
        return SocketBacklog(waiting: waiting, most: most)
    }

    /// The queue of a listening Unix socket, read from the kernel's socket diagnostics.
    public static func unixBacklog(_ socket: Int32) throws(Errno) -> SocketBacklog {
        let inode = try File.status(descriptor: socket).inode
        let netlink = Descriptor(owning: try call { tlx_diagnostics_socket() })
        var (waiting, most): (UInt32, UInt32) = (0, 0)
        try call { tlx_unix_backlog(netlink.raw, UInt32(truncatingIfNeeded: inode), &waiting, &most) }
        return SocketBacklog(waiting: waiting, most: most)
    }

    /// The file that a Unix socket was bound to, as the kernel's socket diagnostics know it, even if the file was
    /// removed since. Looks up no path, so it does not block. The inode number has only its lower 32 bits, and on
    /// filesystems such as btrfs the device is another one than stat(2) shows.
    public static func file(of socket: Int32) throws(Errno) -> (device: UInt64, inode: UInt32) {
        let number = try File.status(descriptor: socket).inode
        let netlink = Descriptor(owning: try call { tlx_diagnostics_socket() })
        var (device, inode): (UInt64, UInt32) = (0, 0)
        try call { tlx_unix_file(netlink.raw, UInt32(truncatingIfNeeded: number), &device, &inode) }
        return (device, inode)
    }

    /// How full the receive buffer of a datagram socket is, in bytes of kernel memory.
    public static func bufferBacklog(_ socket: Int32) throws(Errno) -> SocketBacklog {
        var (used, most, dropped): (UInt32, UInt32, UInt32) = (0, 0, 0)
        try call { tlx_receive_memory(socket, &used, &most, &dropped) }
        var backlog = SocketBacklog(waiting: used, most: most)
        backlog.dropped = dropped
        return backlog
    }
}
