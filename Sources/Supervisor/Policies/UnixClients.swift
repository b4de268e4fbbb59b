// SPDX-License-Identifier: Apache-2.0

import Linux

/// The Unix sockets at which programs listen, and the connections that were accepted from them.
///
/// The kernel does not report when data moved on a Unix connection, nor keeps a closed one. So use is known only as far
/// as it shows when the sockets are read: while a connection is open, and when a client has come or gone since the
/// reading before. A connection between an app's own processes is no use; that it is one shows only if the app's
/// sockets are searched while it is open.
struct UnixClients {
    /// Who is at the other end of a connection.
    private enum Client {
        /// The app's sockets were not searched yet since the connection was first seen.
        case unknown
        /// A process of the app.
        case own
        /// Another process, or one of the app whose connection was closed before the search.
        case other
        /// The connection was first seen while the app saved its state, maybe by a command of its own.
        case whileSaving
    }

    private struct Connection {
        /// The inode number of the socket at the other end; 0 if that end is closed.
        var peer: UInt32
        /// The first reading that showed the connection (CLOCK_MONOTONIC).
        let since: Duration
        var client = Client.unknown
    }

    private struct Listener {
        /// The accepted connections, by their inode numbers.
        var connections: [UInt32: Connection] = [:]
        /// The last reading that showed use (CLOCK_MONOTONIC); nil if there was none.
        var lastUse: Duration?
        /// The last reading that showed a new connection; nil if none has a connection.
        var newest: Duration?

        mutating func use(_ time: Duration) { lastUse = max(lastUse ?? time, time) }
    }

    private var addresses: [UInt32: UnixSocket.Address] = [:]
    private var listeners: [UnixSocket.Address: Listener] = [:]
    /// The last reading that showed a new connection at any socket.
    private var newest: Duration?

    /// The inode numbers of the listening sockets.
    var sockets: some Collection<UInt32> { addresses.keys }

    func listens(_ socket: UInt32) -> Bool { addresses[socket] != nil }

    /// Replaces the sockets by those that were read at the time `now`.
    mutating func take(_ sockets: [UnixSocket], _ now: Duration) {
        addresses.removeAll(keepingCapacity: true)
        var next: [UnixSocket.Address: Listener] = [:]
        for one in sockets where one.listens {
            addresses[one.inode] = one.address
            var listener = next[one.address] ?? Listener()
            if let before = listeners[one.address] {
                (listener.lastUse, listener.newest) = (listener.lastUse ?? before.lastUse, before.newest)
            }
            if one.hasWaiting { listener.use(now) }
            next[one.address] = listener
        }
        for one in sockets where !one.listens {
            guard let index = next.index(forKey: one.address) else { continue }
            if var known = listeners[one.address]?.connections[one.inode] {
                known.peer = one.peer
                next.values[index].connections[one.inode] = known
            } else {
                next.values[index].connections[one.inode] = Connection(peer: one.peer, since: now)
                next.values[index].newest = now
                newest = now
            }
        }
        for (address, before) in listeners {
            guard let index = next.index(forKey: address) else { continue }
            for (inode, gone) in before.connections where next.values[index].connections[inode] == nil {
                switch gone.client {
                case .own, .whileSaving: break
                case .unknown: next.values[index].use(gone.since)
                case .other: next.values[index].use(now)
                }
            }
        }
        listeners = next
    }

    /// Whether one of the listening sockets among `sockets` has connections that were first seen after `time`.
    func hasNewConnections(at sockets: [UInt32], since time: Duration) -> Bool {
        guard let newest, newest > time else { return false }
        return sockets.contains { socket in
            addresses[socket].flatMap { listeners[$0]?.newest }.map { $0 > time } ?? false
        }
    }

    /// The open connections of clients at the listening sockets among `sockets`, which are all sockets of one app, and
    /// when these were last used. Connections between the app's own processes do not count, neither as open nor as use.
    ///
    /// - Parameters:
    ///   - isOwn: whether a socket is one of `sockets`.
    ///   - undecidedSince: if a search for the app's sockets is owed, the time of the last one: connections that were
    ///     first seen later do not count yet.
    ///   - saving: when the app last saved its state; nil if unknown.
    mutating func count(
        _ sockets: some Sequence<UInt32>,
        isOwn: (UInt32) -> Bool,
        undecidedSince: Duration? = nil,
        saving: ClosedRange<Duration>? = nil
    ) -> (open: Int, lastUse: Duration?) {
        var open = 0
        var lastUse: Duration?
        // Each address once: an app may have as many listening sockets as it may have descriptors.
        for address in Set(sockets.compactMap { addresses[$0] }) {
            guard let index = listeners.index(forKey: address) else { continue }
            var decided: [(UInt32, Client)] = []
            for (inode, connection) in listeners.values[index].connections {
                var client = connection.client
                if client == .unknown {
                    client = Self.client(connection, isOwn, undecidedSince, saving)
                    if client != .unknown { decided.append((inode, client)) }
                }
                if connection.peer != 0, client == .other || client == .whileSaving { open += 1 }
            }
            for (inode, client) in decided {
                listeners.values[index].connections[inode]?.client = client
                guard client == .other, let time = listeners.values[index].connections[inode]?.since else { continue }
                listeners.values[index].use(time)
            }
            if let time = listeners.values[index].lastUse { lastUse = max(lastUse ?? time, time) }
        }
        return (open, lastUse)
    }

    private static func client(
        _ connection: Connection,
        _ isOwn: (UInt32) -> Bool,
        _ undecidedSince: Duration?,
        _ saving: ClosedRange<Duration>?
    ) -> Client {
        if connection.peer != 0, isOwn(connection.peer) { return .own }
        if let undecidedSince, connection.since > undecidedSince { return .unknown }
        return saving?.contains(connection.since) ?? false ? .whileSaving : .other
    }
}
