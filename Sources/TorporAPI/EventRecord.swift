// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// An event that torpord has logged, with its reason: what `torpor events` shows.
public struct EventRecord: Hashable, Sendable {
    /// The event's number. It increases with every event, across restarts of torpord and reboots; 0 until the event
    /// is logged.
    public var sequence: Int64 = 0
    /// When the event happened, microseconds since 1970.
    public var at: Int64
    /// The app that the event concerns; nil for an event of the supervisor.
    public var app: String?
    /// The number of the app's run, counted from 1.
    public var incarnation: Int64?
    /// The kind of event, one word: `state`, `exit`, `restart`, `signal`, `report` …
    public var kind: String
    /// The previous state, if the event is a change of state.
    public var from: String?
    /// The new state, if the event is a change of state.
    public var to: String?
    /// What happened, a sentence for users.
    public var text: String
    /// The termination reason, or the client that requested the change; nil for other events.
    public var reason: String?
    /// More data about the event, for programs.
    public var details: JSON

    /// Sets all fields except the number, which the event gets when it is logged.
    public init(
        at: Int64,
        app: String? = nil,
        incarnation: Int64? = nil,
        kind: String,
        from: String? = nil,
        to: String? = nil,
        text: String,
        reason: String? = nil,
        details: JSON = .emptyObject
    ) {
        self.at = at
        self.app = app
        self.incarnation = incarnation
        self.kind = kind
        self.from = from
        self.to = to
        self.text = text
        self.reason = reason
        self.details = details
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        sequence = try fields.optionalInt("sequence") ?? 0
        at = try fields.int("at")
        app = try fields.optionalString("app")
        incarnation = try fields.optionalInt("incarnation")
        kind = try fields.string("kind")
        from = try fields.optionalString("from")
        to = try fields.optionalString("to")
        text = try fields.string("text")
        reason = try fields.optionalString("reason")
        details = fields["details"] ?? .emptyObject
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "sequence": .int(sequence), "at": .int(at), "app": .optional(app), "incarnation": .optional(incarnation),
            "kind": .string(kind), "from": .optional(from), "to": .optional(to), "text": .string(text),
            "reason": .optional(reason), "details": details,
        ]
    }
}

/// A result of `torpor doctor`: whether the machine offers something that torpord needs or can use.
public struct DoctorCheck: Hashable, Sendable {
    /// What was checked, such as `cgroup v2`.
    public var name: String
    /// Whether the check passed.
    public var ok: Bool
    /// The value that the check has found.
    public var value: String?
    /// What does not work if the check failed, and how to repair that; one line per remedy.
    public var message: String?

    /// Memberwise initializer.
    public init(name: String, ok: Bool, value: String? = nil, message: String? = nil) {
        self.name = name
        self.ok = ok
        self.value = value
        self.message = message
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        name = try fields.string("name")
        ok = try fields.bool("ok")
        value = try fields.optionalString("value")
        message = try fields.optionalString("message")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        ["name": .string(name), "ok": .bool(ok), "value": .optional(value), "message": .optional(message)]
    }
}
