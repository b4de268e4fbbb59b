// SPDX-License-Identifier: Apache-2.0

import EventLoop

/// Calls a function once, with the first of several answers.
final class Once<Answer> {
    /// A timer that gives an answer if no other comes. It is cancelled with the first answer.
    var timer: TimerSource?
    private var then: ((Answer) -> Void)?

    init(_ then: @escaping (Answer) -> Void) { self.then = then }

    func give(_ answer: Answer) {
        timer?.cancel()
        timer = nil
        let then = then
        self.then = nil
        then?(answer)
    }
}
