// SPDX-License-Identifier: Apache-2.0

import EventLoop

/// Callbacks that wait for something that may never come, each for at most a time of its own. So their number is
/// bounded by how often one is added in that time.
final class BoundedWait {
    private unowned let loop: EventLoop
    private var waiting: [(end: Duration, body: () -> Void)] = []
    private var timer: TimerSource?

    init(_ loop: EventLoop) { self.loop = loop }

    var isEmpty: Bool { waiting.isEmpty }

    /// Calls `body` in ``end()``, or after `longest`. Calls it at once if there is no timer (EMFILE), because then nothing
    /// would end the wait.
    func add(within longest: Duration, _ body: @escaping () -> Void) {
        if timer == nil {
            timer = try? loop.timer { [weak self] in
                guard let self else { return }
                call { $0 <= self.loop.now }
            }
        }
        guard timer != nil else { return body() }
        waiting.append((loop.now + longest, body))
        arm()
    }

    /// Calls everything that waits.
    func end() { call { _ in true } }

    private func call(_ isDue: (Duration) -> Bool) {
        let due = waiting.filter { isDue($0.end) }
        waiting.removeAll { isDue($0.end) }
        arm()
        for entry in due { entry.body() }
    }

    private func arm() {
        if let next = waiting.lazy.map(\.end).min() { timer?.arm(at: next) } else { timer?.disarm() }
    }
}
