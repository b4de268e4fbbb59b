// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux

/// The accounting of all connections of one user to a service. Root and the server's own user are exempt.
///
/// A user who has used the loop for longer than its share is served again after waiting for it to be replenished:
/// other users never wait for it longer than ``VarlinkServer/Limits/burst``.
final class UserShare {
    /// Bytes of messages received but not handled, mostly incomplete ones.
    var inbound = 0
    /// Bytes that clients have not read yet.
    var outbound = 0

    private let loop: EventLoop
    private let limits: VarlinkServer.Limits
    /// The maximum debt, in bursts.
    private static let mostBursts = 8

    /// Loop time used in excess of the share, as of `at`.
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

    /// Whether there is nothing to account.
    var isIdle: Bool { waiting.isEmpty && inbound == 0 && outbound == 0 && current() == .zero }

    /// Accounts loop time.
    ///
    /// The debt is capped: one call may take long, partly because of other programs, and the user should wait only a
    /// moment for that.
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
