// SPDX-License-Identifier: Apache-2.0

/// A message that is queued for an app.
public struct StoredMail: Sendable, Hashable {
    /// The message's unique number.
    public var id: Int64
    /// The app's name.
    public var app: String
    /// The message's topic.
    public var topic: String
    /// The name of the lifecycle message by which the app's delegate receives this message, such as `didReceiveEvent`.
    public var message: String
    /// The message's content, a JSON text.
    public var payload: String
    /// How the message is merged with queued messages of its topic, as one word.
    public var coalescing: String
    /// The message's key within the topic; nil for none. A message is merged only with messages that have the same key.
    public var key: String?
    /// The app or program that sent the message.
    public var sender: String
    /// How many posted messages were merged into this message.
    public var count: Int64 = 1
    /// When the first of the merged messages arrived, microseconds since 1970.
    public var firstAt: Int64
    /// When the last of the merged messages arrived, microseconds since 1970.
    public var lastAt: Int64
    /// How the message wakes the app, as one word; nil if it does not wake the app.
    public var wake: String?
    /// The message's delivery attempts, and the recipients to which it was offered before.
    public var standing = MailStanding()

    /// Creates a message from the fields that all messages have.
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

/// The delivery state of a message, which changes with each attempt.
public struct MailStanding: Sendable, Hashable {
    /// How many runs (launches) of the app got the message and ended without answering it.
    public var attempts: Int64 = 0
    /// The number of the run (launch) of the app to which the message is being delivered; nil while it is queued.
    public var run: Int64?
    /// To which recipients the message was offered before, and which come next, as a JSON text. For a message with only
    /// one recipient: the token of the request that posted it, also as a JSON text, or nil.
    public var chain: String?

    /// The state of a message that was never delivered.
    public init() {}
}

/// A message that no app handled, or whose recipient ended during the delivery.
public struct StoredUnhandled: Sendable, Hashable {
    /// The message. Its `app` is the first recipient.
    public var mail: StoredMail
    /// Why torpord gave up delivering the message, as one word.
    public var why: String
    /// When torpord gave up delivering the message, in microseconds since 1970.
    public var at: Int64
    /// The number of the last run (launch) that ended while it had the message, counted from 1; nil if none did.
    public var run: Int64?

    /// Creates an unhandled message from its parts.
    public init(mail: StoredMail, why: String, at: Int64, run: Int64? = nil) {
        self.mail = mail
        self.why = why
        self.at = at
        self.run = run
    }

    /// The approximate size of the message in bytes.
    public var size: Int64 {
        let texts = mail.app.utf8.count + mail.topic.utf8.count + mail.sender.utf8.count + mail.payload.utf8.count
        return Int64(160 + texts + (mail.key?.utf8.count ?? 0) + (mail.standing.chain?.utf8.count ?? 0))
    }
}

/// Selects unhandled mail.
public struct UnhandledQuery: Sendable, Hashable {
    /// Select only messages to this app; nil for all apps.
    public var app: String?
    /// Select only messages with these numbers; nil for all.
    public var ids: [Int64]?
    /// Whether to read the payload; if false, it is empty.
    public var hasPayload = true
    /// Topics whose payloads are read even if `hasPayload` is false, because they are short and users need them to
    /// distinguish the messages.
    public var topicsWithPayload: [String] = []
    /// The maximum number of messages. If more match, the newest are selected.
    public var limit = Int.max

    /// Selects all unhandled mail.
    public init() {}
}
