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
    /// Why none of the app's sockets is bound; nil if they should be.
    var refused: ListeningSockets.Refusal?
    /// Whether the app accepted connections at shared ports, at the last check; nil before the first check.
    var portStanding: ListeningSockets.PortStanding?
    /// Whether it was reported that the app lost its shared ports because it ends again and again.
    var isKnownToFail = false

    /// Runs that a connection has launched and that accepted no connection.
    var unserved = Unserved()

    struct Unserved {
        /// So many runs in a row are followed by no delay, since they may have served: arrivals are not counted in the
        /// first one, and an accept in the second one may be hidden by arrivals that were reported together.
        static let tolerated = 2

        /// How many runs in a row were not seen to accept a connection.
        var count = 0
        /// Until when connections do not launch the app, because of the last such run; nil for no wait.
        var until: Duration?
        var timer: TimerSource?
        /// The socket at which the last such run accepted none.
        var socket: ListeningSocket?
        /// The current run, if a connection has launched it or has launched the last one; nil if the run need not be
        /// judged.
        var run: Run?

        /// Ends the delay.
        mutating func endDelay() {
            until = nil
            timer?.cancel()
            timer = nil
        }
    }

    /// What the queue of a socket shows about a run of the app. The kernel does not count accepted connections, but
    /// only an accept makes the queue shorter. So if fewer connections wait than waited and arrived, the app has
    /// accepted one.
    final class Run {
        let socket: ListeningSocket
        let since: Duration
        /// How many connections waited before the run; nil if the kernel does not say.
        private let waiting: Int?
        /// How many waited at the last look.
        private var last: Int
        /// How often the loop reported new connections.
        private var reports = 0
        /// How many connections arrived in the run, at least.
        private var arrived = 0
        /// Whether arrivals were counted. If not, a connection may have replaced an accepted one unnoticed.
        private(set) var isCounted = false
        /// The event loop's watch of the socket that counts arrivals; nil if they are not counted now.
        private(set) var counter: IOSource?

        init(_ socket: ListeningSocket, since: Duration) {
            (self.socket, self.since) = (socket, since)
            waiting = socket.backlog.map { Int($0.waiting) }
            last = waiting ?? 0
        }

        /// Whether the app has accepted a connection, or may have done so at a socket of which the kernel does not
        /// say how many wait.
        func hasServed(isReport: Bool = false) -> Bool {
            guard let waiting, let left = socket.backlog.map({ Int($0.waiting) }) else { return true }
            if isReport { reports += 1 }
            // Both are lower bounds: the loop may report several connections once, and an accept hides an arrival.
            arrived = max(arrived + max(0, left - last), reports)
            last = left
            return left == 0 || left < waiting + arrived
        }

        /// Arrivals are counted by this watch from now on. `isReadable`: whether connections wait already, which the
        /// loop reports once.
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

    /// The app's state at the time of a refusal. If the state changes, a wake-up is tried again.
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
    var isTroubled: Bool { refused == nil && sockets.contains { $0.descriptor == nil && !$0.isYielded } }
}
