// SPDX-License-Identifier: Apache-2.0

import Configuration
import Lifecycle
import Linux

/// What an app's own sockets wake it for, as its configuration says.
struct ConnectionWish: Hashable {
    /// Connections to its sockets, and data on those that came in by them: `wake_on_connect`.
    let incoming: WakeManner
    /// Data on all other connections over a network: the background mode `voip`.
    let outgoing: Bool

    init(_ specification: AppSpecification) {
        incoming = specification.wakeOnConnect
        outgoing = specification.backgroundModes.contains(.voip)
    }

    var isNothing: Bool { incoming == .none && !outgoing }

    /// How news of a socket wake the app; nil for not at all.
    ///
    /// - Parameter places: where sockets of the app listen.
    func wake(for socket: some WatchableSocket, listeningAt places: Set<UInt64>) -> Wake? {
        let isOfNetwork = socket.family.isOfNetwork
        let isServer = isServing(socket) || isOfClient(socket, places)
        if isServer, let wake = incoming.wake() { return wake }
        guard outgoing, isOfNetwork, !socket.listens, socket.isConnected || socket.kind == .datagram else { return nil }
        return Wake()
    }

    /// Whether it waits for clients: it listens, or takes datagrams of everybody.
    private func isServing(_ socket: some WatchableSocket) -> Bool {
        socket.kind == .datagram
            ? socket.family.isOfNetwork && !socket.isConnected && socket.place != 0 : socket.listens
    }

    /// Whether it is the connection of a client that came in where the app listens.
    func isOfClient(_ socket: some WatchableSocket, _ places: Set<UInt64>) -> Bool {
        socket.kind != .datagram && !socket.listens && socket.isConnected && socket.place != 0
            && places.contains(socket.place)
    }

    /// Whether new clients come to it, and are to wake the app.
    func isPort(_ socket: some WatchableSocket) -> Bool { incoming != .none && isServing(socket) }
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
    func text(_ events: IOEvents) -> String {
        if listens { return "a connection at \(local)" }
        if kind == .datagram { return isConnected ? "a datagram from \(remote)" : "a datagram at \(local)" }
        let other = remote.isEmpty ? local.isEmpty ? "" : " at \(local)" : " with \(remote)"
        if !events.isDisjoint(with: [.hangup, .error]) { return "the end of a connection\(other)" }
        if events.contains(.peerClosed) { return "the end of what comes on a connection\(other)" }
        if events.contains(.readable) { return "data on a connection\(other)" }
        return "room for more on a connection\(other)"
    }

    /// What events call it.
    var name: String { remote.isEmpty ? local : remote }
}

extension SocketQueue {
    /// What happened at it, for people.
    var text: String {
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
