// SPDX-License-Identifier: Apache-2.0

import CLinux

/// What waits at a socket, as the kernel's socket diagnostics tell it without touching the socket.
public struct SocketQueue: Sendable, Hashable {
    /// Connections that wait to be accepted, or bytes that wait to be read.
    public let unread: Int
    /// Where it is bound; see ``SocketFacts/place``.
    public let place: UInt64
    /// How its address is written.
    public let family: SocketFacts.Family
    /// What goes over it.
    public let kind: SocketFacts.Kind
    /// It waits for connections.
    public let listens: Bool
    /// It has another side.
    public let isConnected: Bool
    /// The other side writes no more.
    public let isClosing: Bool
    /// Whoever writes has to wait until there is room.
    public let isFull: Bool
    /// What moves on it, of a connection.
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
    /// Those with these numbers, and TCP sockets at these ports that a process has. The kernel goes through all there are, about a microsecond each: not for a loop.
    /// EACCES or such where socket diagnostics are forbidden or missing.
    public static func read(
        _ inodes: Set<UInt32>,
        at ports: Set<UInt64> = []
    ) throws(Errno) -> [UInt32: SocketQueue] {
        var found: [UInt32: SocketQueue] = [:]
        var failure: Errno?
        let kinds = [tlx_queue_tcp4, tlx_queue_tcp6, tlx_queue_udp4, tlx_queue_udp6, tlx_queue_unix]
        for kind in kinds {
            do throws(Errno) {
                try read(Int32(kind), into: &found) { one in
                    inodes.contains(one.inode)
                        || one.inode != 0 && kind <= tlx_queue_tcp6 && ports.contains(one.place)
                }
            } catch {
                // A kernel without that protocol, or without its diagnostics.
                if failure == nil || error != .noSuchFileOrDirectory { failure = error }
            }
        }
        if let failure, found.isEmpty, failure != .noSuchFileOrDirectory { throw failure }
        return found
    }

    private static func read(
        _ kind: Int32,
        into found: inout [UInt32: SocketQueue],
        where isWanted: (tlx_socket_queue) -> Bool
    ) throws(Errno) {
        let socket = Descriptor(owning: try call { tlx_diagnostics_socket() })
        try socket.withRaw { raw throws(Errno) in
            try call { tlx_queue_ask(raw, kind) }
            var isLast: Int32 = 0
            while isLast == 0 {
                try withUnsafeTemporaryAllocation(of: tlx_socket_queue.self, capacity: Int(tlx_queue_piece)) {
                    piece throws(Errno) in
                    let count = try call { tlx_queue_answer(raw, kind, piece.baseAddress!, &isLast) }
                    for queue in piece[..<count] where isWanted(queue) {
                        found[queue.inode] = SocketQueue(queue)
                    }
                }
            }
        }
    }
}
