// SPDX-License-Identifier: Apache-2.0

/// Messages of which only a few may wait for an app, besides the limits of its mailbox.
public enum ScarceMail: Sendable, Hashable {
    case urls
    case activities

    /// The kind of the message; nil if only the limits of the mailbox apply to it.
    init?(_ draft: MailDraft) {
        if draft.topic == OpenedURL.topic {
            self = .urls
        } else if draft.message == ActivityMail.continuing {
            self = .activities
        } else {
            return nil
        }
    }

    /// What the messages are called in sentences.
    var name: String {
        switch self {
        case .urls: "URLs"
        case .activities: "activities"
        }
    }

    /// The most messages of this kind that may wait for an app.
    public var mostWaiting: Int {
        switch self {
        case .urls: OpenedURL.mostWaiting
        case .activities: ActivityMail.mostWaiting
        }
    }
}
