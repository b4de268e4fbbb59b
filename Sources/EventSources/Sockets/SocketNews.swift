// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
package import Linux

/// What an app's own sockets wake it for, as its configuration says.
struct ConnectionWish: Hashable {
    /// Connections to its sockets, and data on those that came in by them: `wake_on_connect`.
    let incoming: WakeManner
    /// Data on all other connections over a network: the background mode `voip`.
    let outgoing: Bool
    /// It has sockets (`sockets`) by which clients connect and wake it: what they send later does too.
    let isGivenSockets: Bool

    init(_ specification: AppSpecification) {
        incoming = specification.wakeOnConnect
        outgoing = specification.backgroundModes.contains(.voip)
        isGivenSockets = specification.sockets.contains { $0.wake != .none && $0.plan.kind != .datagram }
    }

    var isNothing: Bool { !hasClients && !outgoing }

    /// Whether clients connect to it whose connections wake it.
    var hasClients: Bool { incoming != .none || isGivenSockets }

    /// Whether the end of a connection wakes it, and not only data. Clients of `sockets` may leave an app that sleeps: it
    /// sees that when it runs.
    var hearsEnds: Bool { incoming != .none || outgoing }

    /// How news of a socket wake the app; nil for not at all.
    func wake(for socket: some WatchableSocket, _ places: ListeningPlaces) -> Wake? {
        if isServing(socket), let wake = incoming.wake() { return wake }
        if let wake = manner(ofClient: socket, places).wake() { return wake }
        guard outgoing, socket.family.isOfNetwork, !socket.listens, socket.isConnected || socket.kind == .datagram
        else { return nil }
        return Wake()
    }

    /// Whether it waits for clients: it listens, or takes datagrams of everybody.
    private func isServing(_ socket: some WatchableSocket) -> Bool {
        socket.kind == .datagram
            ? socket.family.isOfNetwork && !socket.isConnected && socket.place != 0 : socket.listens
    }

    /// How data on a connection that came in where the app listens wakes it; none for other sockets.
    func manner(ofClient socket: some WatchableSocket, _ places: ListeningPlaces) -> WakeManner {
        guard socket.kind != .datagram, !socket.listens, socket.isConnected, socket.place != 0 else { return .none }
        let given = places.given[socket.place]
        if incoming != .none, given != nil || places.own.contains(socket.place) { return incoming }
        return given ?? .none
    }

    /// Whether new clients come to it, and are to wake the app.
    func isPort(_ socket: some WatchableSocket) -> Bool { incoming != .none && isServing(socket) }
}

/// Where an app listens: connections that came in there have the same numbers.
struct ListeningPlaces {
    /// By any of its sockets.
    var own: Set<UInt64>
    /// By those that torpord bound for it: how connections to them wake it.
    var given: [UInt64: WakeManner]
}

extension SocketTraffic {
    /// Whether a client waits for an answer on this connection of the app: what it sent was read, and nothing was written
    /// since. What came long ago may be no question at all.
    func owesAnswer(_ specification: AppSpecification) -> Bool {
        let most = specification.answerTime
        if let unanswered { return most.map { unanswered < $0 } ?? true }
        // The next question may have come in the same tick as the answer to the one before was written. Mostly there was
        // none, so it counts while it is new only.
        let eventTime = specification.rules.eventTime ?? .seconds(2)
        return tied.map { $0 < min(.seconds(1), eventTime / 2, most ?? .seconds(1)) } ?? false
    }
}

extension SocketFacts.Family {
    fileprivate var isOfNetwork: Bool { self == .internet || self == .vsock }
}

/// What is known of a socket, from a copy of it or from the kernel's diagnostics.
protocol WatchableSocket {
    var family: SocketFacts.Family { get }
    var kind: SocketFacts.Kind { get }
    var listens: Bool { get }
    var isConnected: Bool { get }
    var place: UInt64 { get }
}

extension SocketFacts: WatchableSocket {}
extension SocketQueue: WatchableSocket {}

extension SocketFacts {
    /// What happened at it, for people.
    package func text(_ events: IOEvents) -> String {
        if listens { return "a connection at \(local)" }
        if kind == .datagram { return isConnected ? "a datagram from \(remote)" : "a datagram at \(local)" }
        let other = remote.isEmpty ? local.isEmpty ? "" : " at \(local)" : " with \(remote)"
        if !events.isDisjoint(with: [.hangup, .error]) { return "the end of a connection\(other)" }
        if events.contains(.peerClosed) { return "the end of input on a connection\(other)" }
        if events.contains(.readable) { return "data on a connection\(other)" }
        return "room for more on a connection\(other)"
    }

    /// What events call it.
    package var name: String { remote.isEmpty ? local : remote }
}

extension SocketQueue {
    /// What happened at it, for people.
    package var text: String {
        let port = family == .internet ? " at port \(place)" : ""
        if listens { return "a connection\(port)" }
        return kind == .datagram ? "a datagram\(port)" : "data on a connection\(port)"
    }
}

/// What waits at sockets when their app falls asleep, and waited there when it did the last time.
///
/// What comes just before the stop must not be lost: the app is woken for it. But one that never takes what waits, such as
/// the end of a connection that it forgot to close, would be woken for it for ever: each time that a sleep begins with the
/// same socket having something, it is put off longer. What comes during the sleep wakes at once all the same.
struct LeftBehind {
    private var times: [UInt32: Int] = [:]

    var isEmpty: Bool { times.isEmpty }

    /// - Parameter sockets: the numbers of those where something waits at the beginning of a sleep.
    /// - Returns: how long each may wait until the app is woken for it.
    mutating func fellAsleep(_ sockets: some Sequence<UInt32>) -> [UInt32: Duration] {
        var next: [UInt32: Int] = [:]
        for socket in sockets { next[socket] = (times[socket] ?? 0) + 1 }
        times = next
        return next.mapValues(Self.delay)
    }

    /// Nothing, 1 s, 2 s, 4 s, to an hour.
    private static func delay(_ times: Int) -> Duration {
        times < 2 ? .zero : min(.seconds(1 << min(times - 2, 12)), .seconds(3_600))
    }
}
