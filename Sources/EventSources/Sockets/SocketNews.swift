// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
package import Linux

/// Which events of an app's own sockets wake it, by its configuration.
struct ConnectionWish: Hashable {
    /// Connections to its sockets, and data on incoming connections: `wake_on_connect`.
    let incoming: WakeManner
    /// Data on all other network connections: the background mode `voip`.
    let outgoing: Bool
    /// Torpord binds sockets for it (`sockets`): data that their clients send later wakes it too.
    let isGivenSockets: Bool

    init(_ specification: AppSpecification) {
        incoming = specification.wakeOnConnect
        outgoing = specification.backgroundModes.contains(.voip)
        isGivenSockets = specification.sockets.contains { $0.wake != .none && $0.plan.kind != .datagram }
    }

    var isNothing: Bool { !hasClients && !outgoing }

    /// Whether it has clients whose connections wake it.
    var hasClients: Bool { incoming != .none || isGivenSockets }

    /// Whether the end of a connection wakes it, and not only data. A client of `sockets` may disconnect from a
    /// suspended app, which notices that when it runs.
    var hearsEnds: Bool { incoming != .none || outgoing }

    /// How events of a socket wake the app; nil if they do not.
    func wake(for socket: some WatchableSocket, _ places: ListeningPlaces) -> Wake? {
        if isServing(socket), let wake = incoming.wake() { return wake }
        if let wake = manner(ofClient: socket, places).wake() { return wake }
        guard outgoing, socket.family.isOfNetwork, !socket.listens, socket.isConnected || socket.kind == .datagram
        else { return nil }
        return Wake()
    }

    /// Whether the socket is for clients: it listens, or receives datagrams from any sender.
    private func isServing(_ socket: some WatchableSocket) -> Bool {
        socket.kind == .datagram
            ? socket.family.isOfNetwork && !socket.isConnected && socket.place != 0 : socket.listens
    }

    /// How data on an incoming connection wakes the app; none for other sockets.
    func manner(ofClient socket: some WatchableSocket, _ places: ListeningPlaces) -> WakeManner {
        guard socket.kind != .datagram, !socket.listens, socket.isConnected, socket.place != 0 else { return .none }
        let given = places.given[socket.place]
        if incoming != .none, given != nil || places.own.contains(socket.place) { return incoming }
        return given ?? .none
    }

    /// Whether it accepts new clients, which wake the app.
    func isPort(_ socket: some WatchableSocket) -> Bool { incoming != .none && isServing(socket) }
}

/// The places where an app listens: incoming connections have the same numbers.
struct ListeningPlaces {
    /// Places of sockets that the app opened itself.
    var own: Set<UInt64>
    /// Places of sockets that torpord bound for it, and how connections to them wake it.
    var given: [UInt64: WakeManner]
}

extension SocketTraffic {
    /// Whether a client waits for an answer on this connection: its data was read, and nothing was written since. Old
    /// data may not have been a question at all.
    func owesAnswer(_ specification: AppSpecification) -> Bool {
        let most = specification.answerTime
        if let unanswered { return most.map { unanswered < $0 } ?? true }
        // The next question may have come in the same clock tick as the last answer. Usually there was none, so it
        // only counts while it is new.
        let eventTime = specification.rules.eventTime ?? .seconds(2)
        return tied.map { $0 < min(.seconds(1), eventTime / 2, most ?? .seconds(1)) } ?? false
    }
}

extension SocketFacts.Family {
    fileprivate var isOfNetwork: Bool { self == .internet || self == .vsock }
}

/// What is known of a socket, from a copy of it or from the kernel's socket diagnostics.
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
    /// What happened, for users.
    package func text(_ events: IOEvents) -> String {
        if listens { return "a connection at \(local)" }
        if kind == .datagram { return isConnected ? "a datagram from \(remote)" : "a datagram at \(local)" }
        let other = remote.isEmpty ? local.isEmpty ? "" : " at \(local)" : " with \(remote)"
        if !events.isDisjoint(with: [.hangup, .error]) { return "the end of a connection\(other)" }
        if events.contains(.peerClosed) { return "the end of input on a connection\(other)" }
        if events.contains(.readable) { return "data on a connection\(other)" }
        return "room for more on a connection\(other)"
    }

    /// Its name in events.
    package var name: String { remote.isEmpty ? local : remote }
}

extension SocketQueue {
    /// What happened, for users.
    package var text: String {
        let port = family == .internet ? " at port \(place)" : ""
        if listens { return "a connection\(port)" }
        return kind == .datagram ? "a datagram\(port)" : "data on a connection\(port)"
    }
}

/// Data that is pending when an app is suspended, and was pending at its last suspension too.
///
/// Data that comes just before the suspension must not be lost: it wakes the app. But an app that never reads it,
/// such as the end of a connection that it forgot to close, would be woken for ever: each suspension that begins with
/// data on the same socket delays the wake-up more. Data that comes during the suspension still wakes at once.
///
/// A connection that waits at a listening socket may be another one than at the last suspension, as when a client
/// connects each time just as the app is suspended. So there it counts only if the app was awake for a second, in which
/// it could have accepted it. Data that came since the app was last suspended is new, and an answer that a client waits
/// for (``SocketTraffic/owesAnswer(_:)``) is not left behind at all.
struct LeftBehind {
    /// What is pending at a socket.
    enum Pending: Hashable {
        /// A connection that waits to be accepted.
        case connection
        /// A client waits for the rest of an answer.
        case answer
        /// Data, or the end of a connection. How long ago the last data came, where that is known.
        case data(received: Duration?)
    }

    private var times: [UInt32: Int] = [:]

    var isEmpty: Bool { times.isEmpty }

    /// - Parameters:
    ///   - sockets: by inode number, what is pending at the begin of a suspension.
    ///   - awake: how long the app ran before it; nil if that is not known.
    /// - Returns: how long each may wait before it wakes the app.
    mutating func fellAsleep(_ sockets: [UInt32: Pending], after awake: Duration?) -> [UInt32: Duration] {
        var next: [UInt32: Int] = [:]
        for (socket, pending) in sockets { next[socket] = Self.isNew(pending, awake) ? 1 : (times[socket] ?? 0) + 1 }
        times = next
        return next.mapValues(Self.delay)
    }

    private static func isNew(_ pending: Pending, _ awake: Duration?) -> Bool {
        switch pending {
        case .answer: true
        case .connection: awake.map { $0 < .seconds(1) } ?? false
        case .data(let received):
            if let received, let awake { received < awake } else { false }
        }
    }

    /// Zero, then 1 s, 2 s, 4 s, up to an hour.
    private static func delay(_ times: Int) -> Duration {
        times < 2 ? .zero : min(.seconds(1 << min(times - 2, 12)), .seconds(3_600))
    }
}
