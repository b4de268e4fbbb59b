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

    /// Runs that a connection has launched and that accepted no connection.
    var unserved = Unserved()

    struct Unserved {
        /// How many runs in a row were launched by a connection and accepted no connection.
        var count = 0
        /// Until when connections do not launch the app, because the last run that a connection launched accepted
        /// none; nil if there is no delay.
        var until: Duration?
        var timer: TimerSource?
        /// The current run, if a connection has launched it; nil otherwise.
        var run: Run?

        final class Run {
            let socket: ListeningSocket
            /// How many connections waited at the socket when the run was requested; nil if the kernel does not say.
            let waiting: Int?
            let since: Duration
            /// At least how many connections came during the run. Counted only if the run before it accepted none.
            var arrivals = 0
            var counter: IOSource?

            init(socket: ListeningSocket, waiting: Int?, since: Duration) {
                (self.socket, self.waiting, self.since) = (socket, waiting, since)
            }

            /// Whether the run has accepted no connection, as far as the queue of the socket shows.
            var servedNone: Bool {
                guard let descriptor = socket.descriptor else { return false }
                guard let waiting, let left = socket.backlog.map({ Int($0.waiting) }) else {
                    return Descriptor.readiness(descriptor.raw).contains(.readable)
                }
                return left > 0 && left >= waiting + max(0, arrivals)
            }
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
