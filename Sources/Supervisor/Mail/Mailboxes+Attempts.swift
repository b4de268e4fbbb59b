// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
package import Lifecycle
import Mailbox
import Processes
import Store

/// How often an app is told something that ends it.
///
/// That mail is told in a run of the app is kept before it is sent. Is it not answered when the run ends, and did the run
/// end unasked, that was an attempt. After `mail_attempts` of them the mail is told nobody any more, and the app goes on
/// with the next. An ending of which no torpord has heard, as when the machine lost its power, counts for nothing.
extension Mailboxes {
    func beginAttempt(_ id: Int64, _ app: AppRuntime, run: UInt32? = nil) {
        guard let run = run ?? Self.run(of: app), let mail = boxes[app.id]?.beginAttempt(id, in: run) else { return }
        host.store.save(MailStanding(mail), of: id, of: app.name)
    }

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        defer { atLaunch[app.id] = nil }
        if ending.reason == .exitSuccess { launchedWithURL(app) }
        guard let run = Self.run(of: app) else {
            // No process came to be: the URL that it was to be launched with is not why.
            if isLoaded, atLaunch[app.id] != nil {
                endAttempts(app, run: ending.incarnation, counts: false) { $0 == ending.incarnation }
            }
            return
        }
        // Of how it ended nobody may know anything: then it may have been anything.
        let counts = ending.reason.isFailure && ending.reason != .unknown
        guard isLoaded else {
            endedBeforeLoad[app.id] = (run, counts)
            return
        }
        endAttempts(app, run: run, counts: counts) { $0 == run }
    }

    /// The run whose processes there are, or were. The core may have decided on the next when that is ended.
    static func run(of app: AppRuntime) -> UInt32? { app.run.tree?.tag.incarnation }

    /// What is said of what the app was being told, beside how the run ended; nil where it was being told nothing.
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

    /// What an earlier torpord was telling apps whose runs are over.
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

    private func endAttempts(_ app: AppRuntime, run: UInt32? = nil, counts: Bool, where isOver: (UInt32) -> Bool) {
        for mail in boxes[app.id]?.endAttempts(counts: counts, where: isOver) ?? [] {
            if counts, mail.attempts >= app.specification.mailAttempts {
                unhandled.add(StoredMail(mail, of: app.name), .crashed, run: run.map { Int64($0) }, app)
                acknowledged(mail.id, by: app)
            } else {
                host.store.save(MailStanding(mail), of: mail.id, of: app.name)
            }
        }
    }

    /// What was kept, as mail; nil for what cannot be told anybody: then it is kept as unhandled.
    func readable(_ stored: StoredMail, _ app: AppRuntime) -> Mail? {
        // A torpord was killed between putting it there and taking it out here.
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
