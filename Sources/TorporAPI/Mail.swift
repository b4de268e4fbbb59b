// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The parameters of Post: something that an app shall be told.
public struct PostRequest: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// What it is about.
    public var topic: String
    /// What it says: anything that JSON has.
    public var payload: JSON = .null
    /// `all`, `latest`, `count`, `merge` or `net`; nil as the app's topic says.
    public var coalesce: String?
    /// What of the topic it is about: only what has the same key becomes one.
    public var key: String?
    /// Whether it wakes the app; nil as the app's topic says.
    public var urgent: Bool?
    /// Whom it comes from, where that is somebody else than the caller.
    public var sender: String?
    /// It was pushed from outside: the app hears it as didReceiveRemoteNotification.
    public var remote = false
    /// Names the request.
    public var token: RequestToken?

    /// Makes one from its parts.
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
        if let token { object["token"] = .string(token.text) }
        return .object(object)
    }
}

/// What became of a post.
public struct PostResult: Hashable, Sendable {
    /// The number of what waits; nil where that is nothing any more, or was asked for before.
    public var id: Int64?
    /// `added`, `changed` (it became one with what waited), `cancelled` (together with what waited it is nothing) or
    /// `repeated` (it was taken before).
    public var change: String
    /// `told` (the app runs and is being told), `woken`, `waits`, or `held-back`.
    public var outcome: String
    /// With `held-back`, why, in a sentence without the app's name.
    public var message: String?

    /// Makes one from its parts.
    public init(id: Int64?, change: String, outcome: String, message: String? = nil) {
        self.id = id
        self.change = change
        self.outcome = outcome
        self.message = message
    }

    /// Reads it from a reply.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        id = try fields.optionalInt("id")
        change = try fields.string("change")
        outcome = try fields.string("outcome")
        message = try fields.optionalString("message")
    }

    /// It as a reply.
    public var json: JSON {
        [
            "id": .optional(id), "change": .string(change), "outcome": .string(outcome),
            "message": .optional(message),
        ]
    }
}

/// Something that waits to be told to an app, or is being told.
public struct MailInfo: Hashable, Sendable {
    /// Its number, which grows from one to the next.
    public var id: Int64
    /// What it is about.
    public var topic: String
    /// The message that it is told as.
    public var name: String
    /// What of the topic it is about.
    public var key: String?
    /// What it says.
    public var payload: JSON
    /// Whom it comes from.
    public var sender: String
    /// How many became one in it.
    public var count: Int64
    /// When the first of them came, microseconds since 1970.
    public var firstAt: Int64
    /// When the last of them came, microseconds since 1970.
    public var lastAt: Int64
    /// How the app is woken for it: `background` or `foreground`; nil for not at all.
    public var wake: String?
    /// It was told, and is not answered.
    public var inFlight = false

    /// Makes one from its parts.
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

    /// Reads it from its object.
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
    }

    /// It as an object.
    public var json: JSON {
        [
            "id": .int(id), "topic": .string(topic), "name": .string(name), "key": .optional(key), "payload": payload,
            "sender": .string(sender), "count": .int(count), "first_at": .int(firstAt), "last_at": .int(lastAt),
            "wake": .optional(wake), "in_flight": .bool(inFlight),
        ]
    }
}

/// The parameters of Mailbox.
public struct MailboxRequest: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// What is returned does not wait any more.
    public var take = false
    /// The numbers of what does not wait any more; only that is returned.
    public var drop: [Int64] = []

    /// Makes one that only looks.
    public init(app: String) { self.app = app }

    init(fields: Fields) throws(FieldError) {
        app = try fields.string("app")
        take = try fields.optionalBool("take") ?? false
        drop = try fields.integers("drop")
    }

    var parameters: JSON {
        var object: JSONObject = ["app": .string(app)]
        if take { object["take"] = true }
        if !drop.isEmpty { object["drop"] = .array(drop.map { .int($0) }) }
        return .object(object)
    }
}

/// What waits for an app, and how much may.
public struct MailboxStatus: Hashable, Sendable {
    /// What waits, or was taken; the first first.
    public var mail: [MailInfo]
    /// How many may wait.
    public var limit: Int64
    /// Bytes of what waits.
    public var bytes: Int64
    /// Bytes that may wait; nil for any number.
    public var bytesLimit: Int64?

    /// Makes one from its parts.
    public init(mail: [MailInfo], limit: Int64, bytes: Int64, bytesLimit: Int64?) {
        self.mail = mail
        self.limit = limit
        self.bytes = bytes
        self.bytesLimit = bytesLimit
    }

    /// Reads it from a reply.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        mail = try fields.list("mail") { json throws(FieldError) in try MailInfo(json: json) }
        limit = try fields.int("limit")
        bytes = try fields.int("bytes")
        bytesLimit = try fields.optionalInt("bytes_limit")
    }

    /// It as a reply.
    public var json: JSON {
        [
            "mail": .array(mail.map(\.json)), "limit": .int(limit), "bytes": .int(bytes),
            "bytes_limit": .optional(bytesLimit),
        ]
    }
}

/// The parameters of an app's own Take.
public struct TakeRequest: Hashable, Sendable {
    /// At most so many; nil for all.
    public var max: Int64?
    /// What is returned waits on, until its number is among `done`.
    public var keep = false
    /// The numbers of what was taken before and is done.
    public var done: [Int64] = []

    /// One that takes all.
    public init() {}

    init(fields: Fields) throws(FieldError) {
        max = try fields.optionalInt("max")
        if let max, max < 0 { throw FieldError(field: "max", problem: "must not be negative") }
        keep = try fields.optionalBool("keep") ?? false
        done = try fields.integers("done")
    }

    var parameters: JSON {
        var object: JSONObject = [:]
        if let max { object["max"] = .int(max) }
        if keep { object["keep"] = true }
        if !done.isEmpty { object["done"] = .array(done.map { .int($0) }) }
        return .object(object)
    }
}

/// The parameters of an app's own Subscribe: as an entry of `topics` in its configuration.
public struct SubscribeRequest: Hashable, Sendable {
    /// The topic, or a pattern.
    public var topic: String
    /// `all`, `latest`, `count`, `merge` or `net`.
    public var coalesce: String?
    /// Each wakes the app.
    public var urgent: Bool?
    /// `background`, `foreground` or `none`.
    public var wake: String?
    /// It waits until it is taken.
    public var keep: Bool?
    /// The subscription ends.
    public var end = false

    /// Makes one from its parts.
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
    /// An array of integers; absent means empty.
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
