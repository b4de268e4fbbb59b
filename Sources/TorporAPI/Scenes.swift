// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The parameters of OpenScene.
public struct OpenSceneRequest: Hashable, Sendable {
    /// The template: the name of an app with `scenes`.
    public var template: String
    /// The scene's own name.
    public var name: String
    /// The session: data that the scene receives when it is first opened; null for nothing.
    public var session: JSON = .null
    /// Launch the scene into the background instead of the foreground.
    public var background = false
    /// Whether to create the scene without launching it. Use this for a remote client that is about to connect to the
    /// scene's socket: that connection launches the scene.
    public var remote = false
    /// True to reply when the scene is open; false to reply at once.
    public var wait = true
    /// The longest time to wait, in milliseconds.
    public var timeoutMilliseconds: Int64?
    /// Makes the request idempotent: torpord carries it out once, however often it receives the same token.
    public var token: RequestToken?

    /// The maximum size of `session`, in bytes of JSON.
    public static let longestSession = 4096

    /// Sets the required fields; the others keep their defaults.
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

/// A scene: its session and its state.
public struct SceneInfo: Hashable, Sendable {
    /// The scene's full name. It is also the name of the scene's app, unless the scene is inside an app.
    public var app: String
    /// The scene's template, or the app that the scene is inside.
    public var template: String
    /// The scene's own name, without the name of the template.
    public var name: String
    /// The state of the scene's app or, for a scene inside an app, the state of the scene itself. It is `unattached` if
    /// the scene's app has no process, or if the scene inside an app is not connected.
    public var state: String
    /// When the scene was first opened, microseconds since 1970.
    public var openedAt: Int64
    /// When the scene last had a process or was opened, microseconds since 1970.
    public var usedAt: Int64
    /// The session: data that the scene received when it was first opened; null for nothing.
    public var session: JSON
    /// When the scene expires and is discarded, microseconds since 1970; nil for never.
    public var discardedAt: Int64?
    /// Whether the scene's template is no longer in the configuration.
    public var lacksTemplate: Bool
    /// The number of processes in the scene's cgroup. Only for a connected scene inside an app that has a cgroup for
    /// each scene (`scenes.cgroups`); otherwise nil.
    public var processes: Int64?
    /// Whether the processes of the scene's cgroup are frozen; nil for a scene without its own cgroup.
    public var isFrozen: Bool?

    /// The state of a scene without a process.
    public static let unattached = "unattached"

    /// Creates a value. Fields without a parameter here keep their defaults, and can be set afterwards.
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

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
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

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "template": .string(template), "name": .string(name), "state": .string(state),
            "opened_at": .int(openedAt), "used_at": .int(usedAt), "session": session,
            "discarded_at": .optional(discardedAt), "lacks_template": .bool(lacksTemplate),
            "processes": .optional(processes), "frozen": .optional(isFrozen),
        ]
    }
}

/// The number of scenes that an app has inside it.
public struct SceneCount: Hashable, Sendable {
    /// How many scenes there are, whether connected or not.
    public var sessions: Int64
    /// How many scenes are connected, or about to be.
    public var live: Int64

    /// Memberwise initializer.
    public init(sessions: Int64, live: Int64) { (self.sessions, self.live) = (sessions, live) }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        sessions = try fields.int("sessions")
        live = try fields.int("live")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON { ["sessions": .int(sessions), "live": .int(live)] }

    @inlinable
    func addMembers(to members: inout some JSONMembers & ~Copyable) {
        members.add("sessions", sessions)
        members.add("live", live)
    }
}

/// A template of scenes, or an app that has scenes inside.
public struct SceneTemplateInfo: Hashable, Sendable {
    /// The name of the template or app.
    public var name: String
    /// How many scenes are live: they have a process or are connected, or will soon.
    public var live: Int64
    /// How many scenes may be live at the same time; nil for no limit.
    public var maxLive: Int64?
    /// How many scenes (sessions) there are.
    public var sessions: Int64
    /// How many scenes (sessions) there may be.
    public var maxSessions: Int64
    /// Whether the scenes are inside an app. If not, each scene is an app itself.
    public var inside = false

    /// Creates a value. Fields without a parameter here keep their defaults, and can be set afterwards.
    public init(name: String, live: Int64, maxLive: Int64?, sessions: Int64, maxSessions: Int64) {
        (self.name, self.live, self.maxLive) = (name, live, maxLive)
        (self.sessions, self.maxSessions) = (sessions, maxSessions)
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            name: try fields.string("name"),
            live: try fields.int("live"),
            maxLive: try fields.optionalInt("max_live"),
            sessions: try fields.int("sessions"),
            maxSessions: try fields.int("max_sessions")
        )
        // Older supervisors, without scenes inside apps, do not send this field.
        inside = try fields.optionalBool("inside") ?? false
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "name": .string(name), "live": .int(live), "max_live": .optional(maxLive), "sessions": .int(sessions),
            "max_sessions": .int(maxSessions), "inside": .bool(inside),
        ]
    }
}
