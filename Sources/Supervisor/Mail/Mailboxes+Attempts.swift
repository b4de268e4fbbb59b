// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Mailbox
import Processes
import Store

/// Counts how many times a piece of mail has ended the app that handled it.
///
/// Before mail is sent, the store records which run (launch) of the app gets the mail. If that run fails or exits
/// before the app has answered, this counts as one attempt. After `mail_attempts` attempts the mail is no longer
/// delivered, and the app gets the next mail. An ending that no torpord has observed, for example in a power failure,
/// does not count.
extension Mailboxes {
    func beginAttempt(_ id: Int64, _ app: AppRuntime, run: UInt32? = nil) {
        guard let run = run ?? Self.run(of: app), let mail = boxes[app.id]?.beginAttempt(id, in: run) else { return }
        host.store.save(MailStanding(mail), of: id, of: app.name)
    }

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        defer { atLaunch[app.id] = nil }
        let late = missed.removeValue(forKey: app.id)
        if ending.reason == .exitSuccess { launchedWithURL(app) }
        guard let run = Self.run(of: app) else {
            // No process was launched, so the URL in the arguments of the launch is not to blame.
            if isLoaded, atLaunch[app.id] != nil {
                endAttempts(app, run: ending.incarnation, counts: false) { $0 == ending.incarnation }
            }
            return
        }
        // If it is not known how the run ended, the mail may not be the cause, so this does not count as an attempt.
        // A run that hung in the mail has failed, also if a user then ended it.
        let counts =
            ending.reason.spoilsDelivery && ending.reason != .unknown
            || late.flatMap { boxes[app.id]?[$0]?.run } == run
        guard isLoaded else {
            endedBeforeLoad[app.id] = (run, counts)
            return
        }
        let left = endAttempts(app, run: run, counts: counts) { $0 == run }
        // No restart follows a success. The mail has woken the app and is not answered, so it wakes the app again, at
        // most `mail_attempts` times.
        guard ending.reason == .exitSuccess, case .rest = ending.next,
            let mail = left.first(where: { $0.draft.wake != nil })
        else { return }
        loop.later { [weak self, weak app] in
            guard let self, let app, let mail = boxes[app.id]?[mail.id] else { return }
            haveWoken(host.wake(app, for: mail), app)
        }
    }

    /// Called when the app has not answered the mail at its deadline.
    func missedDeadline(_ mail: Int64?, by app: AppRuntime) { missed[app.id] = mail }

    /// Sets mail aside that the app was told `times` times in one run without an answer, because its delegate has
    /// connected again each time.
    func giveUp(_ id: Int64, after times: Int, _ app: AppRuntime) {
        guard let mail = boxes[app.id]?[id] else { return }
        let run = Self.run(of: app).map { Int64($0) }
        unhandled.add(StoredMail(mail, of: app.name), .crashed, run: run, told: Int64(times), app)
        acknowledged(id, by: app)
    }

    /// The number of the app's latest incarnation that has processes, or had them last; nil if none is known. This is
    /// not the core's number, because the core may already have decided on the next incarnation while this one is
    /// ending.
    static func run(of app: AppRuntime) -> UInt32? { app.run.tree?.tag.incarnation }

    /// The words that a message about the app's end appends to say which mail the app was handling; nil if it was
    /// handling none.
    func guilt(of app: AppRuntime, reason: TerminationReason) -> String? {
        guard let run = Self.run(of: app), let mail = boxes[app.id]?.items.first(where: { $0.run == run }) else {
            return nil
        }
        let limit = app.specification.mailAttempts
        let told = "; it was handling message \(mail.id) (\(mail.draft.topic))"
        if mail.attempts >= limit {
            return told + ", which is not delivered again: ‘torpor unhandled \(app.name)’"
        }
        let number =
            reason == .unknown ? "an unknown ending does not count" : "this was attempt \(mail.attempts)"
        return told + ", which is delivered \(limit) times at most (\(number)): "
            + "‘torpor mailbox \(app.name) --drop \(mail.id)’ drops it"
    }

    /// Ends the delivery of mail that an earlier torpord sent to incarnations (runs of an app) that have ended.
    func settleAttempts() {
        for app in apps where boxes[app.id] != nil {
            if let ended = endedBeforeLoad[app.id] {
                endAttempts(app, run: ended.run, counts: ended.counts) { $0 == ended.run }
            }
            let run = Self.run(of: app)
            endAttempts(app, counts: false) { $0 != run }
        }
        endedBeforeLoad = [:]
    }

    /// Returns the mail that stays in the mailbox.
    @discardableResult
    private func endAttempts(
        _ app: AppRuntime,
        run: UInt32? = nil,
        counts: Bool,
        where isOver: (UInt32) -> Bool
    ) -> [Mail] {
        var left: [Mail] = []
        for mail in boxes[app.id]?.endAttempts(counts: counts, where: isOver) ?? [] {
            if counts, mail.attempts >= app.specification.mailAttempts {
                unhandled.add(StoredMail(mail, of: app.name), .crashed, run: run.map { Int64($0) }, app)
                acknowledged(mail.id, by: app)
            } else {
                host.store.save(MailStanding(mail), of: mail.id, of: app.name)
                left.append(mail)
            }
        }
        return left
    }

    /// Decodes stored mail; nil if it cannot be delivered. Mail that no app can handle is kept as unhandled.
    func readable(_ stored: StoredMail, _ app: AppRuntime) -> Mail? {
        // If the mail is stored as unhandled too, remove it here: an earlier torpord was killed before it could remove
        // the mail from the mailbox.
        if unhandled.has(stored.id, of: app) {
            host.store.removeMail(stored.id, of: app.name)
            return nil
        }
        guard let mail = Mail(stored) else {
            unhandled.add(stored, .unreadable, app)
            host.store.removeMail(stored.id, of: app.name)
            return nil
        }
        guard Message(rawValue: stored.message) != nil else {
            unhandled.add(stored, .unknownMessage, app)
            host.store.removeMail(stored.id, of: app.name)
            return nil
        }
        return mail
    }
}

extension TerminationReason {
    /// Whether unanswered mail may be the cause if an app ends for this reason.
    package var spoilsDelivery: Bool { isFailure || self == .exitSuccess }
}
