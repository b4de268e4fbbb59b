// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// How an app's last run ended.
public struct LastExit: Hashable, Sendable {
    /// A termination reason of docs/lifecycle.md.
    public var reason: String
    /// The exit code, if it exited by itself.
    public var code: Int32?
    /// The signal's name, if a signal ended it.
    public var signal: String?
    /// Microseconds since 1970.
    public var at: Int64?

    /// Memberwise initializer.
    public init(reason: String, code: Int32? = nil, signal: String? = nil, at: Int64? = nil) {
        self.reason = reason
        self.code = code
        self.signal = signal
        self.at = at
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        reason = try fields.string("reason")
        code = try fields.optionalInt32("code")
        signal = try fields.optionalString("signal")
        at = try fields.optionalInt("at")
    }

    /// Encodes a JSON object.
    public var json: JSON {
        ["reason": .string(reason), "code": .optional(code), "signal": .optional(signal), "at": .optional(at)]
    }

    /// `exit-failure 3`, `signal SIGKILL`.
    public var sentence: String {
        if let signal { return "\(reason) \(signal)" }
        if let code, code != 0 { return "\(reason) \(code)" }
        return reason
    }
}

/// One app, with exactly the fields of `torpor list --json`.
public struct AppSummary: Hashable, Sendable {
    /// The app's name; instances are `web@1`.
    public var name: String
    /// `not-running`, `inactive`, `active`, `background` or `suspended`.
    public var state: String
    /// The transition in progress, such as `launching`.
    public var transition: String?
    /// The state that was last requested.
    public var goal: String
    /// The main process; nil if there is none.
    public var pid: Int32?
    /// Number of the current or last run, from 1; nil before the first.
    public var incarnation: Int64?
    /// Seconds since the launch.
    public var uptime: Double?
    /// Restarts since a user last started or reset it.
    public var restarts: Int64
    /// The supervisor gave up restarting it.
    public var failed: Bool
    /// Memory of all its processes in bytes.
    public var memoryBytes: Int64?
    /// Processor time of all its processes in seconds.
    public var cpuSeconds: Double?
    /// The last STATUS that the app sent (sd_notify).
    public var status: String?
    /// How its last run ended.
    public var lastExit: LastExit?
    /// What keeps it in the background: tasks, modes, assertions, in words.
    public var holds: [String]
    /// Milliseconds until it is restarted, while a restart is delayed.
    public var nextRestartMilliseconds: Int64?
    /// It should always run, was evicted, and nothing launches it again.
    public var stranded = false
    /// A oneshot that has finished since it was last started.
    public var done = false
    /// Why one of its sockets is not bound, a sentence without its subject; nil if all are bound.
    public var socketTrouble: String?
    /// Why its last health check failed, a sentence without its subject; nil if it passed, or there was none.
    public var unhealthy: String?
    /// Why its launch waits, in words: for memory, or for a policy.
    public var heldBack: String?
    /// The tags of its configuration.
    public var tags: [String] = []
    /// Its title for users, in all languages that are not in ``titles``.
    public var title: String?
    /// Its title for users, by language tag in lower case.
    public var titles: [String: String] = [:]
    /// What it is for, in one line, in all languages that are not in ``summaries``.
    public var summary: String?
    /// What it is for, by language tag in lower case.
    public var summaries: [String: String] = [:]
    /// The file of its icon (``AppIcon``).
    public var icon: String?
    /// The files of further icons: by their size in pixels, and `dark` for a dark background.
    public var icons: [String: String] = [:]
    /// Where menus list it.
    public var categories: [String] = []
    /// The locale that it gets as LANG; nil for the supervisor's own.
    public var language: String?
    /// The template of a scene; nil if it is not a scene.
    public var template: String?
    /// Its name among the scenes of its template; nil if it is not a scene.
    public var scene: String?
    /// When the picture in its snapshot was taken, microseconds since 1970; nil without a snapshot, or if that is
    /// text.
    public var pictureAt: Int64?
    /// The number at its entry, 1 to 9999; nil if it has none.
    public var badge: Int64?
    /// How many scenes it has inside, and how many are connected; nil for an app without scenes inside it.
    public var scenesInside: SceneCount?

    /// Memberwise initializer.
    public init(
        name: String,
        state: String,
        transition: String? = nil,
        goal: String,
        pid: Int32? = nil,
        incarnation: Int64? = nil,
        uptime: Double? = nil,
        restarts: Int64 = 0,
        failed: Bool = false,
        memoryBytes: Int64? = nil,
        cpuSeconds: Double? = nil,
        status: String? = nil,
        lastExit: LastExit? = nil,
        holds: [String] = [],
        nextRestartMilliseconds: Int64? = nil
    ) {
        self.name = name
        self.state = state
        self.transition = transition
        self.goal = goal
        self.pid = pid
        self.incarnation = incarnation
        self.uptime = uptime
        self.restarts = restarts
        self.failed = failed
        self.memoryBytes = memoryBytes
        self.cpuSeconds = cpuSeconds
        self.status = status
        self.lastExit = lastExit
        self.holds = holds
        self.nextRestartMilliseconds = nextRestartMilliseconds
    }

    /// Whether it is a scene without a process, and none is expected: lists hide it, since there may be many.
    public var isUnattached: Bool {
        scene != nil && pid == nil && transition == nil && heldBack == nil && !failed && nextRestartMilliseconds == nil
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        try self.init(fields: Fields(json))
    }

    init(fields: Fields) throws(FieldError) {
        name = try fields.string("name")
        state = try fields.string("state")
        transition = try fields.optionalString("transition")
        goal = try fields.string("goal")
        pid = try fields.optionalInt32("pid")
        incarnation = try fields.optionalInt("incarnation")
        uptime = try fields.optionalDouble("uptime_s")
        restarts = try fields.int("restarts")
        failed = try fields.bool("failed")
        memoryBytes = try fields.optionalInt("memory_bytes")
        cpuSeconds = try fields.optionalDouble("cpu_s")
        status = try fields.optionalString("status")
        lastExit = if let exit = fields["last_exit"] { try LastExit(json: exit) } else { nil }
        holds = try fields.strings("holds")
        nextRestartMilliseconds = try fields.optionalInt("next_restart_ms")
        stranded = try fields.optionalBool("stranded") ?? false
        done = try fields.optionalBool("done") ?? false
        socketTrouble = try fields.optionalString("socket_trouble")
        unhealthy = try fields.optionalString("unhealthy")
        heldBack = try fields.optionalString("held_back")
        tags = try fields.strings("tags")
        title = try fields.optionalString("title")
        titles = try fields.strings(byName: "titles")
        summary = try fields.optionalString("summary")
        summaries = try fields.strings(byName: "summaries")
        icon = try fields.optionalString("icon")
        icons = try fields.strings(byName: "icons")
        categories = try fields.strings("categories")
        language = try fields.optionalString("language")
        template = try fields.optionalString("template")
        scene = try fields.optionalString("scene")
        pictureAt = try fields.optionalInt("picture_at")
        badge = try fields.optionalInt("badge")
        if let count = fields["scenes"], !count.isNull { scenesInside = try SceneCount(json: count) }
    }

    /// Encodes a JSON object.
    public var json: JSON { .object(object) }

    var object: JSONObject {
        JSONObject(members: [
            .init(name: "name", value: .string(name)),
            .init(name: "state", value: .string(state)),
            .init(name: "transition", value: .optional(transition)),
            .init(name: "goal", value: .string(goal)),
            .init(name: "pid", value: .optional(pid)),
            .init(name: "incarnation", value: .optional(incarnation)),
            .init(name: "uptime_s", value: .optional(uptime)),
            .init(name: "restarts", value: .int(restarts)),
            .init(name: "failed", value: .bool(failed)),
            .init(name: "memory_bytes", value: .optional(memoryBytes)),
            .init(name: "cpu_s", value: .optional(cpuSeconds)),
            .init(name: "status", value: .optional(status)),
            .init(name: "last_exit", value: lastExit?.json ?? .null),
            .init(name: "holds", value: .strings(holds)),
            .init(name: "next_restart_ms", value: .optional(nextRestartMilliseconds)),
            .init(name: "stranded", value: .bool(stranded)),
            .init(name: "done", value: .bool(done)),
            .init(name: "socket_trouble", value: .optional(socketTrouble)),
            .init(name: "unhealthy", value: .optional(unhealthy)),
            .init(name: "held_back", value: .optional(heldBack)),
            .init(name: "tags", value: .strings(tags)),
            .init(name: "title", value: .optional(title)),
            .init(name: "titles", value: .strings(titles)),
            .init(name: "summary", value: .optional(summary)),
            .init(name: "summaries", value: .strings(summaries)),
            .init(name: "icon", value: .optional(icon)),
            .init(name: "icons", value: .strings(icons)),
            .init(name: "categories", value: .strings(categories)),
            .init(name: "language", value: .optional(language)),
            .init(name: "template", value: .optional(template)),
            .init(name: "scene", value: .optional(scene)),
            .init(name: "picture_at", value: .optional(pictureAt)),
            .init(name: "badge", value: .optional(badge)),
            .init(name: "scenes", value: scenesInside?.json ?? .null),
        ])
    }
}
