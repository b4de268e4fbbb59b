// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
package import Linux

/// Which events wake an app if they happen at sockets that the app opened itself, as its configuration says.
struct ConnectionWish: Hashable {
    /// How connections to the app's own listening sockets, and data on connections that it accepted, wake the app:
    /// `wake_on_connect`.
    let incoming: WakeManner
    /// Whether data wakes the app if it comes on a network connection that the app did not accept, such as one that the
    /// app made itself: the background mode `voip`.
    let outgoing: Bool
    /// Whether torpord binds sockets for the app (`sockets`). If so, later data on connections accepted from these
    /// sockets wakes the app too.
    let isGivenSockets: Bool
    /// Whether torpord shuts down clients' idle connections when the app is suspended: `suspended_connections`.
    let closesConnections: Bool
    /// The places of the app's `sockets` that torpord could not bind, each with how a connection there wakes the app,
    /// because the app itself may listen there: ``ListeningSockets/lost(by:)``.
    let lost: [UInt64: WakeManner]

    init(_ specification: AppSpecification, lost: [UInt64: WakeManner] = [:]) {
        self.lost = lost
        incoming = specification.wakeOnConnect
        outgoing = specification.backgroundModes.contains(.voip)
        isGivenSockets = specification.sockets.contains { $0.wake != .none && $0.plan.kind != .datagram }
        closesConnections = specification.suspendedConnections == .close
    }

    var isNothing: Bool { !hasClients && !outgoing && !closesConnections }

    /// Whether clients' connections wake the app.
    var hasClients: Bool { incoming != .none || isGivenSockets || !lost.isEmpty }

    /// Whether the end of a connection wakes the app. It does not if the app only has `sockets`: the app then notices
    /// the end when it runs again.
    var hearsEnds: Bool { incoming != .none || outgoing }

    /// How events of this socket wake the app; nil if they do not.
    func wake(for socket: some WatchableSocket, _ places: ListeningPlaces) -> Wake? {
        if isServing(socket), let wake = (lost[socket.place] ?? incoming).wake() { return wake }
        if let wake = manner(ofClient: socket, places).wake() { return wake }
        return isHeardConnection(socket) ? Wake() : nil
    }

    /// Whether data on the socket wakes an app in the mode `voip`. Connections that it accepted count too.
    func isHeardConnection(_ socket: some WatchableSocket) -> Bool {
        outgoing && socket.family.isOfNetwork && !socket.listens && (socket.isConnected || socket.kind == .datagram)
    }

    /// Whether the socket receives new clients: it listens, or receives datagrams from any sender.
    private func isServing(_ socket: some WatchableSocket) -> Bool {
        socket.kind == .datagram
            ? socket.family.isOfNetwork && !socket.isConnected && socket.place != 0 : socket.listens
    }

    /// How data wakes the app if the socket is an incoming connection; `none` for other sockets.
    func manner(ofClient socket: some WatchableSocket, _ places: ListeningPlaces) -> WakeManner {
        guard isOfClient(socket, places) else { return .none }
        return incoming != .none ? incoming : places.given[socket.place] ?? .none
    }

    /// Whether the socket is a connection that the app accepted from a client.
    func isOfClient(_ socket: some WatchableSocket, _ places: ListeningPlaces) -> Bool {
        guard socket.kind != .datagram, !socket.listens, socket.isConnected, socket.place != 0 else { return false }
        return places.given[socket.place] != nil || places.own.contains(socket.place)
    }

    /// Whether the app itself listens at the address of one of its `sockets` that torpord could not bind.
    func isLost(_ socket: some WatchableSocket) -> Bool { isServing(socket) && lost[socket.place] != nil }

    /// Whether the socket receives new clients, and these wake the app.
    func isPort(_ socket: some WatchableSocket) -> Bool { incoming != .none && isServing(socket) }
}

/// The places where an app listens: port numbers, or numbers derived from socket names. An accepted connection has the
/// same place as its listening socket.
struct ListeningPlaces {
    /// The places of sockets that the app opened itself.
    var own: Set<UInt64>
    /// The places of sockets that torpord bound for the app, each with how a connection there wakes the app.
    var given: [UInt64: WakeManner]
}

extension SocketTraffic {
    /// Whether a client waits for an answer on this connection: the app has read data and written nothing since.
    /// After `answer_time`, the client is no longer assumed to wait.
    func owesAnswer(_ specification: AppSpecification) -> Bool {
        let most = specification.answerTime
        if let unanswered { return most.map { unanswered < $0 } ?? true }
        // The last data came in the same clock tick in which the app sent its last answer, so it could be a new
        // question. It rarely is one, so assume only for a short time that the client waits.
        let eventTime = specification.rules.eventTime ?? .seconds(2)
        return tied.map { $0 < min(.seconds(1), eventTime / 2, most ?? .seconds(1)) } ?? false
    }
}

extension SocketFacts.Family {
    fileprivate var isOfNetwork: Bool { self == .internet || self == .vsock }
}

/// The facts about a socket that decide whether it wakes its app. They come from a copy of the socket, or from the
/// kernel's socket diagnostics.
protocol WatchableSocket {
    var family: SocketFacts.Family { get }
    var kind: SocketFacts.Kind { get }
    var listens: Bool { get }
    var isConnected: Bool { get }
    var place: UInt64 { get }
    var isElsewhere: Bool { get }
}

extension WatchableSocket {
    /// Whether the kernel does not report to torpord when data moves on the socket, or on connections accepted from it.
    var isUntraced: Bool { family != .internet || kind != .stream || isElsewhere }
}

extension SocketPlan {
    /// Whether the kernel does not report when data moves on such a socket, or on connections accepted from it.
    var isUntraced: Bool {
        switch address {
        case .port, .ipv4, .ipv6: kind != .stream
        case .path, .abstract, .vsock: true
        }
    }
}

extension SocketFacts: WatchableSocket {}
extension SocketQueue: WatchableSocket {}

extension SocketFacts {
    /// What happened on the socket, as a text for the log and the history.
    package func text(_ events: IOEvents) -> String {
        if listens { return "a connection at \(local)" }
        if kind == .datagram { return isConnected ? "a datagram from \(remote)" : "a datagram at \(local)" }
        let other = remote.isEmpty ? local.isEmpty ? "" : " at \(local)" : " with \(remote)"
        if !events.isDisjoint(with: [.hangup, .error]) { return "the end of a connection\(other)" }
        if events.contains(.peerClosed) { return "the end of input on a connection\(other)" }
        if events.contains(.readable) { return "data on a connection\(other)" }
        return "room for more on a connection\(other)"
    }

    /// The name of the socket in events: the address of its peer, otherwise its own address.
    package var name: String { remote.isEmpty ? local : remote }
}

extension SocketQueue {
    /// What happened on the socket, as a text for the log and the history.
    package var text: String {
        let port = family == .internet ? " at port \(place)" : ""
        if listens { return "a connection\(port)" }
        return kind == .datagram ? "a datagram\(port)" : "data on a connection\(port)"
    }
}

/// Delays wake-ups for data that an app leaves unread in one suspension after another.
///
/// Data that comes just before a suspension wakes the app, because it must not be lost. But an app that never reads
/// certain data (such as the end of a connection that it forgot to close) would be woken again and again. So each
/// further suspension that begins with unread data on the same socket delays the wake-up more. Data that comes later
/// wakes the app at once.
///
/// At a listening socket, the pending connections may be different ones each time: on a busy port, some client always
/// connects just as the app is suspended. So connections cause a delay only if two conditions are met. One of them was
/// already pending in the last suspension, and the app was then awake for a second or more, so that it could have
/// accepted the connection.
///
/// There is no delay for data that came since the last suspension, nor while a client waits for an answer
/// (``SocketTraffic/owesAnswer(_:)``).
struct LeftBehind {
    /// The data or connection that is pending at a socket.
    enum Pending: Hashable {
        /// Connections that wait to be accepted. `ids`: a number that identifies each; nil if the kernel does not
        /// report it.
        case connection(ids: Set<UInt64>?)
        /// An answer that a client waits for.
        case answer
        /// Data, or the end of a connection. `received`: how long ago the last data came; nil if unknown.
        case data(received: Duration?)
    }

    private var times: [UInt32: Int] = [:]
    /// The connections that waited at each listening socket in the last suspension.
    private var unaccepted: [UInt32: Set<UInt64>] = [:]
    /// The longest delay if the kernel does not report which connections are pending, because each could be a new one.
    private static let longestForUnknown = Duration.seconds(1)

    var isEmpty: Bool { times.isEmpty }

    /// Called when a suspension begins.
    ///
    /// - Parameters:
    ///   - sockets: the pending data or connection of each socket, by inode number.
    ///   - awake: how long the app ran before this suspension; nil if unknown.
    /// - Returns: how long the data of each socket waits before it wakes the app.
    mutating func fellAsleep(_ sockets: [UInt32: Pending], after awake: Duration?) -> [UInt32: Duration] {
        var next: [UInt32: Int] = [:]
        var connections: [UInt32: Set<UInt64>] = [:]
        var delays: [UInt32: Duration] = [:]
        for (socket, pending) in sockets {
            let count = isNew(pending, at: socket, awake) ? 1 : (times[socket] ?? 0) + 1
            next[socket] = count
            delays[socket] = Self.delay(count)
            guard case .connection(let ids) = pending else { continue }
            if let ids {
                connections[socket] = ids
            } else {
                delays[socket] = min(Self.delay(count), Self.longestForUnknown)
            }
        }
        (times, unaccepted) = (next, connections)
        return delays
    }

    private func isNew(_ pending: Pending, at socket: UInt32, _ awake: Duration?) -> Bool {
        switch pending {
        case .answer: true
        case .connection(let ids):
            if let awake, awake < .seconds(1) {
                true
            } else if let ids, let before = unaccepted[socket] {
                before.isDisjoint(with: ids)
            } else {
                false
            }
        case .data(let received):
            if let received, let awake { received < awake } else { false }
        }
    }

    /// The delay after `times` consecutive suspensions with unread data: zero at the first, then 1 s, 2 s, 4 s, up to
    /// an hour.
    private static func delay(_ times: Int) -> Duration {
        times < 2 ? .zero : min(.seconds(1 << min(times - 2, 12)), .seconds(3_600))
    }
}
