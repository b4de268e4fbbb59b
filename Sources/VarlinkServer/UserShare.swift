// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux

/// What all connections of one user to a service take together. Root's and the server's own user's are not counted.
///
/// A user who has used the loop for longer than its share is served again when it has paid for that by waiting: others
/// never wait longer for it than ``VarlinkServer/Limits/burst``.
final class UserShare {
    /// Bytes of messages that were not taken yet, most since they have not come whole.
    var inbound = 0
    /// Bytes that wait for clients that have not read them.
    var outbound = 0

    private let loop: EventLoop
    private let limits: VarlinkServer.Limits
    /// What it can owe at most, in bursts.
    private static let mostBursts = 8

    /// Time of the loop that was used and not paid for yet, at `at`.
    private var debt = Duration.zero
    private var at: Duration
    private var waiting: [() -> Void] = []
    private var timer: TimerSource?

    init(_ loop: EventLoop, _ limits: VarlinkServer.Limits) {
        self.loop = loop
        self.limits = limits
        at = loop.now
    }

    /// Whether it has to wait now.
    var isOverdrawn: Bool { !waiting.isEmpty || current() > limits.burst }

    /// Whether it owes as much as can be: then not even a connection of it is taken.
    var isAtEnd: Bool { current() > limits.burst * (Self.mostBursts - 1) }

    /// Whether nothing is remembered of it.
    var isIdle: Bool { waiting.isEmpty && inbound == 0 && outbound == 0 && current() == .zero }

    /// Takes time of the loop into account.
    ///
    /// One call may take long, and some of it was other programs' time: who waits for it waits a moment and no more.
    func spend(_ time: Duration) { debt = min(current() + max(time, .zero), limits.burst * Self.mostBursts) }

    /// Calls when it is its turn again.
    func wait(_ body: @escaping () -> Void) {
        waiting.append(body)
        guard waiting.count == 1 else { return }
        if timer == nil {
            timer = try? loop.timer { [weak self] in
                guard let self else { return }
                let bodies = waiting
                waiting = []
                for body in bodies { body() }
            }
        }
        timer?.arm(after: max(.milliseconds(1), current() * limits.inverseShare))
    }

    private func current() -> Duration {
        let now = loop.now
        debt = max(.zero, debt - (now - at) / limits.inverseShare)
        at = now
        return debt
    }
}
