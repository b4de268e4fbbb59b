// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The parameters of SetActivity: what a user is doing in the app now.
public struct SetActivityRequest: Hashable, Sendable {
    /// The kind of the activity, such as `org.example.note`.
    public var type: String
    /// The activity's title in lists for users; nil for none.
    public var title: String?
    /// Data for the app that continues the activity: an object; null for none.
    public var payload: JSON = .null
    /// A URL that identifies what the user works on, such as a web page; nil for none.
    public var url: String?
    /// Whether the activity can only be continued with the state that the app has saved. If so, an export of the
    /// activity contains that state.
    public var needsState = false

    /// An activity without a title.
    public init(type: String) { self.type = type }

    init(fields: Fields) throws(FieldError) {
        type = try fields.string("type")
        title = try fields.optionalString("title")
        payload = fields["payload"] ?? .null
        url = try fields.optionalString("url")
        needsState = try fields.optionalBool("state") ?? false
    }

    var parameters: JSON {
        var object: JSONObject = ["type": .string(type)]
        if let title { object["title"] = .string(title) }
        if !payload.isNull { object["payload"] = payload }
        if let url { object["url"] = .string(url) }
        if needsState { object["state"] = true }
        return .object(object)
    }
}

/// The current activity of an app.
public struct ActivityInfo: Hashable, Sendable {
    /// The app's name.
    public var app: String
    /// The kind of the activity, such as `org.example.note`.
    public var type: String
    /// The activity's title in lists for users; empty for none.
    public var title: String
    /// When the activity became the app's current one, microseconds since 1970.
    public var since: Int64
    /// A URL that identifies what the user works on, such as a web page; nil for none.
    public var url: String?
    /// Whether the activity can only be continued with the state that the app has saved.
    public var needsState: Bool
    /// Data for the app that continues the activity; null in a list of the activities of all apps.
    public var payload: JSON = .null

    /// An activity without its payload.
    public init(app: String, type: String, title: String, since: Int64, url: String?, needsState: Bool) {
        (self.app, self.type, self.title) = (app, type, title)
        (self.since, self.url, self.needsState) = (since, url, needsState)
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        app = try fields.string("app")
        type = try fields.string("type")
        title = try fields.string("title")
        since = try fields.int("since")
        url = try fields.optionalString("url")
        needsState = try fields.bool("state")
        payload = fields["payload"] ?? .null
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "type": .string(type), "title": .string(title), "since": .int(since),
            "url": .optional(url), "state": .bool(needsState), "payload": payload,
        ]
    }
}

/// The parameters of ContinueActivity.
public struct ContinueActivityRequest: Hashable, Sendable {
    /// The kind of the activity.
    public var type: String
    /// The app whose activity is continued; nil for the latest activity of this type.
    public var from: String?
    /// The app that continues the activity; nil for the best match.
    public var to: String?
    /// The activity itself, if it comes from another machine; nil for an activity of this machine. If it is set,
    /// ``from`` is the name of the app on the other machine.
    public var given: SetActivityRequest?
    /// Whether to reply only which app would continue the activity, without starting that.
    public var asksOnly = false
    /// True to reply when the app has continued the activity; false to reply at once.
    public var wait = true
    /// The longest time to wait, in milliseconds.
    public var timeoutMilliseconds: Int64?
    /// Makes the request idempotent: torpord carries it out once, however often it receives the same token.
    public var token: RequestToken?

    /// A request with default options.
    public init(type: String) { self.type = type }

    init(fields: Fields) throws(FieldError) {
        type = try fields.string("type")
        from = try fields.optionalString("from")
        to = try fields.optionalString("to")
        if let json = fields["activity"], !json.isNull {
            var object = json.objectValue ?? [:]
            object["type"] = .string(type)
            given = try SetActivityRequest(fields: Fields(.object(object)))
        }
        asksOnly = try fields.optionalBool("ask") ?? false
        wait = try fields.optionalBool("wait") ?? true
        timeoutMilliseconds = try fields.optionalInt("timeout_ms")
        if let timeoutMilliseconds, timeoutMilliseconds < 0 {
            throw FieldError(field: "timeout_ms", problem: "must not be negative")
        }
        token = try fields.optionalToken("token")
    }

    var parameters: JSON {
        var object: JSONObject = ["type": .string(type)]
        if let from { object["from"] = .string(from) }
        if let to { object["to"] = .string(to) }
        if let given {
            var activity = given.parameters.objectValue ?? [:]
            activity["type"] = nil
            object["activity"] = .object(activity)
        }
        if asksOnly { object["ask"] = true }
        if !wait { object["wait"] = false }
        if let timeoutMilliseconds { object["timeout_ms"] = .int(timeoutMilliseconds) }
        if let token { object["token"] = .string(token.text) }
        return .object(object)
    }
}
