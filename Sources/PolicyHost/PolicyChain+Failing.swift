// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Policies

/// What follows when a policy fails.
extension PolicyChain {
    func refused(_ seat: PolicySeat, _ sentence: String) {
        close(seat)
        seat.state = .refused(sentence)
        seat.lastFailure = sentence
        delegate?.policy(seat, changed: "is not used: \(sentence)", isTrouble: true)
        delegate?.policiesChanged()
    }

    func failed(_ seat: PolicySeat, _ failure: PolicyFailure) {
        if case .refused(let sentence) = failure { return refused(seat, sentence) }
        close(seat)
        seat.lastFailure = failure.description
        if case .stalled = failure {
            seat.statistics.stalls += 1
            seat.state = .waiting
            tryAgain(seat, after: FailureLedger.afterStall)
            tell(seat, "is tried again in \(FailureLedger.afterStall.components.seconds) s", failure)
            return
        }
        seat.statistics.failures += 1
        switch seat.ledger.failed(at: loop.now) {
        case .retry(let delay):
            seat.state = .waiting
            tryAgain(seat, after: delay)
            tell(seat, "failed and is tried again in \(delay.microseconds / 1000) ms", failure)
        case .quarantine(let time):
            seat.state = .quarantined(failure.description)
            tryAgain(seat, after: time)
            let sentence =
                "failed too often and is quarantined: it is tried again in \(time.components.seconds / 60) min, and at once by "
                + "‘torpor policy reload \(seat.settings.name)’"
            tell(seat, sentence, failure)
        }
    }

    private func tell(_ seat: PolicySeat, _ sentence: String, _ failure: PolicyFailure) {
        delegate?.policy(seat, changed: "\(sentence): \(failure)", isTrouble: true)
        delegate?.policiesChanged()
    }

    private func tryAgain(_ seat: PolicySeat, after delay: Duration) {
        seat.retryAt = loop.now + delay
        seat.retryTimer = try? loop.timer { [weak self, weak seat] in
            guard let self, let seat else { return }
            seat.statistics.restarts += 1
            self.load(seat)
        }
        seat.retryTimer?.arm(after: delay)
    }
}
