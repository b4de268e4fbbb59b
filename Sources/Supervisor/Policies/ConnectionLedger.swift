// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux

/// The sockets of one app, as found by the last search through its processes' file descriptors.
struct ConnectionClaim {
    /// The inode numbers of the app's sockets of all kinds, without duplicates.
    var sockets: [UInt32] = []
    /// Whether `sockets` contains all sockets of the app; false if some process could not be read.
    var isWhole = false
    /// What the last search found in other network namespaces; nil if all processes of the app are in torpord's own.
    var elsewhere: Elsewhere?

    /// An app's connections in network namespaces other than torpord's, such as a container's.
    struct Elsewhere {
        /// How many of these connections are open.
        var count: Int
        /// When one of these connections was last closed; nil if none is known to have been closed. For open
        /// connections, the kernel does not say when data last moved.
        var lastClosed: Duration?
    }
    /// The time of the last search for the app's sockets; nil if there was none.
    var searchedAt: Duration?
    /// How long the search took.
    var cost: Duration = .zero
    /// The processor time that the app had used at the last search for its sockets.
    var atProcessorTime: Duration = .zero
    /// Whether a search for the app's sockets was needed, but was postponed.
    var isOwed = false
}

/// All open TCP connections and listening sockets, TCP and Unix, and the apps that own them.
///
/// The kernel lists connections quickly (1 µs each), but finding the owner of a connection is slow: all descriptors of
/// a process must be read, which takes 30 µs even if there are few. So an app's descriptors are read again only if the
/// app may have gained a connection. This is so if the app has used processor time (always assumed if it has no cgroup)
/// and the owner of some connection is unknown. Owners of listening sockets are found in the same way, because a
/// listening socket shows that its app had connections which were closed before any search. For Unix sockets only the
/// owners of listening sockets are searched, since a connection shows the address of its listening socket; a new
/// connection is a reason to search that owner alone, whose own process may be the client.
///
/// The result is right as long as a socket stays with the app that opened it. If an app passes a socket to another app,
/// torpord notices this within a minute.
struct ConnectionLedger {
    /// Whether to search for an app's connections.
    enum Decision {
        case search
        /// A search would find nothing new.
        case needless
        /// A search may find something, but the last one took long and was recent.
        case later
    }

    /// The open connections, by the inode numbers of their sockets.
    private var open: [UInt32: TCPConnection] = [:]
    /// The time when a connection to each listening socket was last closed, by the inode number of the listening
    /// socket.
    private var listening: [UInt32: Duration?] = [:]
    private var clients = UnixClients()
    /// Begins to read the Unix sockets. Tests replace it.
    var readUnix = { () throws(Errno) -> UnixSocketReading in try UnixSocketReading() }
    private var isAvailable = false
    private var opening: Opening?
    /// Sockets whose owner is unknown.
    private var unclaimed: Set<UInt32> = []
    /// Sockets whose owner was unknown at the end of the last complete round of measuring.
    private var unclaimedBefore: Set<UInt32> = []
    /// Sockets that do not belong to any app.
    private var foreign: Set<UInt32> = []

    /// A round of measuring whose sockets are being read and put in order: in steps, since other users determine how
    /// many there are.
    private struct Opening {
        var reading: TCPConnectionReading?
        /// The TCP connections and listening sockets that are still to be put in order; nil until all are read.
        var connections: ArraySlice<TCPConnection>?
        var listeners: ArraySlice<TCPListener> = []
        var clientReading: UnixSocketReading?
        /// The Unix sockets that are still to be put in order, and when all were read; nil until they are.
        var clients: (rest: ArraySlice<UnixSocket>, readAt: Duration)?
        /// The listening Unix sockets whose owner is still to be found out; nil until all are in order.
        var local: ArraySlice<UInt32>?
        /// The sockets that belong to no app, as far as they are in order.
        var foreign: Set<UInt32> = []
        /// The number of claims whose sockets have an owner.
        var claims = 0
    }

    /// After a search for an app's sockets that took a time t, the next search for that app waits at least this many
    /// times t.
    private static let share = 100
    /// The same factor as ``share``, but for apps with connections in other network namespaces. The number is larger
    /// because each of these apps is searched again and again, and there may be many of them.
    private static let shareElsewhere = 1000
    private static let handedOn = Duration.seconds(60)

    /// Begins a round of measuring by reading all connections. Returns false if `deadline` has passed before all were
    /// read; call the function again, with the same claims, to continue.
    mutating func open(until deadline: Duration?, claims: some Collection<ConnectionClaim>) -> Bool {
        var current = opening ?? begin()
        opening = nil
        let isOpen =
            readConnections(&current, until: deadline) && readClients(&current, until: deadline)
            && sort(&current, claims, until: deadline)
        if isOpen { foreign = current.foreign } else { opening = current }
        return isOpen
    }

    /// Abandons a round of measuring.
    mutating func abandon() { opening = nil }

    private mutating func begin() -> Opening {
        open.removeAll(keepingCapacity: true)
        listening.removeAll(keepingCapacity: true)
        unclaimed.removeAll(keepingCapacity: true)
        clients.begin()
        return Opening()
    }

    private mutating func readConnections(_ current: inout Opening, until deadline: Duration?) -> Bool {
        if current.connections != nil { return true }
        if current.reading == nil { current.reading = try? TCPConnectionReading() }
        let isWhole = try? current.reading?.read(until: deadline)
        if isWhole == false { return false }
        let connections = isWhole == nil ? try? TCPConnections.listed() : current.reading?.connections
        isAvailable = connections != nil
        current.connections = (connections ?? [])[...]
        current.listeners = isWhole == nil ? [] : (current.reading?.listeners ?? [])[...]
        current.reading = nil
        return true
    }

    private mutating func readClients(_ current: inout Opening, until deadline: Duration?) -> Bool {
        if current.local != nil { return true }
        if current.clients == nil {
            if current.clientReading == nil { current.clientReading = try? readUnix() }
            guard let reading = current.clientReading, let isWhole = try? reading.read(until: deadline) else {
                // What was read last stays: otherwise all connections would be new at the next reading, as if clients
                // had come.
                current.clientReading = nil
                current.local = Array(clients.sockets)[...]
                return true
            }
            guard isWhole else { return false }
            current.clients = (reading.sockets[...], Clock.monotonic())
            current.clientReading = nil
        }
        guard let (sockets, readAt) = current.clients.take() else { return true }
        var rest = sockets
        guard clients.take(&rest, readAt, until: deadline) else {
            current.clients = (rest, readAt)
            return false
        }
        current.local = Array(clients.sockets)[...]
        return true
    }

    /// Puts the sockets in order, and finds those without a known owner.
    private mutating func sort(
        _ current: inout Opening,
        _ claims: some Collection<ConnectionClaim>,
        until deadline: Duration?
    ) -> Bool {
        func isLate() -> Bool { deadline.map { Clock.monotonic() >= $0 } ?? false }
        let portion = UnixClients.portion
        while let connections = current.connections, !connections.isEmpty {
            // Skip connections without an inode number: they are still in the queue of a listening socket, so no
            // process has them yet.
            for connection in connections.prefix(portion) where connection.inode != 0 {
                open[connection.inode] = connection
                find(connection.inode, &current)
            }
            current.connections = connections.dropFirst(portion)
            if isLate() { return false }
        }
        while !current.listeners.isEmpty {
            for listener in current.listeners.prefix(portion) {
                listening[listener.inode] = .some(listener.lastClosed)
                find(listener.inode, &current)
            }
            current.listeners = current.listeners.dropFirst(portion)
            if isLate() { return false }
        }
        while let local = current.local, !local.isEmpty {
            for socket in local.prefix(portion) { find(socket, &current) }
            current.local = local.dropFirst(portion)
            if isLate() { return false }
        }
        for claim in claims.dropFirst(current.claims) {
            if unclaimed.isEmpty { break }
            unclaimed.subtract(claim.sockets)
            current.claims += 1
            if isLate() { return false }
        }
        return true
    }

    private mutating func find(_ socket: UInt32, _ current: inout Opening) {
        if foreign.contains(socket) { current.foreign.insert(socket) } else { unclaimed.insert(socket) }
    }

    /// Whether to search for the connections of an app. `processorTime`: the processor time that the app has used,
    /// precise to the microsecond; nil if it is not known. If this time has not changed since the last search, the app
    /// has not run, and has no new connections.
    func decide(_ claim: ConnectionClaim, processorTime: Duration?, _ now: Duration) -> Decision {
        guard isAvailable else { return .needless }
        guard let searchedAt = claim.searchedAt else { return .search }
        let age = now - searchedAt
        // Connections in other namespaces are found only by a search, even if the app has not run: a client may have
        // closed a connection.
        if claim.elsewhere != nil { return age < claim.cost * Self.shareElsewhere ? .later : .search }
        if claim.atProcessorTime == processorTime, !claim.isOwed { return .needless }
        // Only a search shows whether a new connection to a Unix socket of the app is one of its own processes.
        let hasNews = !unclaimed.isEmpty || clients.hasNewConnections(at: claim.sockets, since: searchedAt)
        if !hasNews, age < Self.handedOn { return .needless }
        return age < claim.cost * Self.share ? .later : .search
    }

    /// Whether the socket is connected or listens, and its owner is unknown.
    func isUnclaimed(_ socket: UInt32) -> Bool { unclaimed.contains(socket) }

    /// Records that these sockets belong to an app.
    mutating func claim(_ sockets: [UInt32]) {
        if !unclaimed.isEmpty { unclaimed.subtract(sockets) }
    }

    /// Counts an app's connections, and finds the last time at which data moved on one of them or one of them was
    /// closed. Connections between the app's own processes are not counted, because they do not show that it is used.
    ///
    /// - Parameter saving: when the app last worked on didEnterBackground; nil if unknown. A connection that was closed
    ///   then is not counted either: many apps save by a command that connects to them, such as `redis-cli save`, and
    ///   the kernel does not say whose a closed connection was.
    mutating func count(
        _ claim: ConnectionClaim,
        saving: ClosedRange<Duration>?,
        into measurement: inout AppMeasurement
    ) {
        guard isAvailable, claim.isWhole else {
            measurement.connections = nil
            return
        }
        var last = measurement.lastTraffic
        func note(_ time: Duration?) {
            if let time { last = max(last ?? time, time) }
        }
        func noteEnd(_ time: Duration?) {
            if let time, !(saving?.contains(time) ?? false) { note(time) }
        }
        measurement.listens = claim.sockets.contains { listening.keys.contains($0) || clients.listens($0) }
        var own: [TCPConnection] = []
        for socket in claim.sockets {
            if let connection = open[socket] { own.append(connection) } else { noteEnd(listening[socket] ?? nil) }
        }
        let ends = Set(own.compactMap(\.ends?.local))
        let used = own.filter { connection in connection.ends.map { !ends.contains($0.remote) } ?? true }
        for connection in used { note(connection.lastTraffic) }
        let sockets = Set(claim.sockets)
        let local = clients.count(
            claim.sockets,
            isOwn: { sockets.contains($0) },
            undecidedSince: claim.isOwed ? claim.searchedAt : nil,
            saving: saving
        )
        noteEnd(local.lastUse)
        noteEnd(claim.elsewhere?.lastClosed)
        measurement.lastTraffic = last
        measurement.connections = used.count + local.open + (claim.elsewhere?.count ?? 0)
    }

    /// Ends a round of measuring. `isComplete`: whether every app that may have gained a connection was searched. A
    /// socket that has no owner at the end of two complete rounds belongs to no app. One round is not enough, because a
    /// process may have accepted the connection during the search.
    mutating func close(isComplete: Bool) {
        guard isComplete else { return }
        foreign.formUnion(unclaimed.intersection(unclaimedBefore))
        unclaimedBefore = unclaimed
    }
}
