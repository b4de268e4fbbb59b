// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import EventSources
import Lifecycle
import Mailbox
import Varlink

/// What apps are told of their alerts is mail: it waits while the app sleeps, is delivered once, and outlives the app,
/// torpord and a reboot.
extension Mailboxes {
    /// Sends the app mail about an alert that came. With `wakes`, wakes it into the background, if it may be woken.
    ///
    /// - Throws: ``Mailbox/Refusal`` if its mailbox is full.
    func tellAlert(_ draft: MailDraft, wakes: Bool, _ app: AppRuntime) throws(Mailbox.Refusal) {
        var draft = draft
        if wakes { draft.wake = .background }
        try add(draft, for: app)
        guard wakes else { return deliver(to: app) }
        host.wake(app, Self.event(draft, at: loop.now))
    }

    /// How many messages about alerts may wait for an app: another answer only brings the app to the foreground. An app
    /// that is never told would get more and more.
    private static let mostAnswers = 64

    /// Sends the app a person's answer, whatever the limits of its mailbox are; returns the event that it comes to the
    /// foreground for.
    func tellAnswer(_ draft: MailDraft, _ app: AppRuntime) -> WakeEvent {
        // The mail itself wakes nothing: the answer does, once. Mail that an app is never told would bring the app to the
        // foreground at each start of torpord.
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

    /// Whether the message that an alert came waits for the app, or is being delivered.
    func hasAlertMail(_ number: Int64, of app: AppRuntime) -> Bool {
        waiting(for: app).contains { $0.draft.topic == AlertMail.topic && $0.draft.key == "\(number)" }
    }
}
