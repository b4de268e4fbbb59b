// SPDX-License-Identifier: Apache-2.0

import Configuration
import DataProtection
import Engine
import Linux

/// What locks and unlocks data: the session and the machine, persons, and the end of the supervisor.
extension ProtectedData {
    /// Called when logind's state is known, and whenever it changes.
    func follow(_ now: OutsideLocks.State, sleepsAt: Duration?) {
        (outside, self.sleepsAt) = (now, sleepsAt)
        guard edge.hasBegun, closing == nil else { return }
        let wish = locks.follow(now, session: rules.lockWith.contains(.session), sleep: rules.lockWith.contains(.sleep))
        // Recorded before the bits of the session and of the sleep: a wish that is carried out twice does no harm.
        switch wish {
        case .lock: lockFromOutside()
        case .unlock where edge.isUnlocked: locks.isUnlocked()
        case .unlock: unlockFromOutside()
        case nil: break
        }
        supervisor.recovery.outsideLocks = locks.recorded
    }

    private func lockFromOutside() {
        stopUnlocking()
        guard outside?.isAsleep == true, let sleepsAt else { return handle(.lock) }
        let left = max(.zero, sleepsAt - now)
        handle(.lockSoon(max(left / 2, left - Self.closingTime)))
    }

    /// How long before the machine sleeps the time of apps is over, so that folders are closed by then.
    private static let closingTime = Duration.seconds(2)

    /// Ends a command that was started before a lock, which it would undo. It may have given the kernel keys.
    private func stopUnlocking() {
        guard runs.stopUnlocking(), edge.isLocked else { return }
        let chosen = locking
        runs.close(folders(chosen)) { [weak self] outcome in self?.settle(outcome, chosen, isOpening: false) }
    }

    /// Unlocks data without a person. The command gives the passphrase to ‘torpor protect unlock’, which then asks for
    /// the unlock like any client.
    func unlockFromOutside() {
        guard !rules.unlock.isEmpty else { return handle(.unlock) }
        runs.unlock(rules.unlock) { [weak self] why in
            guard let self, let why else { return }
            locks.staysLocked()
            supervisor.recovery.outsideLocks = locks.recorded
            note(
                .dataLocked,
                text: "protected data stays locked: the command unlock of [supervisor.protected]: \(why)",
                level: .warning
            )
        }
    }

    /// Whether a sleep of the machine waits for the lock.
    var holdsSleep: Bool { edge.isLocking && outside?.isAsleep == true }

    /// Locks data. `completion` gets what keeps files in use.
    package func lock(by person: String, _ completion: @escaping (Result<String?, Refusal>) -> Void) {
        guard edge.hasBegun else { return completion(.success("no app has protected data")) }
        // An unlock that the session has asked for is older.
        locks.staysLocked()
        supervisor.recovery.outsideLocks = locks.recorded
        stopUnlocking()
        if edge.isLocked { return completion(.success(busy)) }
        log.info("\(person) locks protected data")
        if edge.isOverdue {
            let why = locking.lazy.compactMap { self.standings[$0.name]?.problem }.first ?? "a folder may still be open"
            return completion(.failure(Refusal(description: why)))
        }
        whenLocked.append(completion)
        handle(.lock)
    }

    /// Unlocks data, whose keys the kernel has.
    package func unlock(by person: String, _ completion: @escaping (Result<String?, Refusal>) -> Void) {
        guard edge.hasBegun else { return completion(.success("no app has protected data")) }
        guard closing == nil else { return completion(.failure(Refusal(description: "torpord is ending"))) }
        log.info("\(person) unlocks protected data")
        whenUnlocked.append(completion)
        handle(.unlock)
    }

    // MARK: The end

    /// Locks all folders at the end of the supervisor, when its apps are gone. Returns whether they are locked;
    /// otherwise calls ``Shutdown/finishWhenGone()`` then.
    func endAll() -> Bool {
        guard edge.hasBegun else { return true }
        switch closing {
        case .done: return true
        case .underWay: return false
        case nil: closing = .underWay
        }
        _ = runs.stopUnlocking()
        supervisor.recovery.protection = .locking
        closeAtEnd(tries: 3)
        return false
    }

    private func closeAtEnd(tries: Int) {
        let chosen = protected
        runs.close(folders(chosen)) { [weak self] outcome in
            guard let self else { return }
            let closed = settle(outcome, chosen, isOpening: false)
            for standing in outcome.answer.standings { deal(with: standing) }
            guard closed != .failed || tries <= 1 else { return closeAtEnd(tries: tries - 1) }
            if closed == .failed {
                let why = chosen.lazy.compactMap { self.standings[$0.name]?.problem }.first ?? ""
                note(.dataBusy, text: "torpord ends, and protected data could not be locked: \(why)", level: .error)
            } else {
                // Otherwise the next torpord of this boot closes them.
                supervisor.recovery.protection = .locked
            }
            closing = .done
            supervisor.shutdown.finishWhenGone()
        }
    }
}
