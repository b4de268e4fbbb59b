// SPDX-License-Identifier: Apache-2.0

import EventLoop

/// What waits for apps, and when things happen to them.
extension Store {
    /// Keeps what waits for an app; what was kept under its number is replaced.
    ///
    /// - Parameter isNew: nothing was saved under its number before.
    public func save(_ mail: StoredMail, isNew: Bool = false) { change(.mail(mail), isFresh: isNew) }

    /// It waits no more.
    public func removeMail(_ id: Int64, of app: String) { change(.mailRemoval(id, app: app)) }

    /// Keeps how often mail was told, and who was asked.
    public func save(_ standing: MailStanding, of mail: Int64, of app: String) {
        change(.standing(standing, of: mail, app: app))
    }

    /// Keeps what nobody handled.
    public func save(_ unhandled: StoredUnhandled) { change(.unhandled(unhandled), isFresh: true) }

    /// It is kept no longer.
    public func removeUnhandled(_ id: Int64, of app: String) { change(.unhandledRemoval(id, app: app)) }

    /// Gives what nobody handled, the oldest first; all that was saved before is seen.
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

    /// Keeps what is known of a schedule; what was known before is replaced.
    public func save(_ schedule: StoredSchedule) { change(.schedule(schedule)) }

    /// Forgets a schedule.
    public func remove(_ key: StoredSchedule.Key) { change(.scheduleRemoval(key)) }

    /// Keeps that an app asked for a topic.
    public func save(_ subscription: StoredSubscription) { change(.subscription(subscription)) }

    /// It does not want it any more.
    public func remove(_ key: StoredSubscription.Key) { change(.subscriptionRemoval(key)) }

    /// Has all that was saved of mail until now written so that it outlives a loss of power, and tells nil when it is, or
    /// why it is not, in a sentence. Those who wait together are served by one write.
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
