// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// Messages to apps about their alerts: mail with its own topic, to which clients may not post.
public enum AlertMail {
    /// The topic of messages about alerts.
    public static let topic = "torpor.alerts"

    /// Creates the message that an alert came while the app was in the foreground, or that a user answered an alert.
    ///
    /// - Parameters:
    ///   - number: the number of the alert. It is part of the key, so that a message that is sent twice arrives once.
    ///   - alert: the name that the app gave the alert.
    ///   - scheduledAt: the time for which the alert was scheduled, in microseconds since 1970.
    ///   - payload: the data that the app gave with the alert.
    ///   - action: the action that the user chose; nil if no user was asked.
    ///   - activationToken: the token that the window manager requires before it raises the app's window.
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
