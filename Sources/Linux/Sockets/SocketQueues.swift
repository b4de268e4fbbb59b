// SPDX-License-Identifier: Apache-2.0

import CLinux

/// What is queued at a socket, read from the kernel's socket diagnostics without opening the socket.
public struct SocketQueue: Sendable, Hashable {
    /// For a listening socket: connections that wait to be accepted. For any other socket: bytes to read.
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
    /// Whether a writer would block, since the send buffer is full.
    public let isFull: Bool
    /// The traffic of a connection.
    public let traffic: SocketTraffic

    fileprivate init(_ queue: tlx_socket_queue) {
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

/// The sockets of this process's network namespace: TCP, UDP and Unix sockets.
public enum SocketQueues {
    /// Finds the sockets with these inode numbers, and all TCP sockets at these ports that are open in some process.
    /// The kernel visits every socket, which takes about a microsecond each: do not call it on the event loop. Throws
    /// EACCES and the like if socket diagnostics (sock_diag(7)) are forbidden or missing.
    public static func read(
        _ inodes: Set<UInt32>,
        at ports: Set<UInt64> = []
    ) throws(Errno) -> [UInt32: SocketQueue] {
        var found: [UInt32: SocketQueue] = [:]
        var failure: Errno?
        let kinds = [tlx_queue_tcp4, tlx_queue_tcp6, tlx_queue_udp4, tlx_queue_udp6, tlx_queue_unix]
        for kind in kinds {
            do throws(Errno) {
                try read(Int32(kind)) { one in
                    if inodes.contains(one.inode)
                        || one.inode != 0 && kind <= tlx_queue_tcp6 && ports.contains(one.place)
                    {
                        found[one.inode] = SocketQueue(one)
                    }
                }
            } catch {
                // ENOENT only means that the kernel lacks the protocol or its diagnostics.
                if failure == nil || error != .noSuchFileOrDirectory { failure = error }
            }
        }
        if let failure, found.isEmpty, failure != .noSuchFileOrDirectory { throw failure }
        return found
    }

    /// The TCP connections at these ports that no process has accepted yet, by port. Each one has a number that no
    /// other socket has until the next boot. Like ``read(_:at:)``, do not call it on the event loop; it throws the same
    /// errors.
    public static func unaccepted(at ports: Set<UInt64>) throws(Errno) -> [UInt64: Set<UInt64>] {
        var found: [UInt64: Set<UInt64>] = [:]
        for kind in [tlx_queue_tcp4, tlx_queue_tcp6] {
            do throws(Errno) {
                try read(Int32(kind)) { one in
                    guard one.inode == 0, ports.contains(one.place), Int(one.state) != tlx_tcp_listening else { return }
                    found[one.place, default: []].insert(one.cookie)
                }
            } catch .noSuchFileOrDirectory {
                // The kernel lacks the protocol.
            }
        }
        return found
    }

    private static func read(_ kind: Int32, _ body: (tlx_socket_queue) -> Void) throws(Errno) {
        let socket = Descriptor(owning: try call { tlx_diagnostics_socket() })
        try socket.withRaw { raw throws(Errno) in
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
