// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// How long the parts of a launch took, each in milliseconds since it began; nil for what did not come to be.
public struct LaunchTimes: Hashable, Sendable {
    /// The commands of `before_start` were through, and its process was to be made.
    public var planned: Double?
    /// Its program ran.
    public var executed: Double?
    /// Its first sign of life: a connection to `TORPOR_APP_SOCKET`, or a datagram to `NOTIFY_SOCKET`.
    public var contact: Double?
    /// It was first told something.
    public var message: Double?
    /// It was ready.
    public var ready: Double?

    /// Nothing is known yet.
    public init() {}

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        planned = try fields.optionalDouble("fork_ms")
        executed = try fields.optionalDouble("exec_ms")
        contact = try fields.optionalDouble("contact_ms")
        message = try fields.optionalDouble("message_ms")
        ready = try fields.optionalDouble("ready_ms")
    }

    /// It as an object.
    public var json: JSON {
        [
            "fork_ms": .optional(planned), "exec_ms": .optional(executed), "contact_ms": .optional(contact),
            "message_ms": .optional(message), "ready_ms": .optional(ready),
        ]
    }

    static func optional(_ fields: Fields, _ name: String) throws(FieldError) -> LaunchTimes? {
        guard let json = fields[name], json != .null else { return nil }
        return try LaunchTimes(json: json)
    }
}

/// Something in the life of an incarnation.
public struct TimelineEntry: Hashable, Sendable {
    /// Seconds since its launch began; nil for a gap.
    public var after: Double?
    /// `launch`, `state`, `transition`, `message`, `answer`, `failed-answer`, `pending-answer`, `missed`, `signal`,
    /// `task-begin`, `task-end`, `stopping`, `supervisor`, `main`, `exit` or `gap`.
    public var kind: String
    /// What: a state, a message, a deadline, a signal; of a launch fork, exec, contact or ready; of a gap, how many
    /// entries are not kept.
    public var name: String?

    /// Makes one from its parts.
    public init(after: Double?, kind: String, name: String?) {
        self.after = after
        self.kind = kind
        self.name = name
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        after = try fields.optionalDouble("after_s")
        kind = try fields.string("kind")
        name = try fields.optionalString("name")
    }

    /// It as an object.
    public var json: JSON { ["after_s": .optional(after), "kind": .string(kind), "name": .optional(name)] }
}
