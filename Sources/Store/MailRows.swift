// SPDX-License-Identifier: Apache-2.0

/// A message that is queued for an app.
public struct StoredMail: Sendable, Hashable {
    /// Its unique number.
    public var id: Int64
    /// The app's name.
    public var app: String
    /// Its topic.
    public var topic: String
    /// The name of the delegate's message.
    public var message: String
    /// The content, a JSON text.
    public var payload: String
    /// How it coalesces with others of its topic, one word.
    public var coalescing: String
    /// The key within the topic.
    public var key: String?
    /// The sender.
    public var sender: String
    /// How many messages were coalesced into it.
    public var count: Int64 = 1
    /// When the first of them arrived, microseconds since 1970.
    public var firstAt: Int64
    /// When the last of them arrived, microseconds since 1970.
    public var lastAt: Int64
    /// How it wakes the app, one word; nil: not at all.
    public var wake: String?
    /// Its delivery attempts, and earlier recipients.
    public var standing = MailStanding()

    /// Creates one from what all mail has.
    public init(
        id: Int64,
        app: String,
        topic: String,
        message: String,
        payload: String = "null",
        coalescing: String = "all",
        sender: String = "",
        at: Int64
    ) {
        self.id = id
        self.app = app
        self.topic = topic
        self.message = message
        self.payload = payload
        self.coalescing = coalescing
        self.sender = sender
        firstAt = at
        lastAt = at
    }
}

/// The delivery state of mail, which changes with each attempt.
public struct MailStanding: Sendable, Hashable {
    /// In how many runs of the app it was delivered without an answer.
    public var attempts: Int64 = 0
    /// The run in which it is being delivered; nil while it is queued.
    public var run: Int64?
    /// Which recipients were asked before, and which are next, a JSON text; nil if there are none.
    public var chain: String?

    /// The state of mail that was never delivered.
    public init() {}
}

/// Mail that no app handled, or during which its recipient ended.
public struct StoredUnhandled: Sendable, Hashable {
    /// The mail. `app` is its first recipient.
    public var mail: StoredMail
    /// Why delivery was given up, one word.
    public var why: String
    /// When it was given up, microseconds since 1970.
    public var at: Int64
    /// The last run that ended during its delivery, counted from 1; nil if none did.
    public var run: Int64?

    /// Creates one from its parts.
    public init(mail: StoredMail, why: String, at: Int64, run: Int64? = nil) {
        self.mail = mail
        self.why = why
        self.at = at
        self.run = run
    }

    /// Its approximate size in bytes.
    public var size: Int64 {
        let texts = mail.app.utf8.count + mail.topic.utf8.count + mail.sender.utf8.count + mail.payload.utf8.count
        return Int64(160 + texts + (mail.key?.utf8.count ?? 0) + (mail.standing.chain?.utf8.count ?? 0))
    }
}

/// Selects unhandled mail.
public struct UnhandledQuery: Sendable, Hashable {
    /// Only for this app; nil for all.
    public var app: String?
    /// Only these numbers; nil for all.
    public var ids: [Int64]?
    /// Include the payload; else it is empty.
    public var hasPayload = true
    /// With `hasPayload` false, include it for these topics anyway: theirs is short, and tells messages apart.
    public var topicsWithPayload: [String] = []
    /// The maximum number, newest first.
    public var limit = Int.max

    /// Selects all.
    public init() {}
}

/// The state of a recurring event of an app, such as a timer.
public struct StoredSchedule: Sendable, Hashable {
    /// The app and the event's name.
    public struct Key: Sendable, Hashable {
        /// The app's name.
        public var app: String
        /// The event's name, unique in the app.
        public var name: String

        /// Creates one from its parts.
        public init(app: String, name: String) {
            self.app = app
            self.name = name
        }
    }

    /// The app and the event's name.
    public var key: Key
    /// When it last occurred, microseconds since 1970; nil for never.
    public var lastFired: Int64?
    /// Data learned about it, a JSON text.
    public var learned: String?

    /// Creates one from its parts.
    public init(app: String, name: String, lastFired: Int64? = nil, learned: String? = nil) {
        key = Key(app: app, name: name)
        self.lastFired = lastFired
        self.learned = learned
    }
}

/// A topic that an app has subscribed to while it ran.
public struct StoredSubscription: Sendable, Hashable {
    /// The app and the topic.
    public struct Key: Sendable, Hashable {
        /// The app's name.
        public var app: String
        /// The topic, or a pattern.
        public var topic: String

        /// Creates one from its parts.
        public init(app: String, topic: String) {
            self.app = app
            self.topic = topic
        }
    }

    /// The app and the topic.
    public var key: Key
    /// How to deliver it, a JSON text.
    public var rule: String

    /// Creates one from its parts.
    public init(app: String, topic: String, rule: String) {
        key = Key(app: app, topic: topic)
        self.rule = rule
    }
}
