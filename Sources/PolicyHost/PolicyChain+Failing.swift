// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Policies

/// Handles the failures of policies.
extension PolicyChain {
    func refused(_ slot: PolicySlot, _ sentence: String) {
        close(slot)
        slot.state = .refused(sentence)
        slot.lastFailure = sentence
        delegate?.policy(slot, changed: "is not used: \(sentence)", isTrouble: true)
        delegate?.policiesChanged()
        // A file that cp(1) is writing may be refused between two parts of it.
        slot.retryTimer = try? loop.timer { [weak self, weak slot] in
            guard let self, let slot, slot.file?.isOverwritten ?? false else { return }
            self.load(slot)
        }
        slot.retryTimer?.arm(after: FailureLedger.afterOverwrite)
    }

    func failed(_ slot: PolicySlot, _ failure: PolicyFailure) {
        let isOverwritten = slot.file?.isOverwritten ?? false
        // What is said of a file that was written to at the same time need not be true of the whole file.
        if case .refused(let sentence) = failure, !isOverwritten { return refused(slot, sentence) }
        close(slot)
        slot.lastFailure = failure.description
        if case .stalled = failure {
            slot.statistics.stalls += 1
            slot.state = .waiting
            tryAgain(slot, after: FailureLedger.afterStall)
            tell(slot, "is reloaded in \(FailureLedger.afterStall.components.seconds) s", failure)
            return
        }
        if isOverwritten {
            slot.state = .waiting
            tryAgain(slot, after: FailureLedger.afterOverwrite)
            let sentence =
                "is reloaded in \(FailureLedger.afterOverwrite.components.seconds) s, since its library was "
                + "overwritten while it was loaded: replace it by install(1) or mv(1), not by cp(1)"
            tell(slot, sentence, failure)
            return
        }
        slot.statistics.failures += 1
        switch slot.ledger.failed(at: loop.now) {
        case .retry(let delay):
            slot.state = .waiting
            tryAgain(slot, after: delay)
            tell(slot, "failed and is reloaded in \(delay.microseconds / 1000) ms", failure)
        case .quarantine(let time):
            slot.state = .quarantined(failure.description)
            tryAgain(slot, after: time)
            let sentence =
                "failed too often and is quarantined: it is reloaded in \(time.components.seconds / 60) min, or at "
                + "once by ‘torpor policy reload \(slot.settings.name)’"
            tell(slot, sentence, failure)
        }
    }

    private func tell(_ slot: PolicySlot, _ sentence: String, _ failure: PolicyFailure) {
        delegate?.policy(slot, changed: "\(sentence): \(failure)", isTrouble: true)
        delegate?.policiesChanged()
    }

    private func tryAgain(_ slot: PolicySlot, after delay: Duration) {
        slot.retryAt = loop.now + delay
        slot.retryTimer = try? loop.timer { [weak self, weak slot] in
            guard let self, let slot else { return }
            slot.statistics.restarts += 1
            self.load(slot)
        }
        slot.retryTimer?.arm(after: delay)
    }
}
