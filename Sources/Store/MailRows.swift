// SPDX-License-Identifier: Apache-2.0

/// Something that waits to be told to an app.
public struct StoredMail: Sendable, Hashable {
    /// Its number, which no other mail has.
    public var id: Int64
    /// The app's name.
    public var app: String
    /// What it is about.
    public var topic: String
    /// The name of the message that a delegate gets.
    public var message: String
    /// What it says, a JSON text.
    public var payload: String
    /// How it becomes one with others of its topic, one word.
    public var coalescing: String
    /// What of the topic it is about.
    public var key: String?
    /// Who sent it.
    public var sender: String
    /// How many became one in it.
    public var count: Int64 = 1
    /// When the first of them came, microseconds since 1970.
    public var firstAt: Int64
    /// When the last of them came, microseconds since 1970.
    public var lastAt: Int64
    /// How the app is woken for it, one word; nil for not at all.
    public var wake: String?
    /// How often it was told for nothing, and who was told it before.
    public var standing = MailStanding()

    /// Makes one from what every mail has.
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

/// What has become of mail so far: what changes each time when it is told.
public struct MailStanding: Sendable, Hashable {
    /// In how many runs of the app it was told without being answered.
    public var attempts: Int64 = 0
    /// The run in which it is being told; nil while it waits.
    public var run: Int64?
    /// Who was asked before, and who is still to be asked, a JSON text; nil where nobody was.
    public var chain: String?

    /// That of mail that was never told.
    public init() {}
}

/// Something that nobody handled, or that ended whoever was told it.
public struct StoredUnhandled: Sendable, Hashable {
    /// What it is. Its app is the one that it was sent to first.
    public var mail: StoredMail
    /// Why nobody is told it any more, one word.
    public var why: String
    /// Since when, microseconds since 1970.
    public var at: Int64
    /// The run that it ended last, counted from 1; nil where it ended none.
    public var run: Int64?

    /// Makes one from its parts.
    public init(mail: StoredMail, why: String, at: Int64, run: Int64? = nil) {
        self.mail = mail
        self.why = why
        self.at = at
        self.run = run
    }

    /// About what it takes, bytes.
    public var size: Int64 {
        let texts = mail.app.utf8.count + mail.topic.utf8.count + mail.sender.utf8.count + mail.payload.utf8.count
        return Int64(160 + texts + (mail.key?.utf8.count ?? 0) + (mail.standing.chain?.utf8.count ?? 0))
    }
}

/// Which of what nobody handled is wanted.
public struct UnhandledQuery: Sendable, Hashable {
    /// Only of this app; nil for all.
    public var app: String?
    /// Only these; nil for all.
    public var ids: [Int64]?
    /// With what it says. Without, the payload is empty.
    public var hasPayload = true
    /// Without payloads, that of these topics all the same: they are short, and tell one from the other.
    public var topicsWithPayload: [String] = []
    /// At most so many, the newest.
    public var limit = Int.max

    /// All.
    public init() {}
}

/// What is known of something that happens to an app again and again, such as a timer.
public struct StoredSchedule: Sendable, Hashable {
    /// Whose, and which.
    public struct Key: Sendable, Hashable {
        /// The app's name.
        public var app: String
        /// What it is called among the app's.
        public var name: String

        /// Makes one from its parts.
        public init(app: String, name: String) {
            self.app = app
            self.name = name
        }
    }

    /// Whose, and which.
    public var key: Key
    /// When it happened last, microseconds since 1970; nil for never.
    public var lastFired: Int64?
    /// What was learned of it, a JSON text.
    public var learned: String?

    /// Makes one from its parts.
    public init(app: String, name: String, lastFired: Int64? = nil, learned: String? = nil) {
        key = Key(app: app, name: name)
        self.lastFired = lastFired
        self.learned = learned
    }
}

/// That an app asked for a topic when it ran.
public struct StoredSubscription: Sendable, Hashable {
    /// Whose, and which.
    public struct Key: Sendable, Hashable {
        /// The app's name.
        public var app: String
        /// The topic, or a pattern.
        public var topic: String

        /// Makes one from its parts.
        public init(app: String, topic: String) {
            self.app = app
            self.topic = topic
        }
    }

    /// Whose, and which.
    public var key: Key
    /// How it wants to hear of it, a JSON text.
    public var rule: String

    /// Makes one from its parts.
    public init(app: String, topic: String, rule: String) {
        key = Key(app: app, topic: topic)
        self.rule = rule
    }
}
