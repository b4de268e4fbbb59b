// SPDX-License-Identifier: Apache-2.0

import Configuration
import DataProtection
import Engine
import Linux

/// Locks and unlocks data: when logind reports that the session was locked or the machine will sleep, when a user
/// requests it, and when the supervisor ends.
extension ProtectedData {
    /// Called when logind's state is known, and whenever it changes.
    func follow(_ now: OutsideLocks.State, sleepsAt: Duration?) {
        (outside, self.sleepsAt) = (now, sleepsAt)
        guard edge.hasBegun, closing == nil else { return }
        let wish = locks.follow(now, session: rules.lockWith.contains(.session), sleep: rules.lockWith.contains(.sleep))
        // Lock or unlock before the state of ``locks`` is recorded. If torpord dies in between, the next torpord
        // repeats this, which does no harm.
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

    /// The part of the time before a sleep of the machine that is reserved for closing the folders. Until then torpord
    /// waits for the answers of apps. If less than twice this time is left, half of it is reserved.
    private static let closingTime = Duration.seconds(2)

    /// Kills a running unlock command, because it would undo the lock that was just requested. If data is locked,
    /// closes the folders once more to remove keys from the kernel, because the command may have added some already.
    private func stopUnlocking() {
        guard runs.stopUnlocking(), edge.isLocked else { return }
        let chosen = locking
        runs.close(folders(chosen)) { [weak self] outcome in self?.settle(outcome, chosen, isOpening: false) }
    }

    /// Unlocks data without a request of a user: after the boot, or when the session is unlocked or the machine has
    /// woken up. If `unlock` is configured, its command gives the passphrase to ‘torpor protect unlock’, which then
    /// requests the unlock like any other client.
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

    /// Whether torpord delays the sleep of the machine, because data is still being locked.
    var holdsSleep: Bool { edge.isLocking && outside?.isAsleep == true }

    /// Locks data at a user's request. `completion` gets nil if no protected file is in use any longer; a sentence
    /// about the files that are in use; or, as a failure, why a folder could not be closed.
    package func lock(by person: String, _ completion: @escaping (Result<String?, Refusal>) -> Void) {
        guard edge.hasBegun else { return completion(.success("no app has protected data")) }
        // Drop an earlier unlock by the session or the machine that was not carried out yet: the user's request is
        // newer.
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

    /// Unlocks data at the request of a user who has given the kernel the keys. `completion` gets a sentence about apps
    /// whose data stays locked (nil if there are none), or, as a failure, why all data stays locked.
    package func unlock(by person: String, _ completion: @escaping (Result<String?, Refusal>) -> Void) {
        guard edge.hasBegun else { return completion(.success("no app has protected data")) }
        guard closing == nil else { return completion(.failure(Refusal(description: "torpord is ending"))) }
        log.info("\(person) unlocks protected data")
        whenUnlocked.append(completion)
        handle(.unlock)
    }

    // MARK: The end

    /// Locks all folders when the supervisor is ending and its apps have ended. Returns whether this is done; if not,
    /// calls ``Shutdown/finishWhenGone()`` when it is.
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
                // If a folder could not be closed, leave `locking` in the record, so that the next torpord of this boot
                // closes the folders.
                supervisor.recovery.protection = .locked
            }
            closing = .done
            supervisor.shutdown.finishWhenGone()
        }
    }
}
