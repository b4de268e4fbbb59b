// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The parameters of Apply.
public struct ApplyRequest: Hashable, Sendable {
    /// Only report what would change, and change nothing.
    public var diff = false
    /// Restart apps that run with an old configuration.
    public var restart = false
    /// Apply even a configuration without apps, which removes all existing apps.
    public var force = false
    /// The apps to which `restart` and `diff` apply: exact names, globs or `tag:NAME`; empty means all.
    public var apps: [String] = []
    /// True to reply when everything that the call caused is done; false to reply at once.
    public var wait = true
    /// The longest time to wait, in milliseconds.
    public var timeoutMilliseconds: Int64?

    /// A request to apply the configuration on disk.
    public init() {}

    init(fields: Fields) throws(FieldError) {
        diff = try fields.optionalBool("diff") ?? false
        restart = try fields.optionalBool("restart") ?? false
        force = try fields.optionalBool("force") ?? false
        apps = try fields.strings("apps")
        guard apps.isEmpty || diff || restart else {
            throw FieldError(
                field: "apps",
                problem: "may be given only with restart or diff: a configuration is applied as a whole"
            )
        }
        wait = try fields.optionalBool("wait") ?? true
        timeoutMilliseconds = try fields.optionalInt("timeout_ms")
        if let timeoutMilliseconds, timeoutMilliseconds < 0 {
            throw FieldError(field: "timeout_ms", problem: "must not be negative")
        }
    }

    var parameters: JSON {
        var object: JSONObject = [:]
        if diff { object["diff"] = true }
        if restart { object["restart"] = true }
        if force { object["force"] = true }
        if !apps.isEmpty { object["apps"] = .strings(apps) }
        if !wait { object["wait"] = false }
        if let timeoutMilliseconds { object["timeout_ms"] = .int(timeoutMilliseconds) }
        return .object(object)
    }
}

/// A key of the configuration whose value has changed.
public struct KeyChangeInfo: Hashable, Sendable {
    /// The key, including the tables that contain it.
    public var key: String
    /// The old value; nil if the key was not set.
    public var old: String?
    /// The new value; nil if the key is no longer set.
    public var new: String?
    /// When the new value takes effect: `live` (at once), `next-launch`, `restart` or `supervisor-start`.
    public var effect: String

    /// Memberwise initializer.
    public init(key: String, old: String?, new: String?, effect: String) {
        self.key = key
        self.old = old
        self.new = new
        self.effect = effect
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        key = try fields.string("key")
        old = try fields.optionalString("old")
        new = try fields.optionalString("new")
        effect = try fields.string("effect")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        ["key": .string(key), "old": .optional(old), "new": .optional(new), "effect": .string(effect)]
    }
}

/// What an apply did to one app, or would do.
public struct AppliedApp: Hashable, Sendable {
    /// Stands among ``changes`` for keys that changed after the app was launched, while an earlier torpord ran. The app
    /// still has the old values, and this torpord does not know which keys these are.
    public static let unknownKey = "earlier-changes"

    /// The name of the app.
    public var app: String
    /// `added`, `removed`, `changed`, or `restarted` (because an app that it requires was restarted).
    public var kind: String
    /// The keys that changed, if `kind` is `changed`.
    public var changes: [KeyChangeInfo]
    /// Whether the change succeeded, or nothing had to be done.
    public var ok: Bool
    /// The app's state; nil if the app no longer exists, or does not exist yet.
    public var state: String?
    /// The process ID of the app's main process.
    public var pid: Int32?
    /// What happened, or why the change failed, for a line that begins with the app's name.
    public var message: String
    /// If the change failed, one word for programs: `timeout`, `overtaken` (by a later request), `waits` (for an app
    /// that fails again and again; its launch is tried again), `not-launchable` (a launch would fail, so the app was not
    /// ended; or a socket of it cannot be bound), or a termination reason.
    public var error: String?

    /// Creates a value. Fields without a parameter here keep their defaults, and can be set afterwards.
    public init(app: String, kind: String, changes: [KeyChangeInfo] = [], ok: Bool = true, message: String) {
        self.app = app
        self.kind = kind
        self.changes = changes
        self.ok = ok
        self.message = message
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        app = try fields.string("app")
        kind = try fields.string("kind")
        changes = try fields.list("changes") { json throws(FieldError) in try KeyChangeInfo(json: json) }
        ok = try fields.bool("ok")
        state = try fields.optionalString("state")
        pid = try fields.optionalInt32("pid")
        message = try fields.optionalString("message") ?? ""
        error = try fields.optionalString("error")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "kind": .string(kind), "changes": .array(changes.map(\.json)), "ok": .bool(ok),
            "state": .optional(state), "pid": .optional(pid), "message": .string(message), "error": .optional(error),
        ]
    }
}

/// An error in a configuration, or a warning about something that is probably not intended.
public struct DiagnosticInfo: Hashable, Sendable {
    /// The path of the configuration file, as written by the user or in the file that includes it.
    public var file: String
    /// The line, from 1; 0 if the diagnostic concerns the whole file.
    public var line: Int64
    /// The column, from 1; 0 if the diagnostic concerns the whole file.
    public var column: Int64
    /// The key, with the tables that contain it; empty if the diagnostic concerns no key.
    public var path: String
    /// A sentence that says what to do.
    public var message: String
    /// `error` or `warning`.
    public var severity: String

    /// Memberwise initializer.
    public init(file: String, line: Int64, column: Int64, path: String, message: String, severity: String) {
        self.file = file
        self.line = line
        self.column = column
        self.path = path
        self.message = message
        self.severity = severity
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        file = try fields.string("file")
        line = try fields.int("line")
        column = try fields.int("column")
        path = try fields.string("path")
        message = try fields.string("message")
        severity = try fields.string("severity")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "file": .string(file), "line": .int(line), "column": .int(column), "path": .string(path),
            "message": .string(message), "severity": .string(severity),
        ]
    }
}

/// The last reply of Apply.
public struct ApplyReply: Hashable, Sendable {
    /// Every app that changed.
    public var apps: [AppliedApp]
    /// The keys of `[supervisor]` and `[policies]` that changed.
    public var supervisor: [KeyChangeInfo]
    /// Warnings about values that are allowed but probably not intended.
    public var warnings: [DiagnosticInfo]

    /// Memberwise initializer.
    public init(apps: [AppliedApp], supervisor: [KeyChangeInfo] = [], warnings: [DiagnosticInfo] = []) {
        self.apps = apps
        self.supervisor = supervisor
        self.warnings = warnings
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        apps = try fields.list("apps") { json throws(FieldError) in try AppliedApp(json: json) }
        supervisor = try fields.list("supervisor") { json throws(FieldError) in try KeyChangeInfo(json: json) }
        warnings = try fields.list("warnings") { json throws(FieldError) in try DiagnosticInfo(json: json) }
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "apps": .array(apps.map(\.json)), "supervisor": .array(supervisor.map(\.json)),
            "warnings": .array(warnings.map(\.json)),
        ]
    }
}
