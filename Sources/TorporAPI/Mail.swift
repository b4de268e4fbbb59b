// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The parameters of Post: a message for an app.
public struct PostRequest: Hashable, Sendable {
    /// The name of the receiving app.
    public var app: String
    /// The message's topic, which apps subscribe to.
    public var topic: String
    /// The message's content: any JSON.
    public var payload: JSON = .null
    /// How to merge the message with queued messages of the same topic: `all`, `latest`, `count`, `merge` or `net`;
    /// nil for the app's setting for the topic.
    public var coalesce: String?
    /// Queued messages are merged with this message only if they have the same key.
    public var key: String?
    /// Whether the message wakes the app; nil for the app's setting for the topic.
    public var urgent: Bool?
    /// The name of the sender; nil if the caller is the sender.
    public var sender: String?
    /// Whether the message was pushed from outside the machine: the app then gets it as didReceiveRemoteNotification.
    public var remote = false
    /// Whether to refuse the message if several machines can own the app and this machine does not own it.
    public var owned = false
    /// Makes the request idempotent: torpord posts the message once, however often it receives the same token.
    public var token: RequestToken?

    /// Sets the required fields; the others keep their defaults.
    public init(app: String, topic: String) {
        self.app = app
        self.topic = topic
    }

    init(fields: Fields) throws(FieldError) {
        app = try fields.string("app")
        topic = try fields.string("topic")
        payload = fields["payload"] ?? .null
        coalesce = try fields.optionalString("coalesce")
        key = try fields.optionalString("key")
        urgent = try fields.optionalBool("urgent")
        sender = try fields.optionalString("sender")
        remote = try fields.optionalBool("remote") ?? false
        owned = try fields.optionalBool("owned") ?? false
        token = try fields.optionalToken("token")
    }

    var parameters: JSON {
        var object: JSONObject = ["app": .string(app), "topic": .string(topic)]
        if !payload.isNull { object["payload"] = payload }
        if let coalesce { object["coalesce"] = .string(coalesce) }
        if let key { object["key"] = .string(key) }
        if let urgent { object["urgent"] = .bool(urgent) }
        if let sender { object["sender"] = .string(sender) }
        if remote { object["remote"] = true }
        if owned { object["owned"] = true }
        if let token { object["token"] = .string(token.text) }
        return .object(object)
    }
}

/// The outcome of a post.
public struct PostResult: Hashable, Sendable {
    /// The number of the queued message; nil if no message is queued now (`cancelled`), or if the message was posted
    /// before (`repeated`).
    public var id: Int64?
    /// What became of the message: `added`; `changed` (merged with a queued message); `cancelled` (it and a queued
    /// message cancelled each other); or `repeated` (torpord had received this request before).
    public var change: String
    /// What happens to the message: `told` (the app runs and receives it now), `woken` (torpord wakes the app),
    /// `waits` (it is queued) or `held-back`. Of a message that was posted before: `waits`, or `told` if it no longer does.
    public var outcome: String
    /// The reason for the outcome `held-back`, or why an app that runs hangs or is not told, a sentence without the
    /// app's name.
    public var message: String?

    /// Memberwise initializer.
    public init(id: Int64?, change: String, outcome: String, message: String? = nil) {
        self.id = id
        self.change = change
        self.outcome = outcome
        self.message = message
    }

    /// Decodes the reply; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        id = try fields.optionalInt("id")
        change = try fields.string("change")
        outcome = try fields.string("outcome")
        message = try fields.optionalString("message")
    }

    /// Encodes the reply.
    public var json: JSON {
        [
            "id": .optional(id), "change": .string(change), "outcome": .string(outcome),
            "message": .optional(message),
        ]
    }
}

/// A message that is queued for an app, or is being delivered.
public struct MailInfo: Hashable, Sendable {
    /// The message's number; later messages have greater numbers.
    public var id: Int64
    /// The message's topic.
    public var topic: String
    /// The name of the lifecycle message by which the app receives this message, such as `didReceiveNotification`.
    public var name: String
    /// The key that the message was posted with: only messages of its topic with the same key are merged with it. Nil
    /// for none.
    public var key: String?
    /// The message's content: any JSON.
    public var payload: JSON
    /// The name of the message's sender.
    public var sender: String
    /// How many posted messages were merged into this message.
    public var count: Int64
    /// When the first of the merged messages was posted, in microseconds since 1970.
    public var firstAt: Int64
    /// When the last of the merged messages was posted, microseconds since 1970.
    public var lastAt: Int64
    /// How the app is woken for the message: `background` or `foreground`; nil if it is not woken.
    public var wake: String?
    /// Whether the message was delivered to the app, but not answered yet.
    public var inFlight = false
    /// The number of runs of the app in which the message was delivered and not answered, including the present run.
    public var attempts: Int64 = 0

    /// Creates a value. Fields without a parameter here keep their defaults, and can be set afterwards.
    public init(
        id: Int64,
        topic: String,
        name: String,
        key: String? = nil,
        payload: JSON,
        sender: String,
        count: Int64,
        firstAt: Int64,
        lastAt: Int64
    ) {
        self.id = id
        self.topic = topic
        self.name = name
        self.key = key
        self.payload = payload
        self.sender = sender
        self.count = count
        self.firstAt = firstAt
        self.lastAt = lastAt
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        id = try fields.int("id")
        topic = try fields.string("topic")
        name = try fields.string("name")
        key = try fields.optionalString("key")
        payload = fields["payload"] ?? .null
        sender = try fields.optionalString("sender") ?? ""
        count = try fields.optionalInt("count") ?? 1
        firstAt = try fields.int("first_at")
        lastAt = try fields.int("last_at")
        wake = try fields.optionalString("wake")
        inFlight = try fields.optionalBool("in_flight") ?? false
        attempts = try fields.optionalInt("attempts") ?? 0
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "id": .int(id), "topic": .string(topic), "name": .string(name), "key": .optional(key), "payload": payload,
            "sender": .string(sender), "count": .int(count), "first_at": .int(firstAt), "last_at": .int(lastAt),
            "wake": .optional(wake), "in_flight": .bool(inFlight),
            "attempts": .int(attempts),
        ]
    }
}

/// The parameters of Mailbox, which lists the messages queued for an app.
public struct MailboxRequest: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// Whether to remove the returned messages from the queue.
    public var take = false
    /// The numbers of messages to remove; only these are returned.
    public var drop: [Int64] = []
    /// Only messages with greater numbers are returned; nil for all.
    public var after: Int64?

    /// A request that removes nothing.
    public init(app: String) { self.app = app }

    init(fields: Fields) throws(FieldError) {
        app = try fields.string("app")
        take = try fields.optionalBool("take") ?? false
        drop = try fields.integers("drop")
        after = try fields.optionalInt("after")
    }

    var parameters: JSON {
        var object: JSONObject = ["app": .string(app)]
        if take { object["take"] = true }
        if !drop.isEmpty { object["drop"] = .array(drop.map { .int($0) }) }
        if let after { object["after"] = .int(after) }
        return .object(object)
    }
}

/// The messages queued for an app, and the limits of the queue.
public struct MailboxStatus: Hashable, Sendable {
    /// The messages that are queued, or that this call removed; the oldest first.
    public var mail: [MailInfo]
    /// The maximum number of queued messages.
    public var limit: Int64
    /// The size of all queued messages, in bytes.
    public var bytes: Int64
    /// The maximum size of all queued messages, in bytes; nil for no limit.
    public var bytesLimit: Int64?
    /// The number of messages to the app that torpord no longer delivers.
    public var unhandled: Int64 = 0
    /// Whether there are later messages, for which the reply has no room.
    public var hasMore = false

    /// Creates a value. Fields without a parameter here keep their defaults, and can be set afterwards.
    public init(mail: [MailInfo], limit: Int64, bytes: Int64, bytesLimit: Int64?) {
        self.mail = mail
        self.limit = limit
        self.bytes = bytes
        self.bytesLimit = bytesLimit
    }

    /// Decodes the reply; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        mail = try fields.list("mail") { json throws(FieldError) in try MailInfo(json: json) }
        limit = try fields.int("limit")
        bytes = try fields.int("bytes")
        bytesLimit = try fields.optionalInt("bytes_limit")
        unhandled = try fields.optionalInt("unhandled") ?? 0
        hasMore = try fields.optionalBool("more") ?? false
    }

    /// Encodes the reply.
    public var json: JSON {
        [
            "mail": .array(mail.map(\.json)), "limit": .int(limit), "bytes": .int(bytes),
            "bytes_limit": .optional(bytesLimit), "unhandled": .int(unhandled), "more": .bool(hasMore),
        ]
    }
}

/// The parameters of Take in `io.torpor.App`, with which an app dequeues its messages.
public struct TakeRequest: Hashable, Sendable {
    /// The maximum number of messages to return; nil for all.
    public var max: Int64?
    /// Whether the returned messages stay queued until a later call lists their numbers in `done`.
    public var keep = false
    /// The numbers of messages that were returned before with `keep`, and that the app is done with.
    public var done: [Int64] = []
    /// The numbers of the messages to return; empty for all.
    public var only: [Int64] = []

    /// A request that takes all messages.
    public init() {}

    init(fields: Fields) throws(FieldError) {
        max = try fields.optionalInt("max")
        if let max, max < 0 { throw FieldError(field: "max", problem: "must not be negative") }
        keep = try fields.optionalBool("keep") ?? false
        done = try fields.integers("done")
        only = try fields.integers("only")
    }

    var parameters: JSON {
        var object: JSONObject = [:]
        if let max { object["max"] = .int(max) }
        if keep { object["keep"] = true }
        if !done.isEmpty { object["done"] = .array(done.map { .int($0) }) }
        if !only.isEmpty { object["only"] = .array(only.map { .int($0) }) }
        return .object(object)
    }
}

/// The parameters of Subscribe in `io.torpor.App`. They correspond to an entry of `topics` in the app's configuration.
public struct SubscribeRequest: Hashable, Sendable {
    /// The topic, or a pattern of topics.
    public var topic: String
    /// How to merge queued messages of the topic: `all`, `latest`, `count`, `merge` or `net`.
    public var coalesce: String?
    /// Whether each message wakes the app.
    public var urgent: Bool?
    /// How messages wake the app: `background`, `foreground` or `none`.
    public var wake: String?
    /// Whether messages stay queued until the app takes them.
    public var keep: Bool?
    /// Whether to end the subscription.
    public var end = false

    /// Sets the topic; the other fields keep their defaults.
    public init(topic: String) { self.topic = topic }

    init(fields: Fields) throws(FieldError) {
        topic = try fields.string("topic")
        coalesce = try fields.optionalString("coalesce")
        urgent = try fields.optionalBool("urgent")
        wake = try fields.optionalString("wake")
        keep = try fields.optionalBool("keep")
        end = try fields.optionalBool("end") ?? false
    }

    var parameters: JSON {
        var object: JSONObject = ["topic": .string(topic)]
        if let coalesce { object["coalesce"] = .string(coalesce) }
        if let urgent { object["urgent"] = .bool(urgent) }
        if let wake { object["wake"] = .string(wake) }
        if let keep { object["keep"] = .bool(keep) }
        if end { object["end"] = true }
        return .object(object)
    }
}

extension Fields {
    /// Reads an array of integers; an absent array is empty.
    func integers(_ name: String) throws(FieldError) -> [Int64] {
        var integers: [Int64] = []
        for element in try array(name) {
            guard let integer = element.intValue else {
                throw FieldError(field: name, problem: "must be an array of integers")
            }
            integers.append(integer)
        }
        return integers
    }
}
