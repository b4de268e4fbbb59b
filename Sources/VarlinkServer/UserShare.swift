// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux

/// The account of one user: how much of the service's resources all connections of that user take. Root and the
/// server's own user are exempt.
///
/// If a user's calls have taken more than its share of the loop's time, the user must wait until the share is
/// replenished. So other users never wait for this user longer than ``VarlinkServer/Limits/burst``.
final class UserShare {
    /// Bytes of messages received but not handled, mostly incomplete ones.
    var inbound = 0
    /// Bytes that clients have not read yet.
    var outbound = 0

    private let loop: EventLoop
    private let limits: VarlinkServer.Limits
    /// The maximum debt, in bursts.
    private static let mostBursts = 8

    /// By how much the user had exceeded its share of the loop's time, at the time `at`.
    private var debt = Duration.zero
    private var at: Duration
    private var waiting: [() -> Void] = []
    private var timer: TimerSource?

    init(_ loop: EventLoop, _ limits: VarlinkServer.Limits) {
        self.loop = loop
        self.limits = limits
        at = loop.now
    }

    /// Whether the user has to wait now.
    var isOverdrawn: Bool { !waiting.isEmpty || current() > limits.burst }

    /// Whether the debt is near its maximum: then not even new connections are accepted.
    var isAtEnd: Bool { current() > limits.burst * (Self.mostBursts - 1) }

    /// Whether the account need not be stored: no client waits, and there are neither debts nor unread bytes.
    var isIdle: Bool { waiting.isEmpty && inbound == 0 && outbound == 0 && current() == .zero }

    /// Charges the user for time of the loop.
    ///
    /// The debt is limited, because a single call may take long for reasons outside the user's control, and the user
    /// should then wait only a moment.
    func spend(_ time: Duration) { debt = min(current() + max(time, .zero), limits.burst * Self.mostBursts) }

    /// Calls `body` when the user may be served again.
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
