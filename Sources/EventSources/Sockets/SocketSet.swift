// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux

/// The sockets that torpord binds for one app.
final class SocketSet {
    let app: AppRuntime
    /// The configuration of `sockets`.
    var specifications: [SocketSpecification] = []
    var sockets: [ListeningSocket] = []
    /// When to try the failed binds again; nil if all sockets are bound.
    var retryAt: Duration?
    var retryDelay: Duration = .zero
    /// When the last wake-up by a connection was refused, and the app's state at that time; nil if it was not
    /// refused, or connections may wake the app again.
    var refusal: Refusal?
    /// Why torpord has closed the app's sockets on purpose; nil if the sockets should be bound.
    var refused: ListeningSockets.Refusal?
    /// Whether the app accepted connections at shared ports, at the last check; nil before the first check.
    var portStanding: ListeningSockets.PortStanding?
    /// Whether it was reported that the app lost its shared ports because it ends again and again.
    var isKnownToFail = false

    /// Runs that a connection has launched and that accepted no connection.
    var unserved = Unserved()

    struct Unserved {
        /// How many runs in a row may accept no connection without causing a delay, because the app may have accepted a
        /// connection unnoticed. In the first run, arrivals are not counted. In the second run, the loop may report
        /// several arrivals as one, which hides an accept.
        static let tolerated = 2

        /// The number of consecutive runs that accepted no connection, as far as is known.
        var count = 0
        /// After several runs that accepted no connection, connections do not launch the app for some time. This is the
        /// end of that delay; nil if there is none.
        var until: Duration?
        var timer: TimerSource?
        /// The socket that had connections when a run last ended without accepting any.
        var socket: ListeningSocket?
        /// The current run, if a connection has launched this run or the previous one; nil if it does not matter
        /// whether the run accepts a connection.
        var run: Run?

        /// Ends the delay, so that connections launch the app again.
        mutating func endDelay() {
            until = nil
            timer?.cancel()
            timer = nil
        }
    }

    /// What the queue of a socket shows about a run of the app. The kernel does not count accepted connections, but
    /// only an accept makes the queue shorter. So if the queue is shorter than the connections before the run plus
    /// those that arrived since, the app has accepted one.
    final class Run {
        let socket: ListeningSocket
        let since: Duration
        /// How many connections waited before the run; nil if the kernel does not report it.
        private let waiting: Int?
        /// How many connections waited at the last check.
        private var last: Int
        /// How often the loop reported new connections.
        private var reports = 0
        /// A lower bound for the number of connections that arrived during the run.
        private var arrived = 0
        /// Whether arrivals were counted. If they were not, the app may have accepted a connection while another one
        /// arrived, so that the queue looks unchanged.
        private(set) var isCounted = false
        /// The event loop's watch of the socket that counts arrivals; nil if they are not counted now.
        private(set) var counter: IOSource?

        init(_ socket: ListeningSocket, since: Duration) {
            (self.socket, self.since) = (socket, since)
            waiting = socket.backlog.map { Int($0.waiting) }
            last = waiting ?? 0
        }

        /// Whether the app has accepted a connection. Also true if that is unknown, because the kernel does not report
        /// how many connections wait at this socket.
        func hasServed(isReport: Bool = false) -> Bool {
            guard let waiting, let left = socket.backlog.map({ Int($0.waiting) }) else { return true }
            if isReport { reports += 1 }
            // Both numbers are lower bounds: the loop may report several connections as one, and the queue does not
            // grow if one is accepted while another one arrives.
            arrived = max(arrived + max(0, left - last), reports)
            last = left
            return left == 0 || left < waiting + arrived
        }

        /// Counts arrivals by this watch from now on. `isReadable`: whether connections are queued already. The loop
        /// reports these once too, and that report must not count as an arrival.
        func count(by counter: IOSource?, isReadable: Bool) {
            self.counter = counter
            guard counter != nil else { return }
            isCounted = true
            if isReadable { reports -= 1 }
        }
    }

    /// A refused wake-up is retried after this time if it is unknown how long the reason lasts.
    static let patience = Duration.seconds(1)

    struct Refusal {
        let at: Duration
        let until: Duration?
        let of: Situation
    }

    /// The facts about the app on which a refusal depends. If they change, a wake-up is tried again.
    struct Situation: Equatable {
        let state: AppState
        let incarnation: UInt32
        let generation: UInt32
        let failed: Bool
        let ending: TerminationReason?
        let isBeforeFirstUnlock: Bool

        init(_ machine: AppMachine, isBeforeFirstUnlock: Bool) {
            self.isBeforeFirstUnlock = isBeforeFirstUnlock
            state = machine.state
            incarnation = machine.incarnation
            generation = UInt32(truncatingIfNeeded: machine.goalGeneration)
            failed = machine.failed
            ending = machine.lastEnding
        }
    }

    init(_ app: AppRuntime) { self.app = app }

    /// Whether a socket that should be bound is not bound.
    var isTroubled: Bool {
        refused == nil && sockets.contains { $0.descriptor == nil && !$0.isYielded && !$0.isPostponed }
    }
}
