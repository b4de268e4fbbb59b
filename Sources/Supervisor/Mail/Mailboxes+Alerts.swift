// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import EventSources
import Lifecycle
import Mailbox
import Store
import Varlink

/// Sends apps mail about their alerts. Such mail waits while the app sleeps, is delivered once, and survives the end of
/// the app, a restart of torpord and a reboot.
extension Mailboxes {
    /// Sends the app mail about an alert that is due. If `wakes`, also wakes the app into the background, if the app
    /// may be woken.
    ///
    /// - Throws: ``Mailbox/Refusal`` if the app's mailbox is full.
    func tellAlert(_ draft: MailDraft, wakes: Bool, _ app: AppRuntime) throws(Mailbox.Refusal) {
        var draft = draft
        if wakes { draft.wake = .background }
        try add(draft, for: app)
        guard wakes else { return deliver(to: app) }
        haveWoken(host.wake(app, Self.event(draft, at: loop.now)), app)
    }

    /// Called with the result of waking an app for mail. From now on, the app's mail about alerts no longer wakes it,
    /// unless this wake was held back. Otherwise, if the app never reads the mail, each start of torpord would wake the
    /// app again.
    func haveWoken(_ outcome: WakeOutcome, _ app: AppRuntime) {
        if case .heldBack = outcome { return }
        for mail in waiting(for: app) where mail.draft.topic == AlertMail.topic {
            guard let changed = boxes[app.id]?.forgetWake(mail.id) else { continue }
            host.store.save(StoredMail(changed, of: app.name))
        }
    }

    /// Removes the mail that reports an alert to the app, unless the delivery of that mail has begun.
    func forgetAlert(_ number: Int64, of app: AppRuntime) {
        for mail in waiting(for: app)
        where mail.draft.topic == AlertMail.topic && mail.draft.key == "\(number)" && !mail.isInFlight {
            acknowledged(mail.id, by: app)
        }
    }

    /// The most messages about alerts that may wait for an app. When this many wait, further answers of users only
    /// bring the app to the foreground and are not stored: otherwise the mail of an app that never reads any would grow
    /// without limit.
    private static let mostAnswers = 64

    /// Sends the app a user's answer to an alert, even if the app's mailbox is full. Returns the event that brings
    /// the app to the foreground.
    func tellAnswer(_ draft: MailDraft, _ app: AppRuntime) -> WakeEvent {
        // The stored mail does not wake the app: otherwise each start of torpord would bring an app that never reads
        // its mail to the foreground. The returned event wakes the app once.
        if waiting(for: app).count(where: { $0.draft.topic == AlertMail.topic }) < Self.mostAnswers {
            _ = try? add(draft, for: app, limits: Mailbox.Limits(count: .max, bytes: .max))
        }
        var draft = draft
        draft.wake = .foreground
        return Self.event(draft, at: loop.now)
    }

    private static func event(_ draft: MailDraft, at: Duration) -> WakeEvent {
        let id = draft.payload["alert"]?.stringValue ?? ""
        return WakeEvent(.alert, id, "its alert \(id)", mail: draft, at: at)
    }

    /// Whether mail about the alert with this number waits for the app or is being delivered to it.
    func hasAlertMail(_ number: Int64, of app: AppRuntime) -> Bool {
        waiting(for: app).contains { $0.draft.topic == AlertMail.topic && $0.draft.key == "\(number)" }
    }
}
