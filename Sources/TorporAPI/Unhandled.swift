// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A message that no app handled, or that crashed the app that received it.
public struct UnhandledInfo: Hashable, Sendable {
    /// The message's number.
    public var id: Int64
    /// The app that the message was first sent to.
    public var app: String
    /// The message's topic.
    public var topic: String
    /// The name of the lifecycle message by which the app received this message, such as `didReceiveEvent`.
    public var name: String
    /// The key that the message was posted with: only messages of its topic with the same key were merged with it. Nil
    /// for none.
    public var key: String?
    /// The message's content; nil if the content was not requested.
    public var payload: JSON?
    /// The name of the message's sender.
    public var sender: String
    /// How many posted messages were merged into this message.
    public var count: Int64
    /// When the first of the merged messages was posted, microseconds since 1970.
    public var firstAt: Int64
    /// When the last of the merged messages was posted, microseconds since 1970.
    public var lastAt: Int64
    /// When torpord stopped delivering the message, microseconds since 1970.
    public var since: Int64
    /// Why torpord stopped delivering the message: `unhandled`, `crashed`, `unknown-message` or `unreadable`.
    public var why: String
    /// The number of runs of apps in which the message was delivered.
    public var attempts: Int64
    /// The number of the last run that crashed while the app handled the message. The termination report of the crash
    /// has the same number.
    public var incarnation: Int64?
    /// The apps that received the message and did not handle it, in the order in which they received it.
    public var asked: [String]

    /// Sets the required fields; the others keep their defaults.
    public init(id: Int64, app: String, topic: String, name: String, sender: String, since: Int64, why: String) {
        self.id = id
        self.app = app
        self.topic = topic
        self.name = name
        self.sender = sender
        self.since = since
        self.why = why
        count = 1
        firstAt = since
        lastAt = since
        attempts = 0
        asked = []
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            id: try fields.int("id"),
            app: try fields.string("app"),
            topic: try fields.string("topic"),
            name: try fields.string("name"),
            sender: try fields.optionalString("sender") ?? "",
            since: try fields.int("since"),
            why: try fields.string("why")
        )
        key = try fields.optionalString("key")
        payload = fields["payload"]
        count = try fields.optionalInt("count") ?? 1
        firstAt = try fields.int("first_at")
        lastAt = try fields.int("last_at")
        attempts = try fields.optionalInt("attempts") ?? 0
        incarnation = try fields.optionalInt("incarnation")
        asked = try fields.strings("asked")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        var object: JSONObject = [
            "id": .int(id), "app": .string(app), "topic": .string(topic), "name": .string(name), "key": .optional(key),
            "sender": .string(sender), "count": .int(count), "first_at": .int(firstAt), "last_at": .int(lastAt),
            "since": .int(since), "why": .string(why), "attempts": .int(attempts),
            "incarnation": .optional(incarnation), "asked": .strings(asked),
        ]
        if let payload { object["payload"] = payload }
        return .object(object)
    }
}

/// The parameters of Unhandled, which lists messages that no app handled.
public struct UnhandledRequest: Hashable, Sendable {
    /// List only messages to these apps: names, patterns or `tag:NAME`; empty for all.
    public var apps: [String] = []
    /// List only the messages with these numbers; empty for all.
    public var ids: [Int64] = []
    /// Whether to include the contents of the messages.
    public var payload = false

    /// A request for all messages, without their contents.
    public init() {}

    init(fields: Fields) throws(FieldError) {
        apps = try fields.strings("apps")
        ids = try fields.integers("ids")
        payload = try fields.optionalBool("payload") ?? false
    }

    var parameters: JSON {
        var object: JSONObject = [:]
        if !apps.isEmpty { object["apps"] = .strings(apps) }
        if !ids.isEmpty { object["ids"] = .array(ids.map { .int($0) }) }
        if payload { object["payload"] = true }
        return .object(object)
    }
}

/// The parameters of ReplayUnhandled.
public struct ReplayRequest: Hashable, Sendable {
    /// The number of the message.
    public var id: Int64
    /// The app that receives the message; nil for the app that it was first sent to.
    public var app: String?

    /// Memberwise initializer.
    public init(id: Int64, app: String? = nil) {
        self.id = id
        self.app = app
    }

    init(fields: Fields) throws(FieldError) {
        id = try fields.int("id")
        app = try fields.optionalString("app")
    }

    var parameters: JSON {
        var object: JSONObject = ["id": .int(id)]
        if let app { object["app"] = .string(app) }
        return .object(object)
    }
}

/// The parameters of DropUnhandled.
public struct DropRequest: Hashable, Sendable {
    /// Discard all messages of these apps: names, patterns or `tag:NAME`.
    public var apps: [String] = []
    /// Discard the messages with these numbers.
    public var ids: [Int64] = []

    /// Memberwise initializer.
    public init(apps: [String] = [], ids: [Int64] = []) {
        self.apps = apps
        self.ids = ids
    }

    init(fields: Fields) throws(FieldError) {
        apps = try fields.strings("apps")
        ids = try fields.integers("ids")
        guard apps.isEmpty != ids.isEmpty else {
            throw FieldError(field: "ids", problem: "or apps must be given, and not both")
        }
    }

    var parameters: JSON {
        var object: JSONObject = [:]
        if !apps.isEmpty { object["apps"] = .strings(apps) }
        if !ids.isEmpty { object["ids"] = .array(ids.map { .int($0) }) }
        return .object(object)
    }
}
