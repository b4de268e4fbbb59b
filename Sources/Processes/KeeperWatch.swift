import EventLoop
import Linux

/// The keeper's watch over the loop: a timer that both have. Armed while the loop works, disarmed while it sleeps, so
/// that an idle torpord costs no wake-up; when it fires, the keeper ends torpord and starts another.
final class KeeperWatch {
    private let timer: Descriptor
    private let limit: Duration
    private var isCancelled = false

    init(timer: Descriptor, milliseconds: UInt32, loop: EventLoop) {
        self.timer = timer
        limit = .milliseconds(Int(milliseconds))
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
    }

    private func loopSleeps() {
        if !isCancelled { try? Timerfd.disarm(timer.raw) }
    }

    private func loopWakes() {
        if !isCancelled { try? Timerfd.arm(timer.raw, at: Clock.monotonic() + limit) }
    }

    func cancel() {
        loopSleeps()
        isCancelled = true
    }
}
