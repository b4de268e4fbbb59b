// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import Lifecycle
package import Mailbox
import Varlink

/// Activities that apps continue. Like URLs, they are mail that is delivered only in the foreground. Each activity is
/// two messages: an announcement, then the activity itself.
extension Mailboxes {
    /// Queues an activity for an app that continues it. Returns the number of the mail that has the activity.
    ///
    /// - Parameter key: identifies the request. If an activity with this key is waiting already, a repeated request
    ///   queues no second one.
    package func continueActivity(
        _ activity: Activity,
        of source: AppRuntime?,
        from sender: String,
        key: String?,
        _ app: AppRuntime
    ) throws(URLRefusal) -> Int64 {
        let waiting = waitingActivities(app)
        if let key, let same = waiting.first(where: { $0.draft.key == key }) { return same.id }
        if let refusal = refusal(ofActivitiesFor: app) { throw refusal }
        let announcement = Self.draft(.willContinueActivity, ["type": .string(activity.type)], sender, key)
        let payload: JSON = [
            "type": .string(activity.type), "title": .string(activity.title), "payload": activity.payload,
            "url": .optional(activity.url), "source": .optional(source?.name), "state": .bool(activity.needsState),
        ]
        var continuation = Self.draft(.continueActivity, payload, sender, key)
        continuation.isOfOtherApp = source.map { $0 !== app } ?? false
        do throws(Mailbox.Refusal) {
            guard case .added(let first) = try add(announcement, for: app) else { return 0 }
            do throws(Mailbox.Refusal) {
                guard case .added(let mail) = try add(continuation, for: app) else { return 0 }
                return mail.id
            } catch {
                acknowledged(first.id, by: app)
                throw error
            }
        } catch {
            throw URLRefusal("\(error)")
        }
    }

    /// Why the app's mailbox accepts no further activity; nil if it accepts one.
    package func refusal(ofActivitiesFor app: AppRuntime) -> URLRefusal? {
        guard hearsActivities(app) else {
            return URLRefusal(
                "cannot continue activities: it has no delegate, and no signal for continueActivity in "
                    + "[apps.\(app.specification.template).signals]"
            )
        }
        let count = waitingActivities(app).count
        guard count >= ActivityMail.mostWaiting else { return nil }
        return URLRefusal("has \(count) activities waiting already, which is the most")
    }

    func hearsActivities(_ app: AppRuntime) -> Bool {
        mayHaveDelegate(app) || app.specification.signals[.continueActivity] != nil
    }

    private func waitingActivities(_ app: AppRuntime) -> [Mail] {
        waiting(for: app).filter { $0.draft.message == ActivityMail.continuing }
    }

    /// Removes waiting activities whose delivery has not begun. Tells the app, and the client that waits for the
    /// result, that these activities failed.
    func failActivities(of app: AppRuntime, _ reason: String, where isChosen: (_ payload: JSON) -> Bool) {
        for mail in waitingActivities(app) where !mail.isInFlight {
            guard isChosen(mail.draft.payload) else { continue }
            addFailure(of: mail, reason, app)
            app.failedActivity = AnsweredMail(id: mail.id, key: mail.draft.key, failure: reason)
            acknowledged(mail.id, by: app)
            deliver(to: app)
        }
    }

    /// Queues the message which tells the app that an announced activity will not come.
    private func addFailure(of mail: Mail, _ reason: String, _ app: AppRuntime) {
        // Add this message even if the mailbox is full: it replaces the activity that has failed, so the mailbox does
        // not grow.
        let payload: JSON = ["type": mail.draft.payload["type"] ?? "", "reason": .string(reason)]
        let failure = Self.draft(.didFailToContinueActivity, payload, mail.draft.sender, mail.draft.key)
        _ = try? add(failure, for: app, limits: Mailbox.Limits(count: .max, bytes: .max))
    }

    /// Removes the announcement of an activity that was withdrawn. If the app has already received the announcement,
    /// tells the app that the activity will not come.
    func withdrawAnnouncement(of mail: Mail, _ app: AppRuntime) {
        // The announcement is the last mail with this topic before the activity: both are queued together.
        let before = waiting(for: app).last { $0.draft.topic == ActivityMail.topic && $0.id < mail.id }
        if let before, before.draft.message == Message.willContinueActivity.rawValue, takeBack(before.id, of: app) {
            return
        }
        addFailure(of: mail, "the request to continue it was refused", app)
        deliver(to: app)
    }

    /// Called when the app has continued an activity: notifies the app in which the user began it, if there is one.
    func activityWasContinued(_ mail: Mail, by app: AppRuntime) {
        guard mail.draft.message == ActivityMail.continuing, let type = mail.draft.payload["type"]?.stringValue else {
            return
        }
        let source = mail.draft.payload["source"]?.stringValue
        note(app, .posted, text: "has continued the activity \(type)" + (source.map { " of \($0)" } ?? ""))
        guard let id = source.flatMap({ coordinator.id(of: $0) }), apps[id] !== app else { return }
        var draft = MailDraft(
            topic: ActivityMail.sourceTopic,
            message: Message.activityWasContinued.rawValue,
            payload: ["type": .string(type), "by": .string(app.name)],
            // If an earlier message that an activity was continued still waits for the app, this one replaces it.
            coalescing: .latest,
            sender: app.name
        )
        draft.isOwnEvent = true
        _ = try? add(draft, for: apps[id], limits: Mailbox.Limits(count: .max, bytes: .max))
        deliver(to: apps[id])
    }

    private static func draft(_ message: Message, _ payload: JSON, _ sender: String, _ key: String?) -> MailDraft {
        MailDraft(
            topic: ActivityMail.topic,
            message: message.rawValue,
            payload: payload,
            key: key,
            sender: sender
        )
    }
}

extension AppRuntime {
    /// The last activity for the app that was removed from the mailbox before its delivery, and so has failed.
    package var failedActivity: AnsweredMail? {
        get { slots[FailedActivitySlot.self] }
        set { slots[FailedActivitySlot.self] = newValue }
    }
}

private enum FailedActivitySlot: Slot { typealias Value = AnsweredMail }
