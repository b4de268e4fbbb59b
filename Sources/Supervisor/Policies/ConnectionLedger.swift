// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux

/// What one app has of connections, as its processes' descriptors said when they were last looked at.
struct ConnectionClaim {
    /// Numbers of its sockets, of all kinds, each once.
    var sockets: [UInt32] = []
    /// Whether these are all: every process could be looked into, and is in this network namespace.
    var isWhole = false
    /// When that was; nil: never.
    var searchedAt: Duration?
    /// How long it took.
    var cost: Duration = .zero
    /// The app's processor time then.
    var atProcessorTime: Duration = .zero
    /// Whether there was reason for another search, which was put off.
    var isOwed = false
}

/// All open TCP connections and sockets that listen, and whose they are.
///
/// The kernel lists connections quickly (a microsecond each) and tells slowly who has one: a process's descriptors have
/// to be read, 30 µs for a process with a few. So descriptors are read again only of an app that can have gained a
/// connection: it has used processor time (without a cgroup that cannot be told), and there is a connection that nobody
/// is known to have. The same goes for sockets that listen: by them an app had connections that were closed before
/// anybody looked. That is right while sockets stay with whoever opened them; one that is handed to another app is noticed
/// within a minute.
struct ConnectionLedger {
    /// Whether to look for an app's connections.
    enum Decision {
        case search
        /// There is nothing to be found.
        case needless
        /// There may be, but the last search was too long and too recent.
        case later
    }

    /// Open connections by the number of their socket, and when data last moved.
    private var open: [UInt32: Duration?] = [:]
    /// Sockets that listen, and when a connection to one was last closed.
    private var listening: [UInt32: Duration?] = [:]
    private var isAvailable = false
    private var reading: TCPConnectionReading?
    /// Nobody was found yet who has them.
    private var unclaimed: Set<UInt32> = []
    /// The same at the end of the round before.
    private var unclaimedBefore: Set<UInt32> = []
    /// Those of others than apps.
    private var foreign: Set<UInt32> = []

    /// A search takes at most that part of the time.
    private static let share = 100
    private static let handedOn = Duration.seconds(60)

    /// Begins a round; whether all connections were read before `deadline`, else it is to be called again.
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

    /// Gives up a round.
    mutating func abandon() { reading = nil }

    private mutating func take(_ connections: [TCPConnection], _ listeners: [TCPListener]) {
        open.removeAll(keepingCapacity: true)
        // Those without a number wait to be accepted.
        for connection in connections where connection.inode != 0 {
            open[connection.inode] = .some(connection.lastTraffic)
        }
        listening.removeAll(keepingCapacity: true)
        for listener in listeners { listening[listener.inode] = .some(listener.lastClosed) }
    }

    /// Whether to look for the connections of an app. `processorTime`: what it has used so far, to the microsecond, so that
    /// an app for which it did not move has done nothing; nil when that is not known.
    func decide(_ claim: ConnectionClaim, processorTime: Duration?, _ now: Duration) -> Decision {
        guard isAvailable else { return .needless }
        guard let searchedAt = claim.searchedAt else { return .search }
        if claim.atProcessorTime == processorTime, !claim.isOwed { return .needless }
        let age = now - searchedAt
        if unclaimed.isEmpty, age < Self.handedOn { return .needless }
        return age < claim.cost * Self.share ? .later : .search
    }

    /// Whether it is open or listens, and nobody is known to have it.
    func isUnclaimed(_ socket: UInt32) -> Bool { unclaimed.contains(socket) }

    /// What was found with an app.
    mutating func claim(_ sockets: [UInt32]) {
        if !unclaimed.isEmpty { unclaimed.subtract(sockets) }
    }

    /// Counts an app's connections, and remembers the last traffic: what was closed had its last when that was done.
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
        measurement.connections = count
    }

    /// Ends a round. `isComplete`: every app that could have gained a connection was looked at. What nobody has by then
    /// twice in a row is not an app's: once may be an accept that was under way.
    mutating func close(isComplete: Bool) {
        foreign = foreign.filter { open[$0] != nil || listening[$0] != nil }
        guard isComplete else { return }
        foreign.formUnion(unclaimed.intersection(unclaimedBefore))
        unclaimedBefore = unclaimed
    }
}
