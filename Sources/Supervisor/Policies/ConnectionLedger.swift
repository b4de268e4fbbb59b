// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux

/// The sockets of one app that the last search of its processes' file descriptors has found.
struct ConnectionClaim {
    /// Inode numbers of the app's sockets, of all kinds, each once.
    var sockets: [UInt32] = []
    /// Whether `sockets` has all sockets of the app; false if a process could not be read.
    var isWhole = false
    /// What the last search found in other network namespaces; nil if all processes of the app are in torpord's
    /// namespace.
    var elsewhere: Elsewhere?

    /// Connections in other network namespaces than torpord's, such as a container's.
    struct Elsewhere {
        /// How many of these connections are open.
        var count: Int
        /// When the last of these connections was closed; nil if none was seen to close. For open ones, the kernel
        /// does not say when data last moved.
        var lastClosed: Duration?
    }
    /// The time of the last search for the app's sockets; nil if there was none.
    var searchedAt: Duration?
    /// How long the search took.
    var cost: Duration = .zero
    /// The processor time that the app had used at the last search for its sockets.
    var atProcessorTime: Duration = .zero
    /// Whether a search for the app's sockets was due, but was postponed.
    var isOwed = false
}

/// All open TCP connections and listening sockets, and the apps that own them.
///
/// The kernel lists connections quickly (1 µs each), but finding the owner of a connection is slow: the descriptors
/// of a process must be read, which takes 30 µs if it has few. So an app's descriptors are read again only if the app
/// may have gained a connection: it has used processor time (assumed if the app has no cgroup), and the owner of some
/// connection is unknown. Listening sockets are treated in the same way: they show that an app had connections that
/// were closed before a search.
///
/// The result is right as long as a socket stays with the app that opened it. If an app passes a socket to another
/// app, that is noticed within a minute.
struct ConnectionLedger {
    /// Whether to search for an app's connections.
    enum Decision {
        case search
        /// A search would find nothing new.
        case needless
        /// A search may find something, but the last one took long and was recent.
        case later
    }

    /// When data last moved on each open connection, by the inode number of its socket.
    private var open: [UInt32: Duration?] = [:]
    /// When a connection to each listening socket was last closed, by the inode number of that socket.
    private var listening: [UInt32: Duration?] = [:]
    private var isAvailable = false
    private var reading: TCPConnectionReading?
    /// Sockets whose owner is unknown.
    private var unclaimed: Set<UInt32> = []
    /// Sockets whose owner was unknown at the end of the last complete round of measuring.
    private var unclaimedBefore: Set<UInt32> = []
    /// Sockets that do not belong to any app.
    private var foreign: Set<UInt32> = []

    /// After a search for the sockets of an app, the next search waits this many times as long as that search took.
    private static let share = 100
    /// As ``share``, for apps in other network namespaces. The number is larger because there may be many of these
    /// apps, and each would be searched in each round of measuring.
    private static let shareElsewhere = 1000
    private static let handedOn = Duration.seconds(60)

    /// Begins a round of measuring by reading all connections. Returns false if `deadline` came first: then call this
    /// again to continue.
    mutating func open(until deadline: Duration?, claims: some Sequence<ConnectionClaim>) -> Bool {
        if reading == nil { reading = try? TCPConnectionReading() }
        let isWhole = try? reading?.read(until: deadline)
        if isWhole == false { return false }
        let connections = isWhole == nil ? try? TCPConnections.listed() : reading?.connections
        isAvailable = connections != nil
        take(connections ?? [], isWhole == nil ? [] : reading?.listeners ?? [])
        reading = nil
        unclaimed = Set(open.keys).union(listening.keys).subtracting(foreign)
        if !unclaimed.isEmpty { for claim in claims { unclaimed.subtract(claim.sockets) } }
        return true
    }

    /// Abandons a round of measuring.
    mutating func abandon() { reading = nil }

    private mutating func take(_ connections: [TCPConnection], _ listeners: [TCPListener]) {
        open.removeAll(keepingCapacity: true)
        // Skip connections without an inode number: they wait to be accepted, so no process has them yet.
        for connection in connections where connection.inode != 0 {
            open[connection.inode] = .some(connection.lastTraffic)
        }
        listening.removeAll(keepingCapacity: true)
        for listener in listeners { listening[listener.inode] = .some(listener.lastClosed) }
    }

    /// Whether to search for the connections of an app. `processorTime`: the processor time that the app has used,
    /// precise to the microsecond; nil if that is unknown. If the time is the same as at the last search, the app has
    /// not run since.
    func decide(_ claim: ConnectionClaim, processorTime: Duration?, _ now: Duration) -> Decision {
        guard isAvailable else { return .needless }
        guard let searchedAt = claim.searchedAt else { return .search }
        let age = now - searchedAt
        // Connections in other namespaces are found only by a search, and a client may close one while the app does
        // nothing.
        if claim.elsewhere != nil { return age < claim.cost * Self.shareElsewhere ? .later : .search }
        if claim.atProcessorTime == processorTime, !claim.isOwed { return .needless }
        if unclaimed.isEmpty, age < Self.handedOn { return .needless }
        return age < claim.cost * Self.share ? .later : .search
    }

    /// Whether the socket is connected or listens, and its owner is unknown.
    func isUnclaimed(_ socket: UInt32) -> Bool { unclaimed.contains(socket) }

    /// Records that these sockets belong to an app.
    mutating func claim(_ sockets: [UInt32]) {
        if !unclaimed.isEmpty { unclaimed.subtract(sockets) }
    }

    /// Counts an app's connections, and finds the last time when data moved on any of them. For a closed connection,
    /// this is the time when it was closed.
    func count(_ claim: ConnectionClaim, into measurement: inout AppMeasurement) {
        guard isAvailable, claim.isWhole else {
            measurement.connections = nil
            return
        }
        var count = 0
        for socket in claim.sockets {
            let lastTraffic: Duration?
            if let traffic = open[socket] {
                count += 1
                lastTraffic = traffic
            } else {
                lastTraffic = listening[socket] ?? nil
            }
            if let lastTraffic, measurement.lastTraffic.map({ $0 < lastTraffic }) ?? true {
                measurement.lastTraffic = lastTraffic
            }
        }
        if let elsewhere = claim.elsewhere {
            count += elsewhere.count
            if let time = elsewhere.lastClosed, measurement.lastTraffic.map({ $0 < time }) ?? true {
                measurement.lastTraffic = time
            }
        }
        measurement.connections = count
    }

    /// Ends a round of measuring. `isComplete`: every app that may have gained a connection was searched. A socket
    /// without an owner at the end of two complete rounds belongs to no app. One round is not enough: a process may
    /// have been accepting the connection during the search.
    mutating func close(isComplete: Bool) {
        foreign = foreign.filter { open[$0] != nil || listening[$0] != nil }
        guard isComplete else { return }
        foreign.formUnion(unclaimed.intersection(unclaimedBefore))
        unclaimedBefore = unclaimed
    }
}
