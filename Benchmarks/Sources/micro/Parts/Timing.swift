// SPDX-License-Identifier: Apache-2.0

import EventLoop

extension Part {
    /// A thousand other timers are armed, as for watchdogs.
    static let timer = Part(
        name: "timer",
        what: "a timer is armed on the loop, and fires, while a thousand others are armed"
    ) {
        let loop = try EventLoop()
        let others = try (0..<1_000).map { number in
            let timer = try loop.timer {}
            timer.arm(after: .seconds(1_000 + number))
            return timer
        }
        var fired = 0
        let timer = try loop.timer { fired += 1 }
        return { count in
            let before = fired
            for _ in 0..<count {
                timer.arm(at: .seconds(1))
                try loop.runOnce(timeout: nil)
            }
            guard fired - before == count, others.count == 1_000 else {
                throw WentWrong("\(fired - before) of \(count) timers fired")
            }
        }
    }
}
