// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// How an app's last run ended.
public struct LastExit: Hashable, Sendable {
    /// The termination reason: one of those in docs/lifecycle.md.
    public var reason: String
    /// The exit code, if the app exited by itself.
    public var code: Int32?
    /// The signal's name if a signal ended the run; otherwise nil.
    public var signal: String?
    /// When the run ended, microseconds since 1970.
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

    /// Encodes the value as a JSON object.
    public var json: JSON {
        ["reason": .string(reason), "code": .optional(code), "signal": .optional(signal), "at": .optional(at)]
    }

    @inlinable
    func addMembers(to members: inout some JSONMembers & ~Copyable) {
        members.add("reason", reason)
        members.add("code", code.map { Int64($0) })
        members.add("signal", signal)
        members.add("at", at)
    }

    /// How the run ended, as text, such as `exit-failure 3` or `signal SIGKILL`.
    public var sentence: String {
        if let signal { return "\(reason) \(signal)" }
        if let code, code != 0 { return "\(reason) \(code)" }
        return reason
    }
}

/// One app, with the fields of `torpor list --json`.
public struct AppSummary: Hashable, Sendable {
    /// The app's name; an instance has a number: `web@1`.
    public var name: String
    /// `not-running`, `inactive`, `active`, `background` or `suspended`.
    public var state: String
    /// The transition in progress, such as `launching`; nil for none.
    public var transition: String?
    /// The state that was last requested, by a user or by torpord.
    public var goal: String
    /// The pid of the main process; nil if there is none.
    public var pid: Int32?
    /// The number of the app's current or last run, from 1; nil before the first.
    public var incarnation: Int64?
    /// Seconds since the launch.
    public var uptime: Double?
    /// How often the app was restarted since a user last started or reset it.
    public var restarts: Int64
    /// Whether the supervisor gave up restarting the app.
    public var failed: Bool
    /// Memory of all the app's processes in bytes.
    public var memoryBytes: Int64?
    /// Processor time of all the app's processes in seconds.
    public var cpuSeconds: Double?
    /// The last STATUS that the app sent (sd_notify).
    public var status: String?
    /// How the app's last run ended; nil if none has ended.
    public var lastExit: LastExit?
    /// What keeps the app in the background and awake, in words: tasks, background modes, holds.
    public var holds: [String]
    /// Milliseconds until the app is restarted, while torpord delays the restart.
    public var nextRestartMilliseconds: Int64?
    /// Whether the app should always run, but was evicted, and nothing launches it again.
    public var stranded = false
    /// Whether the app is a oneshot that has finished since it was last started.
    public var done = false
    /// Whether the app is a oneshot that does its work now. Until it has finished, it counts as launching.
    public var working = false
    /// Why one of the app's sockets is not bound, a sentence without its subject; nil if all are bound.
    public var socketTrouble: String?
    /// Why the app's last health check failed, or which message it has not answered in time, a sentence without its
    /// subject; nil if neither is so.
    public var unhealthy: String?
    /// Why the app's launch is delayed, in words: it waits for other apps, for memory, or for a policy.
    public var heldBack: String?
    /// The app's tags, from the configuration.
    public var tags: [String] = []
    /// The app's title for users of all languages that are not in ``titles``.
    public var title: String?
    /// The app's titles for users, by language tag in lower case.
    public var titles: [String: String] = [:]
    /// What the app is for, in one line, for users of all languages that are not in ``summaries``.
    public var summary: String?
    /// What the app is for, by language tag in lower case.
    public var summaries: [String: String] = [:]
    /// The path of the file with the app's icon (``AppIcon``).
    public var icon: String?
    /// The paths of more icon files of the app, by their size in pixels, or `dark` for a dark background.
    public var icons: [String: String] = [:]
    /// The categories under which menus list the app.
    public var categories: [String] = []
    /// The locale that the app gets as LANG; nil for the supervisor's own locale.
    public var language: String?
    /// The scene's template, if the app is a scene; otherwise nil.
    public var template: String?
    /// The app's name among the scenes of its template; nil if it is not a scene.
    public var scene: String?
    /// When the image in the app's snapshot was taken, microseconds since 1970; nil if there is no snapshot, or the
    /// snapshot is text.
    public var pictureAt: Int64?
    /// The app's badge, the number at its menu entry, 1 to 9999; nil if it has none.
    public var badge: Int64?
    /// Whether this machine owns the app: `none`, `here`, or `forced` (this machine does not own the app, but a user
    /// has started it nevertheless). Nil for an app without `owner = "external"`.
    public var owner: String?
    /// Milliseconds until the ownership ends; nil if it does not end by itself.
    public var ownedMilliseconds: Int64?
    /// How many scenes the app has inside, and how many are connected; nil for an app without scenes inside it.
    public var scenesInside: SceneCount?
    /// Whether the app runs in a sandbox.
    public var isSandboxed = false

    /// Creates a value. Fields without a parameter here keep their defaults, and can be set afterwards.
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

    /// Whether the app is a scene that has no process and needs none now: lists hide such scenes, since there may be
    /// many.
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
        working = try fields.optionalBool("working") ?? false
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
        owner = try fields.optionalString("owner")
        ownedMilliseconds = try fields.optionalInt("owned_ms")
        if let count = fields["scenes"], !count.isNull { scenesInside = try SceneCount(json: count) }
        isSandboxed = try fields.optionalBool("sandboxed") ?? false
    }

    /// How the app's last run ended, as text (``LastExit/sentence``). If an app in a sandbox has failed, the text
    /// mentions the sandbox, because many programs do not report which access was denied to them.
    public var exitSentence: String? {
        lastExit.map { $0.sentence + (isSandboxed && $0.reason == "exit-failure" ? " in its sandbox" : "") }
    }

    /// Encodes the value as a JSON object.
    public var json: JSON { .object(object) }

    var object: JSONObject {
        var object = JSONObject()
        // Also reserve memory for the fields of a status, which may be added to this object.
        object.reserve(96)
        addMembers(to: &object)
        return object
    }
}
