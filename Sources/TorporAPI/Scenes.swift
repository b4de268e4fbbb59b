// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The parameters of OpenScene.
public struct OpenSceneRequest: Hashable, Sendable {
    /// The name of an app with `scenes`.
    public var template: String
    /// The scene's own name.
    public var name: String
    /// What it is opened with, at the first time; null for nothing.
    public var session: JSON = .null
    /// Launch it into the background.
    public var background = false
    /// For somebody outside who is about to connect to its socket: it is made, and what connects launches it.
    public var remote = false
    /// Reply when it is there; else at once.
    public var wait = true
    /// The longest time to wait.
    public var timeoutMilliseconds: Int64?
    /// Carries the request out once, however often it is asked.
    public var token: RequestToken?

    /// Bytes of a session, serialised.
    public static let longestSession = 4096

    /// Makes one from its parts.
    public init(template: String, name: String) { (self.template, self.name) = (template, name) }

    init(fields: Fields) throws(FieldError) {
        template = try fields.string("template")
        name = try fields.string("name")
        session = fields["session"] ?? .null
        if session != .null {
            guard session.objectValue != nil else { throw FieldError(field: "session", problem: "must be an object") }
            guard session.serialised().count <= Self.longestSession else {
                throw FieldError(field: "session", problem: "must have at most \(Self.longestSession) bytes")
            }
        }
        background = try fields.optionalBool("background") ?? false
        remote = try fields.optionalBool("remote") ?? false
        wait = try fields.optionalBool("wait") ?? true
        timeoutMilliseconds = try fields.optionalInt("timeout_ms")
        if let timeoutMilliseconds, timeoutMilliseconds < 0 {
            throw FieldError(field: "timeout_ms", problem: "must not be negative")
        }
        token = try fields.optionalToken("token")
    }

    var parameters: JSON {
        var object: JSONObject = ["template": .string(template), "name": .string(name)]
        if session != .null { object["session"] = session }
        if background { object["background"] = true }
        if remote { object["remote"] = true }
        if !wait { object["wait"] = false }
        if let timeoutMilliseconds { object["timeout_ms"] = .int(timeoutMilliseconds) }
        if let token { object["token"] = .string(token.text) }
        return .object(object)
    }
}

/// A scene: its session, and where it is.
public struct SceneInfo: Hashable, Sendable {
    /// Its full name; that of an app, except where the scene is inside one.
    public var app: String
    /// The template that it is of, or the app that it is inside.
    public var template: String
    /// Its own name.
    public var name: String
    /// The state of its app, or its own inside an app; `unattached` where it has no process, or is not connected.
    public var state: String
    /// When it was opened first, microseconds since 1970.
    public var openedAt: Int64
    /// When it had a process last, or was opened, microseconds since 1970.
    public var usedAt: Int64
    /// What it was opened with; null for nothing.
    public var session: JSON
    /// When it is discarded by itself, microseconds since 1970.
    public var discardedAt: Int64?
    /// Whether the configuration has no such template any more.
    public var lacksTemplate: Bool
    /// How many processes are in its cgroup, of a connected scene that has one inside its app (`scenes.cgroups`).
    public var processes: Int64?
    /// Whether these are frozen.
    public var isFrozen: Bool?

    /// A scene without a process.
    public static let unattached = "unattached"

    /// Makes one from its parts.
    public init(
        app: String,
        template: String,
        name: String,
        state: String,
        openedAt: Int64,
        usedAt: Int64,
        session: JSON,
        discardedAt: Int64?,
        lacksTemplate: Bool
    ) {
        (self.app, self.template, self.name, self.state) = (app, template, name, state)
        (self.openedAt, self.usedAt, self.session) = (openedAt, usedAt, session)
        (self.discardedAt, self.lacksTemplate) = (discardedAt, lacksTemplate)
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            app: try fields.string("app"),
            template: try fields.string("template"),
            name: try fields.string("name"),
            state: try fields.string("state"),
            openedAt: try fields.int("opened_at"),
            usedAt: try fields.int("used_at"),
            session: fields["session"] ?? .null,
            discardedAt: try fields.optionalInt("discarded_at"),
            lacksTemplate: try fields.bool("lacks_template")
        )
        processes = try fields.optionalInt("processes")
        isFrozen = try fields.optionalBool("frozen")
    }

    /// It as an object.
    public var json: JSON {
        [
            "app": .string(app), "template": .string(template), "name": .string(name), "state": .string(state),
            "opened_at": .int(openedAt), "used_at": .int(usedAt), "session": session,
            "discarded_at": .optional(discardedAt), "lacks_template": .bool(lacksTemplate),
            "processes": .optional(processes), "frozen": .optional(isFrozen),
        ]
    }
}

/// How many scenes an app has inside.
public struct SceneCount: Hashable, Sendable {
    /// How many there are.
    public var sessions: Int64
    /// How many are connected, or about to be.
    public var live: Int64

    /// Makes one from its parts.
    public init(sessions: Int64, live: Int64) { (self.sessions, self.live) = (sessions, live) }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        sessions = try fields.int("sessions")
        live = try fields.int("live")
    }

    /// It as an object.
    public var json: JSON { ["sessions": .int(sessions), "live": .int(live)] }
}

/// A template of scenes, or an app that has scenes inside.
public struct SceneTemplateInfo: Hashable, Sendable {
    /// Its name.
    public var name: String
    /// How many scenes have a process or are connected, or are about to.
    public var live: Int64
    /// How many may have one at a time; nil for any number.
    public var maxLive: Int64?
    /// How many sessions there are.
    public var sessions: Int64
    /// How many there may be.
    public var maxSessions: Int64
    /// Whether it is an app that has them inside.
    public var inside = false

    /// Makes one from its parts.
    public init(name: String, live: Int64, maxLive: Int64?, sessions: Int64, maxSessions: Int64) {
        (self.name, self.live, self.maxLive) = (name, live, maxLive)
        (self.sessions, self.maxSessions) = (sessions, maxSessions)
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            name: try fields.string("name"),
            live: try fields.int("live"),
            maxLive: try fields.optionalInt("max_live"),
            sessions: try fields.int("sessions"),
            maxSessions: try fields.int("max_sessions")
        )
        // One of before there were scenes inside apps has none.
        inside = try fields.optionalBool("inside") ?? false
    }

    /// It as an object.
    public var json: JSON {
        [
            "name": .string(name), "live": .int(live), "max_live": .optional(maxLive), "sessions": .int(sessions),
            "max_sessions": .int(maxSessions), "inside": .bool(inside),
        ]
    }
}
