// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventLoop
import Lifecycle
package import Mailbox

/// Notifies apps of changes of the machine and its session. Such a change wakes no app: a running app gets the message
/// at once, and a suspended app when it wakes. An app that does not run gets no message, because it sees the new state
/// at its launch.
package final class Notifications: EventRoom {
    package unowned(unsafe) let wakes: Wakes

    package init(_ wakes: Wakes) { self.wakes = wakes }

    /// Notifies all apps that subscribe to the topic.
    ///
    /// - Parameter text: what happened, as a text for the log and the history.
    package func tell(_ topic: NotificationTopic, _ mail: MailDraft, _ text: @autoclosure () -> String) {
        for app in apps where hears(app, topic, mail.message) { tell(app, topic, mail, text()) }
    }

    /// Notifies one app, if it subscribes to the topic.
    package func tell(
        _ topic: NotificationTopic,
        _ mail: MailDraft,
        to app: AppRuntime,
        _ text: @autoclosure () -> String
    ) {
        if hears(app, topic, mail.message) { tell(app, topic, mail, text()) }
    }

    private func tell(_ app: AppRuntime, _ topic: NotificationTopic, _ mail: MailDraft, _ text: String) {
        let event = WakeEvent(.notification, topic.rawValue, text, wake: nil, mail: mail, at: now)
        do throws(Mailbox.Refusal) {
            try wakes.happened(event, for: app)
        } catch {
            log.warning("\(app.name) is not notified of \(text): it \(error)")
        }
    }

    /// Notifies apps that the session was locked or unlocked, so that the user's encrypted files became unreadable or
    /// readable.
    ///
    /// - Parameter isFirst: whether torpord has just started, so that apps may already know this state.
    package func tellLock(_ isLocked: Bool, isFirst: Bool) {
        let names = [Message.protectedDataWillBecomeUnavailable, .protectedDataDidBecomeAvailable].map(\.rawValue)
        let (message, opposite) = isLocked ? (names[0], names[1]) : (names[1], names[0])
        let topic = NotificationTopic.protectedData
        let mail = MailDraft(topic: topic.rawValue, message: message, coalescing: .latest, sender: "logind")
        // Skip apps with the data protection `complete`: ``tellProtectedData(_:to:)`` notifies them when their folder
        // is about to be locked, or was unlocked.
        for app in apps where hears(app, topic, message) && app.specification.data.protection.kind != .complete {
            if isFirst, machine(app).isCovered == isLocked { continue }
            if cancels(opposite, app) { continue }
            tell(app, topic, mail, isLocked ? "the locking of the session" : "the unlocking of the session")
        }
    }

    /// If the opposite message is still queued, removes it and returns true, because a lock and an unlock during one
    /// suspension of the app cancel each other out.
    private func cancels(_ opposite: String, _ app: AppRuntime) -> Bool {
        let waiting = host.mail(for: app).last { $0.draft.topic == NotificationTopic.protectedData.rawValue }
        guard let waiting, !waiting.isInFlight, waiting.draft.message == opposite else { return false }
        host.acknowledged(waiting.id, by: app)
        return true
    }

    /// Notifies an app that its protected folder is about to be locked, or was unlocked, whether or not it subscribes.
    package func tellProtectedData(_ isAvailable: Bool, to app: AppRuntime) {
        let going = Message.protectedDataWillBecomeUnavailable
        let coming = Message.protectedDataDidBecomeAvailable
        let (message, opposite) = isAvailable ? (coming, going) : (going, coming)
        guard app.run.tree != nil, machine(app).isAlive, hears(app, message), !cancels(opposite.rawValue, app) else {
            return
        }
        let topic = NotificationTopic.protectedData
        let mail = MailDraft(topic: topic.rawValue, message: message.rawValue, coalescing: .latest, sender: "torpord")
        tell(app, topic, mail, isAvailable ? "the unlock of protected data" : "the lock of protected data")
    }

    /// Whether the app runs, subscribes to the topic, and can receive the message, through its delegate or as a signal.
    func hears(_ app: AppRuntime, _ topic: NotificationTopic, _ message: String) -> Bool {
        guard app.run.tree != nil, app.specification.notifications.contains(topic),
            let message = Message(rawValue: message), machine(app).isAlive
        else { return false }
        return hears(app, message)
    }
}
