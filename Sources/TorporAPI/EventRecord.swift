// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// Something that happened, and why: what `torpor events` shows.
public struct EventRecord: Hashable, Sendable {
    /// Grows with every event, over instances and boots too; 0 as long as it is in no log.
    public var sequence: Int64 = 0
    /// Microseconds since 1970.
    public var at: Int64
    /// The app, nil for what concerns the supervisor.
    public var app: String?
    /// Which run of the app, counted from 1.
    public var incarnation: Int64?
    /// What sort of event, one word: `state`, `exit`, `restart`, `signal`, `report` …
    public var kind: String
    /// The state before, for a change of state.
    public var from: String?
    /// The state after it.
    public var to: String?
    /// A sentence for people.
    public var text: String
    /// A termination reason, or who asked.
    public var reason: String?
    /// What else programs may want to know.
    public var details: JSON

    /// Makes one from its parts.
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

    /// Reads it from its object.
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

    /// It as an object.
    public var json: JSON {
        [
            "sequence": .int(sequence), "at": .int(at), "app": .optional(app), "incarnation": .optional(incarnation),
            "kind": .string(kind), "from": .optional(from), "to": .optional(to), "text": .string(text),
            "reason": .optional(reason), "details": details,
        ]
    }
}

/// Something that the machine offers or lacks, of `torpor doctor`.
public struct DoctorCheck: Hashable, Sendable {
    /// What was looked at, such as `cgroup v2`.
    public var name: String
    /// All is well.
    public var ok: Bool
    /// What was found.
    public var value: String?
    /// What the lack costs and what would help; a line each, where there are several ways.
    public var message: String?

    /// Makes one from its parts.
    public init(name: String, ok: Bool, value: String? = nil, message: String? = nil) {
        self.name = name
        self.ok = ok
        self.value = value
        self.message = message
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        name = try fields.string("name")
        ok = try fields.bool("ok")
        value = try fields.optionalString("value")
        message = try fields.optionalString("message")
    }

    /// It as an object.
    public var json: JSON {
        ["name": .string(name), "ok": .bool(ok), "value": .optional(value), "message": .optional(message)]
    }
}
