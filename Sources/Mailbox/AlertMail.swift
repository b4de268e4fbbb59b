// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// Messages to apps about their alerts: mail with its own topic, to which clients may not post.
public enum AlertMail {
    /// The topic.
    public static let topic = "torpor.alerts"

    /// An alert came while the app was in the foreground, or a person answered it.
    ///
    /// - Parameters:
    ///   - number: the number of the alert, so that a repeated one is not told twice.
    ///   - alert: the app's name for it.
    ///   - scheduledAt: for when it was scheduled, microseconds since 1970.
    ///   - payload: what the app gave with it.
    ///   - action: what the person chose; nil if nobody was asked.
    ///   - activationToken: what the window manager wants to see before it raises the app's window.
    public static func received(
        as message: String,
        number: Int64,
        alert: String,
        scheduledAt: Int64,
        payload: JSON,
        action: String? = nil,
        activationToken: String? = nil
    ) -> MailDraft {
        let content: JSON = [
            "alert": .string(alert), "scheduled_at": .int(scheduledAt), "payload": payload,
            "action": .optional(action), "activation_token": .optional(activationToken),
        ]
        var draft = MailDraft(
            topic: topic,
            message: message,
            payload: content,
            coalescing: .latest,
            key: action == nil ? "\(number)" : "\(number) answer",
            sender: "torpord"
        )
        draft.isOwnEvent = true
        return draft
    }
}
