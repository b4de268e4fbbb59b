// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux

/// The sockets of one app, as its processes' descriptors showed them at the last search.
struct ConnectionClaim {
    /// Inode numbers of the app's sockets, of all kinds, each once.
    var sockets: [UInt32] = []
    /// Whether `sockets` has all of them: every process could be read.
    var isWhole = false
    /// What the last search found in other network namespaces; nil if all processes of the app are in torpord's.
    var elsewhere: Elsewhere?

    /// Connections in other network namespaces than torpord's, such as a container's.
    struct Elsewhere {
        /// How many of these connections are open.
        var count: Int
        /// When the last of these connections was closed. For open ones the kernel does not say when data moved.
        var lastClosed: Duration?
    }
    /// The time of the last search; nil for never.
    var searchedAt: Duration?
    /// How long the search took.
    var cost: Duration = .zero
    /// The app's processor time at the search.
    var atProcessorTime: Duration = .zero
    /// Whether another search was due, but was put off.
    var isOwed = false
}

/// All open TCP connections and listening sockets, and the apps that own them.
///
/// The kernel lists connections quickly (a microsecond each), but finding the owner is slow: the descriptors of a
/// process must be read, 30 µs for a process with a few. So descriptors are read again only for an app that may have
/// gained a connection: it has used processor time (which cannot be told without a cgroup), and a connection exists
/// whose owner is unknown. The same applies to listening sockets: they show that an app had connections that were
/// closed before a search. This is right while a socket stays with the app that opened it; one that is passed to
/// another app is noticed within a minute.
struct ConnectionLedger {
    /// Whether to search for an app's connections.
    enum Decision {
        case search
        /// There is nothing to find.
        case needless
        /// There may be something to find, but the last search took long and was recent.
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
    /// Sockets that do not belong to apps.
    private var foreign: Set<UInt32> = []

    /// An app is not searched again for this many times the time that its search took.
    private static let share = 100
    /// As ``share``, for apps in other network namespaces: each round searches them, and there may be many.
    private static let shareElsewhere = 1000
    private static let handedOn = Duration.seconds(60)

    /// Begins a round: reads all connections. False if that took longer than until `deadline`: call it again then.
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

    /// Abandons a round.
    mutating func abandon() { reading = nil }

    private mutating func take(_ connections: [TCPConnection], _ listeners: [TCPListener]) {
        open.removeAll(keepingCapacity: true)
        // A connection without an inode number waits to be accepted.
        for connection in connections where connection.inode != 0 {
            open[connection.inode] = .some(connection.lastTraffic)
        }
        listening.removeAll(keepingCapacity: true)
        for listener in listeners { listening[listener.inode] = .some(listener.lastClosed) }
    }

    /// Whether to search for the connections of an app. `processorTime`: what the app has used so far, to the
    /// microsecond; nil if that is not known. An app for which it is unchanged has done nothing.
    func decide(_ claim: ConnectionClaim, processorTime: Duration?, _ now: Duration) -> Decision {
        guard isAvailable else { return .needless }
        guard let searchedAt = claim.searchedAt else { return .search }
        let age = now - searchedAt
        // Only searches find these connections, and a client may close one while the app does nothing.
        if claim.elsewhere != nil { return age < claim.cost * Self.shareElsewhere ? .later : .search }
        if claim.atProcessorTime == processorTime, !claim.isOwed { return .needless }
        if unclaimed.isEmpty, age < Self.handedOn { return .needless }
        return age < claim.cost * Self.share ? .later : .search
    }

    /// Whether the socket is connected or listens, and its owner is unknown.
    func isUnclaimed(_ socket: UInt32) -> Bool { unclaimed.contains(socket) }

    /// These sockets were found in an app: their owner is known now.
    mutating func claim(_ sockets: [UInt32]) {
        if !unclaimed.isEmpty { unclaimed.subtract(sockets) }
    }

    /// Counts an app's connections, and finds the last traffic. A connection that was closed had its last traffic
    /// then.
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

    /// Ends a round. `isComplete`: every app that may have gained a connection was searched. A socket without an
    /// owner at the end of two such rounds belongs to no app; in one round, an accept may have been under way.
    mutating func close(isComplete: Bool) {
        foreign = foreign.filter { open[$0] != nil || listening[$0] != nil }
        guard isComplete else { return }
        foreign.formUnion(unclaimed.intersection(unclaimedBefore))
        unclaimedBefore = unclaimed
    }
}
