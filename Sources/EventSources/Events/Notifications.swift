// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventLoop
import Lifecycle
package import Mailbox

/// What apps are told of the machine and its session. It wakes nobody: who runs hears it at once, who is suspended before
/// anything else when it wakes, and who is not running finds it so when it is launched.
package final class Notifications: EventRoom {
    package unowned(unsafe) let wakes: Wakes

    package init(_ wakes: Wakes) { self.wakes = wakes }

    /// Tells all apps that hear it.
    ///
    /// - Parameter text: what happened, for people.
    package func tell(_ topic: NotificationTopic, _ mail: MailDraft, _ text: @autoclosure () -> String) {
        for app in apps where hears(app, topic, mail.message) { tell(app, topic, mail, text()) }
    }

    /// Tells one app, if it hears it.
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

    /// The session was locked, or unlocked: what its user's key opens cannot be read, or can be again.
    ///
    /// - Parameter isFirst: it is what was found at the start: apps that an earlier torpord told know it.
    package func tellLock(_ isLocked: Bool, isFirst: Bool) {
        let names = [Message.protectedDataWillBecomeUnavailable, .protectedDataDidBecomeAvailable].map(\.rawValue)
        let (message, opposite) = isLocked ? (names[0], names[1]) : (names[1], names[0])
        let topic = NotificationTopic.protectedData
        let mail = MailDraft(topic: topic.rawValue, message: message, coalescing: .latest, sender: "logind")
        for app in apps where hears(app, topic, message) {
            if isFirst, machine(app).isCovered == isLocked { continue }
            // Locked and unlocked again while it slept is nothing.
            let waiting = host.mail(for: app).last { $0.draft.topic == topic.rawValue }
            if let waiting, !waiting.isInFlight, waiting.draft.message == opposite {
                host.acknowledged(waiting.id, by: app)
            } else {
                tell(app, topic, mail, isLocked ? "the locking of the session" : "the unlocking of the session")
            }
        }
    }

    /// Whether the app lives, wants to know of it, and has a delegate or a signal for the message.
    func hears(_ app: AppRuntime, _ topic: NotificationTopic, _ message: String) -> Bool {
        guard app.run.tree != nil, app.specification.notifications.contains(topic),
            let message = Message(rawValue: message), machine(app).isAlive
        else { return false }
        return hears(app, message)
    }
}
