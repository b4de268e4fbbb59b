// SPDX-License-Identifier: Apache-2.0

import EventLoop

/// Saves and reads messages, and other state of apps that changes while they run.
extension Store {
    /// Saves a message; replaces a message with the same number.
    ///
    /// - Parameter isNew: true if no message with this number was saved before.
    public func save(_ mail: StoredMail, isNew: Bool = false) { change(.mail(mail), isFresh: isNew) }

    /// Removes a message from the queue.
    public func removeMail(_ id: Int64, of app: String) { change(.mailRemoval(id, app: app)) }

    /// Saves the delivery state of a message.
    public func save(_ standing: MailStanding, of mail: Int64, of app: String) {
        change(.standing(standing, of: mail, app: app))
    }

    /// Saves an unhandled message.
    public func save(_ unhandled: StoredUnhandled) { change(.unhandled(unhandled), isFresh: true) }

    /// Removes an unhandled message.
    public func removeUnhandled(_ id: Int64, of app: String) { change(.unhandledRemoval(id, app: app)) }

    /// Reads unhandled messages, oldest first, including all that were saved before this call.
    public func unhandled(
        _ query: UnhandledQuery,
        within limit: Duration = .seconds(2),
        _ completion: @escaping (Result<[StoredUnhandled], Unavailable>) -> Void
    ) {
        ask(.unhandled(query), within: limit) { answer in
            switch answer {
            case .unhandled(let rows): completion(.success(rows))
            case .failed(let reason): completion(.failure(Unavailable(description: reason)))
            case .contents, .events, .reports, .flushed, .later: break
            }
        }
    }

    /// Saves the state of a schedule; replaces the earlier state.
    public func save(_ schedule: StoredSchedule) { change(.save(schedule)) }

    /// Removes a schedule.
    public func remove(_ key: StoredSchedule.Key) { change(.remove(StoredSchedule.self, key, of: key.app)) }

    /// Saves a subscription of an app.
    public func save(_ subscription: StoredSubscription) { change(.save(subscription)) }

    /// Removes a subscription.
    public func remove(_ key: StoredSubscription.Key) { change(.remove(StoredSubscription.self, key, of: key.app)) }

    /// Writes all messages saved so far to the disk, so that they survive a power failure. Then calls `completion` with
    /// nil on success, otherwise with the reason. Calls that are pending at the same time share one write.
    public func sync(within limit: Duration = .seconds(5), _ completion: @escaping (Unavailable?) -> Void) {
        waitingForSync.append((loop.now + limit, completion))
        if !isSyncing { syncNext() }
    }

    private func syncNext() {
        let waiting = waitingForSync
        waitingForSync = []
        guard let deadline = waiting.map(\.deadline).min() else { return }
        isSyncing = true
        push { $0.work.mail.isSynced = true }
        ask(.sync, within: max(.zero, deadline - loop.now)) { [weak self] answer in
            self?.isSyncing = false
            self?.syncNext()
            var problem: Unavailable?
            if case .failed(let reason) = answer { problem = Unavailable(description: reason) }
            for (_, completion) in waiting { completion(problem) }
        }
    }

    func change(_ change: MailChange, isFresh: Bool = false) {
        let now = loop.now
        journal?.append(change)
        let mark = journal?.end
        if !isLoaded { beforeLoad.append(.change(change)) }
        push { $0.take(change, isFresh: isFresh, mark: mark, now: now) }
    }
}
