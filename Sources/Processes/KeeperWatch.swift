// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux

/// The keeper's watchdog for the event loop: a timer that torpord and the keeper share. If it expires, the keeper kills
/// torpord and starts another. The timer is armed while the loop works, and disarmed while the loop sleeps, so that an
/// idle torpord causes no wake-ups. Because a busy loop may not sleep for a long time, the timer is also extended every
/// few iterations.
final class KeeperWatch {
    private let timer: Descriptor
    private let limit: Duration
    private let putOffEach: Duration
    private var isCancelled = false
    /// When to extend the timer again, while the event loop is busy.
    private var putOffAt = Duration.zero

    init(timer: Descriptor, milliseconds: UInt32, loop: EventLoop) {
        self.timer = timer
        limit = .milliseconds(Int(milliseconds))
        putOffEach = .milliseconds(Int(milliseconds / 8))
        guard milliseconds > 0 else { return }
        let before = loop.beforeSleep
        let after = loop.afterWake
        loop.beforeSleep = { [weak self] in
            before?()
            self?.loopSleeps()
        }
        loop.afterWake = { [weak self] in
            self?.loopWakes()
            after?()
        }
        let busy = loop.whileBusy
        loop.whileBusy = { [weak self] in
            self?.loopTurns()
            busy?()
        }
    }

    private func loopSleeps() {
        if !isCancelled { try? Timerfd.disarm(timer.raw) }
    }

    private func loopWakes() {
        guard !isCancelled else { return }
        let now = Clock.monotonic()
        try? Timerfd.arm(timer.raw, at: now + limit)
        putOffAt = now + putOffEach
    }

    private func loopTurns() {
        if Clock.monotonic() >= putOffAt { loopWakes() }
    }

    func cancel() {
        loopSleeps()
        isCancelled = true
    }
}
