// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The methods that take a list of apps and reply a result for each.
public enum Verb: String, CaseIterable, Hashable, Sendable {
    case start = "Start"
    case stop = "Stop"
    case restart = "Restart"
    case foreground = "Foreground"
    case background = "Background"
    case suspend = "Suspend"
    case resume = "Resume"
    case interrupt = "Interrupt"
    case kill = "Kill"
    case reset = "Reset"
    case hold = "Hold"
    case own = "Own"
    case disown = "Disown"
    case wait = "Wait"
    case disconnect = "DisconnectScenes"
    case discard = "DiscardScenes"
}

/// The parameters of a verb. A verb ignores the parameters of other verbs.
public struct VerbRequest: Hashable, Sendable {
    /// The method to call.
    public var verb: Verb
    /// The apps: exact names, globs or `tag:NAME`.
    public var apps: [String]
    /// Only for Start: launch into the background.
    public var background = false
    /// Only for Start: launch the app only to suspend it, even if this machine does not own the app.
    public var standby = false
    /// Only for Start: launch the app even if a policy is against this or this machine does not own the app. Only for
    /// Suspend: suspend the app even if something keeps it awake.
    public var force = false
    /// Only for Own: extend the present ownership. If this machine does not own the app, the request fails.
    public var renew = false
    /// Only for Disown: terminate the app too.
    public var stop = false
    /// Only for Stop: keep the state that the app has saved for its next launch.
    public var keepState = false
    /// Only for Stop: the stop ends with this boot, so that the next one launches the app as before.
    public var untilBoot = false
    /// Only for Interrupt: end an interruption. Only for Hold: end all holds.
    public var end = false
    /// Only for Hold: the reason, in the operator's words.
    public var reason: String?
    /// Only for Hold and Own: how long the hold or the ownership lasts, in milliseconds; if nil, until a user ends it.
    public var forMilliseconds: Int64?
    /// Only for Foreground: the URL that the app should open.
    public var url: String?
    /// Only for Wait: the state to wait for.
    public var state: String?
    /// True to reply when the apps have reached the requested state; false to reply at once.
    public var wait = true
    /// The longest time to wait, in milliseconds.
    public var timeoutMilliseconds: Int64?
    /// Makes the request idempotent: however often torpord receives this token, it carries out the request only once.
    /// The verb Wait ignores the token.
    public var token: RequestToken?

    private static let longestReason = 256
    private static let longestHold: Int64 = 366 * 86_400_000
    private static let longestURL = 8192

    /// Sets the required fields; the others keep their defaults.
    public init(verb: Verb, apps: [String]) {
        self.verb = verb
        self.apps = apps
    }

    /// Reads the parameters of a call.
    public init(verb: Verb, parameters: JSON) throws(FieldError) {
        self.verb = verb
        let fields = try Fields(parameters)
        apps = try fields.strings("apps")
        guard !apps.isEmpty else { throw FieldError(field: "apps", problem: "must name at least one app") }
        background = try fields.optionalBool("background") ?? false
        standby = try fields.optionalBool("standby") ?? false
        force = try fields.optionalBool("force") ?? false
        renew = try fields.optionalBool("renew") ?? false
        stop = try fields.optionalBool("stop") ?? false
        keepState = try fields.optionalBool("keep_state") ?? false
        untilBoot = try fields.optionalBool("until_boot") ?? false
        end = try fields.optionalBool("end") ?? false
        reason = try fields.optionalString("reason")
        if let reason, reason.utf8.count > Self.longestReason {
            throw FieldError(field: "reason", problem: "must not be longer than \(Self.longestReason) bytes")
        }
        forMilliseconds = try fields.optionalInt("for_ms")
        if let forMilliseconds, !(1...Self.longestHold).contains(forMilliseconds) {
            throw FieldError(field: "for_ms", problem: "must be more than 0 and at most a year")
        }
        url = try fields.optionalString("url")
        if let url, url.isEmpty || url.utf8.count > Self.longestURL {
            throw FieldError(field: "url", problem: "must have from 1 to \(Self.longestURL) bytes")
        }
        state = verb == .wait ? try fields.string("state") : nil
        wait = try fields.optionalBool("wait") ?? true
        timeoutMilliseconds = try fields.optionalInt("timeout_ms")
        if let timeoutMilliseconds, timeoutMilliseconds < 0 {
            throw FieldError(field: "timeout_ms", problem: "must not be negative")
        }
        token = verb == .wait ? nil : try fields.optionalToken("token")
    }

    /// The parameters as an object.
    public var parameters: JSON {
        var object: JSONObject = ["apps": .strings(apps)]
        if background { object["background"] = true }
        if standby { object["standby"] = true }
        if force { object["force"] = true }
        if renew { object["renew"] = true }
        if stop { object["stop"] = true }
        if keepState { object["keep_state"] = true }
        if untilBoot { object["until_boot"] = true }
        if end { object["end"] = true }
        if let reason { object["reason"] = .string(reason) }
        if let forMilliseconds { object["for_ms"] = .int(forMilliseconds) }
        if let url { object["url"] = .string(url) }
        if let state { object["state"] = .string(state) }
        if !wait { object["wait"] = false }
        if let timeoutMilliseconds { object["timeout_ms"] = .int(timeoutMilliseconds) }
        if let token, verb != .wait { object["token"] = .string(token.text) }
        return .object(object)
    }
}

/// What a verb did to one app.
public struct VerbResult: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// Whether the app has reached the requested state. If the call does not wait: whether the app's goal is now that
    /// state.
    public var ok: Bool
    /// The app's state.
    public var state: String
    /// The process ID of the app's main process.
    public var pid: Int32?
    /// What happened, as a sentence. If the request failed, the reason and what to do.
    public var message: String?
    /// If the request failed, a word for programs: `timeout`, `overtaken` (by a later request), `refused`, or a
    /// termination reason; otherwise nil.
    public var error: String?
    /// Whether no event wakes the app, so that it stays suspended until a user or a policy resumes it. Nil if the app
    /// is not suspended, and from an older torpord.
    public var isNeverWoken: Bool?
    /// If no event wakes the app: the apps whose use brings it back. Nil for other apps, and from an older torpord.
    public var requiredBy: [String]?

    /// Memberwise initializer.
    public init(
        app: String,
        ok: Bool,
        state: String,
        pid: Int32? = nil,
        message: String? = nil,
        error: String? = nil,
        isNeverWoken: Bool? = nil,
        requiredBy: [String]? = nil
    ) {
        self.app = app
        self.ok = ok
        self.state = state
        self.pid = pid
        self.message = message
        self.error = error
        self.isNeverWoken = isNeverWoken
        self.requiredBy = requiredBy
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        app = try fields.string("app")
        ok = try fields.bool("ok")
        state = try fields.string("state")
        pid = try fields.optionalInt32("pid")
        message = try fields.optionalString("message")
        error = try fields.optionalString("error")
        isNeverWoken = try fields.optionalBool("never_woken")
        if fields["required_by"] != nil { requiredBy = try fields.strings("required_by") }
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "ok": .bool(ok), "state": .string(state), "pid": .optional(pid),
            "message": .optional(message), "error": .optional(error), "never_woken": .optional(isNeverWoken),
            "required_by": requiredBy.map { .strings($0) } ?? .null,
        ]
    }
}

/// A step of an app towards the requested state. torpord sends the steps while the verb waits.
public struct VerbProgress: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// The app's state.
    public var state: String
    /// The transition in progress.
    public var transition: String?
    /// What is happening, a sentence for users.
    public var text: String

    /// Memberwise initializer.
    public init(app: String, state: String, transition: String? = nil, text: String) {
        self.app = app
        self.state = state
        self.transition = transition
        self.text = text
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        app = try fields.string("app")
        state = try fields.string("state")
        transition = try fields.optionalString("transition")
        text = try fields.optionalString("text") ?? ""
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "state": .string(state), "transition": .optional(transition), "text": .string(text),
        ]
    }
}

/// Builds the replies of several methods, so that all senders use the same names.
public enum Replies {
    /// The reply of List.
    public static func list(_ apps: [AppSummary], templates: [SceneTemplateInfo] = []) -> JSON {
        ["apps": .array(apps.map(\.json)), "templates": .array(templates.map(\.json))]
    }
    /// The reply of List as JSON text. Reads one app after the other, so that they need not be in memory all at once.
    @inlinable
    public static func append<Apps: Sequence>(
        list apps: Apps,
        templates: [SceneTemplateInfo] = [],
        to writer: inout JSONWriter
    ) where Apps.Element: ListedApp {
        writer.append("{\"apps\":[" as StaticString)
        var first = true
        for app in apps {
            if !first { writer.append(UInt8(ascii: ",")) }
            first = false
            app.append(to: &writer)
        }
        writer.append("],\"templates\":" as StaticString)
        JSON.array(templates.map(\.json)).append(to: &writer)
        writer.append(UInt8(ascii: "}"))
    }
    /// The reply of DesktopApps.
    public static func desktopApps(_ apps: [DesktopApp]) -> JSON { ["apps": .array(apps.map(\.json))] }
    /// The reply of Status.
    public static func status(_ status: AppStatus) -> JSON { ["status": status.json] }
    /// The reply of every verb.
    public static func results(_ results: [VerbResult]) -> JSON { ["results": .array(results.map(\.json))] }
    /// A reply of Logs; `more` is whether further lines existed at the time of the call.
    public static func logs(_ lines: [LogLine], cursor: String, more: Bool = false) -> JSON {
        ["lines": .array(lines.map(\.json)), "cursor": .string(cursor), "more": .bool(more)]
    }
    /// A reply of Events. `sequence` is the number of the newest event that torpord has examined. `incomplete` is the
    /// reason why older events are missing.
    public static func events(_ events: [EventRecord], sequence: Int64, incomplete: String? = nil) -> JSON {
        ["events": .array(events.map(\.json)), "sequence": .int(sequence), "incomplete": .optional(incomplete)]
    }
    /// The reply of Policies.
    public static func policies(_ policies: [PolicyStatus]) -> JSON { ["policies": .array(policies.map(\.json))] }
    /// The reply of ReloadPolicy.
    public static func policy(_ policy: PolicyStatus) -> JSON { ["policy": policy.json] }
    /// The reply of EvictionOrder.
    public static func evictionOrder(_ apps: [EvictionCandidate]) -> JSON { ["apps": .array(apps.map(\.json))] }
    /// The reply of Memory.
    public static func memory(_ status: MemoryStatus) -> JSON { ["memory": status.json] }
    /// The reply of Graph.
    public static func graph(_ nodes: [GraphNode]) -> JSON { ["apps": .array(nodes.map(\.json))] }
    /// The reply of Metrics.
    public static func metrics(_ families: [MetricFamily]) -> JSON { ["metrics": .array(families.map(\.json))] }
    /// The reply of Timers.
    public static func timers(_ timers: [TimerStatus]) -> JSON { ["timers": .array(timers.map(\.json))] }
    /// A reply of RecordPolicies; the last reply has no line.
    public static func record(_ line: JSON?) -> JSON { ["line": line ?? .null] }
    /// The reply of Doctor.
    public static func doctor(_ checks: [DoctorCheck]) -> JSON { ["checks": .array(checks.map(\.json))] }
}
