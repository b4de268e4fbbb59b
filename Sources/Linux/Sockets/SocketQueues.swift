// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// The queue and state of a socket, read from the kernel's socket diagnostics without opening the socket.
public struct SocketQueue: Sendable, Hashable {
    /// For a listening socket, the number of connections that wait to be accepted. For any other socket, the number of
    /// unread bytes.
    public let unread: Int
    /// A key for the address that the socket is bound to; see ``SocketFacts/place``.
    public let place: UInt64
    /// The address family.
    public let family: SocketFacts.Family
    /// The socket type.
    public let kind: SocketFacts.Kind
    /// Whether the socket accepts connections.
    public let listens: Bool
    /// Whether the socket has a peer.
    public let isConnected: Bool
    /// Whether the peer has shut down its sending side.
    public let isClosing: Bool
    /// Whether a write would block, because the send buffer is full.
    public let isFull: Bool
    /// The traffic of a connection.
    public let traffic: SocketTraffic
    /// Whether the socket belongs to a network namespace other than this process's.
    public let isElsewhere: Bool

    fileprivate init(_ queue: tlx_socket_queue, isElsewhere: Bool = false) {
        self.isElsewhere = isElsewhere
        unread = Int(queue.unread)
        place = queue.place
        family = SocketFacts.Family(number: queue.family)
        kind = SocketFacts.Kind(number: queue.type)
        isFull = queue.is_full != 0
        traffic = SocketTraffic(queue.traffic)
        let state = Int(queue.state)
        listens = state == tlx_tcp_listening
        isClosing = state == tlx_tcp_close_wait
        isConnected = state == tlx_tcp_established || state == tlx_tcp_close_wait
    }
}

/// A network namespace other than this process's, such as a container's.
public final class ForeignNamespace: Sendable {
    private let pidfd: Int32

    /// The namespace of a process, as long as the process exists. Takes ownership of the pidfd.
    public init(of pidfd: Descriptor) { self.pidfd = pidfd.take() }

    deinit { close(pidfd) }

    /// Opens a socket for the diagnostics of this namespace. Throws EPERM without CAP_SYS_ADMIN over the namespace,
    /// EINVAL before Linux 5.8, ESRCH if the process has ended.
    fileprivate func diagnostics() throws(Errno) -> Descriptor {
        Descriptor(owning: try call { tlx_diagnostics_socket_of(pidfd) })
    }
}

/// The TCP, UDP and Unix sockets of this process's network namespace, and of others on request.
public enum SocketQueues {
    /// Finds the sockets with these inode numbers, and all TCP sockets at these ports that some process has open. Do
    /// not call this on the event loop, because the kernel visits every socket, which takes about a microsecond each.
    /// Throws an error such as EACCES if socket diagnostics (sock_diag(7)) are forbidden or missing.
    ///
    /// - Parameters:
    ///   - inodes: the inode numbers of sockets, which are unique among all namespaces.
    ///   - ports: ports of this process's namespace.
    ///   - namespaces: other namespaces to search for the inode numbers. A namespace that cannot be read counts as
    ///     having none of the sockets.
    public static func read(
        _ inodes: Set<UInt32>,
        at ports: Set<UInt64> = [],
        in namespaces: [ForeignNamespace] = []
    ) throws(Errno) -> [UInt32: SocketQueue] {
        var found: [UInt32: SocketQueue] = [:]
        for namespace in namespaces {
            _ = readAll(of: namespace) { one, _ in
                if inodes.contains(one.inode) { found[one.inode] = SocketQueue(one, isElsewhere: true) }
            }
        }
        let failure = readAll(of: nil) { one, kind in
            if inodes.contains(one.inode)
                || one.inode != 0 && kind <= tlx_queue_tcp6 && ports.contains(one.place)
            {
                found[one.inode] = SocketQueue(one)
            }
        }
        if let failure, found.isEmpty, failure != .noSuchFileOrDirectory { throw failure }
        return found
    }

    /// The TCP connections at these ports that no process has accepted yet, by port. Each connection is given as a
    /// number that no other socket gets during this boot. Do not call this on the event loop, because the kernel visits
    /// every socket. Throws the same errors as ``read(_:at:in:)``.
    public static func unaccepted(at ports: Set<UInt64>) throws(Errno) -> [UInt64: Set<UInt64>] {
        var found: [UInt64: Set<UInt64>] = [:]
        for kind in [tlx_queue_tcp4, tlx_queue_tcp6] {
            do throws(Errno) {
                try read(Int32(kind)) { one in
                    guard one.inode == 0, ports.contains(one.place), Int(one.state) != tlx_tcp_listening else { return }
                    found[one.place, default: []].insert(one.cookie)
                }
            } catch .noSuchFileOrDirectory {
                // The kernel does not support the protocol.
            }
        }
        return found
    }

    /// Reads the sockets of every kind. Returns the first error. ENOENT only means that the kernel lacks a protocol or
    /// its diagnostics, so it is returned only if there is no other error.
    private static func readAll(
        of namespace: ForeignNamespace?,
        _ body: (tlx_socket_queue, _ kind: Int) -> Void
    ) -> Errno? {
        var failure: Errno?
        for kind in [tlx_queue_tcp4, tlx_queue_tcp6, tlx_queue_udp4, tlx_queue_udp6, tlx_queue_unix] {
            do throws(Errno) {
                try read(Int32(kind), of: namespace) { body($0, Int(kind)) }
            } catch {
                if failure == nil || error != .noSuchFileOrDirectory { failure = error }
            }
        }
        return failure
    }

    private static func read(
        _ kind: Int32,
        of namespace: ForeignNamespace? = nil,
        _ body: (tlx_socket_queue) -> Void
    ) throws(Errno) {
        let netlink =
            if let namespace { try namespace.diagnostics() } else {
                Descriptor(owning: try call { tlx_diagnostics_socket() })
            }
        try netlink.withRaw { raw throws(Errno) in
            try call { tlx_queue_ask(raw, kind) }
            var isLast: Int32 = 0
            while isLast == 0 {
                try withUnsafeTemporaryAllocation(of: tlx_socket_queue.self, capacity: Int(tlx_queue_piece)) {
                    piece throws(Errno) in
                    let count = try call { tlx_queue_answer(raw, kind, piece.baseAddress!, &isLast) }
                    for queue in piece[..<count] { body(queue) }
                }
            }
        }
    }
}
