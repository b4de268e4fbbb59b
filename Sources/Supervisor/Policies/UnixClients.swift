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
        /// How many of the connections were there at the reading before.
        var stayed = 0

        /// A listener without connections, which was used as it was at the reading before.
        init(after before: Listener?) { (lastUse, newest) = (before?.lastUse, before?.newest) }

        mutating func use(_ time: Duration) { lastUse = max(lastUse ?? time, time) }

        /// Records who is at the other end of a connection.
        mutating func decide(_ inode: UInt32, _ client: Client) {
            connections[inode]?.client = client
            if client == .other, let connection = connections[inode] { use(connection.since) }
        }

        mutating func add(_ one: UnixSocket, _ known: Connection?, _ now: Duration) {
            if var known {
                known.peer = one.peer
                connections[one.inode] = known
                stayed += 1
            } else {
                connections[one.inode] = Connection(peer: one.peer, since: now)
                newest = now
            }
        }
    }

    private struct Sockets {
        /// The addresses of the listening sockets, by their inode numbers.
        var addresses: [UInt32: UnixSocket.Address] = [:]
        /// The listeners, and those of connections that have outlived them.
        var listeners: [UnixSocket.Address: Listener] = [:]
    }

    private var now = Sockets()
    /// The sockets of a new reading, as far as they are added.
    private var next = Sockets()
    /// The next listener of ``now`` to compare with ``next``; nil until all sockets of the new reading are added.
    private var comparing: Dictionary<UnixSocket.Address, Listener>.Index?
    /// The last reading that showed a new connection at any socket.
    private var newest: Duration?

    /// How many sockets are handled before the time is looked at.
    static let portion = 256

    /// The inode numbers of the listening sockets.
    var sockets: some Collection<UInt32> { now.addresses.keys }

    func listens(_ socket: UInt32) -> Bool { now.addresses[socket] != nil }

    /// Begins to replace the sockets by those of a new reading.
    mutating func begin() { (next, comparing) = (Sockets(), nil) }

    /// Replaces the sockets by `rest`, which were read at the time `time`. Returns false if `deadline` has passed
    /// before that was done: call the function again with what is left of `rest`.
    mutating func take(_ rest: inout ArraySlice<UnixSocket>, _ time: Duration, until deadline: Duration?) -> Bool {
        while !rest.isEmpty {
            for one in rest.prefix(Self.portion) { add(one, time) }
            rest = rest.dropFirst(Self.portion)
            if let deadline, Clock.monotonic() >= deadline { return false }
        }
        var index = comparing ?? now.listeners.startIndex
        var count = 0
        while index != now.listeners.endIndex {
            compare(now.listeners[index].key, now.listeners[index].value, time)
            // A listener may have had very many connections.
            count += 1 + now.listeners[index].value.connections.count
            now.listeners.formIndex(after: &index)
            guard count >= Self.portion else { continue }
            count = 0
            if let deadline, Clock.monotonic() >= deadline {
                comparing = index
                return false
            }
        }
        now = next
        begin()
        return true
    }

    private mutating func add(_ one: UnixSocket, _ time: Duration) {
        let before = now.listeners[one.address]
        if one.listens {
            next.addresses[one.inode] = one.address
            if one.hasWaiting {
                next.listeners[one.address, default: Listener(after: before)].use(time)
            } else if next.listeners[one.address] == nil {
                next.listeners[one.address] = Listener(after: before)
            }
        } else {
            let known = before?.connections[one.inode]
            if known == nil { newest = time }
            next.listeners[one.address, default: Listener(after: before)].add(one, known, time)
        }
    }

    /// Notes the use that shows in the end of connections.
    private mutating func compare(_ address: UnixSocket.Address, _ before: Listener, _ time: Duration) {
        guard let index = next.listeners.index(forKey: address),
            next.listeners.values[index].stayed < before.connections.count
        else { return }
        for (inode, gone) in before.connections where next.listeners.values[index].connections[inode] == nil {
            switch gone.client {
            case .own, .whileSaving: break
            case .unknown: next.listeners.values[index].use(gone.since)
            case .other: return next.listeners.values[index].use(time)
            }
        }
    }

    /// Whether one of the listening sockets among `sockets` has connections that were first seen after `time`.
    func hasNewConnections(at sockets: [UInt32], since time: Duration) -> Bool {
        guard let newest, newest > time else { return false }
        return sockets.contains { socket in
            now.addresses[socket].flatMap { now.listeners[$0]?.newest }.map { $0 > time } ?? false
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
        for address in Set(sockets.compactMap { now.addresses[$0] }) {
            guard let index = now.listeners.index(forKey: address) else { continue }
            var decided: [(UInt32, Client)] = []
            for (inode, connection) in now.listeners.values[index].connections {
                var client = connection.client
                if client == .unknown {
                    client = Self.client(connection, isOwn, undecidedSince, saving)
                    if client != .unknown { decided.append((inode, client)) }
                }
                if connection.peer != 0, client == .other || client == .whileSaving { open += 1 }
            }
            for (inode, client) in decided { now.listeners.values[index].decide(inode, client) }
            if let time = now.listeners.values[index].lastUse { lastUse = max(lastUse ?? time, time) }
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
