// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux

/// The keeper's watch over the loop: a timer that both have. Armed while the loop works, put off while it turns (with
/// much output it may have no time to sleep), disarmed while it sleeps, so that an idle torpord costs no wake-up; when it
/// fires, the keeper ends torpord and starts another.
final class KeeperWatch {
    private let timer: Descriptor
    private let limit: Duration
    private let putOffEach: Duration
    private var isCancelled = false
    /// When it would be put off next.
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
