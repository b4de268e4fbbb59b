// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A timer or the fetch mode of an app: when it fires next, and when it last fired.
public struct TimerStatus: Hashable, Sendable {
    /// The app's name.
    public var app: String
    /// The timer's name within the app; `fetch` for the fetch mode.
    public var name: String
    /// `timer` or `fetch`.
    public var kind: String
    /// The timer's times as configured. For the fetch mode, the times that torpord has learned from earlier fetches.
    public var when = ""
    /// When the timer fires next, microseconds since 1970; nil for never.
    public var next: Int64?
    /// When the timer last fired, microseconds since 1970.
    public var last: Int64?
    /// How the timer wakes the app: `background`, `foreground` or `none`.
    public var wake: String?
    /// Whether the timer fires once for times that it missed while torpord did not run.
    public var isPersistent = false
    /// Why the timer does not wake the app until a user starts the app: `stopped`, `force-quit` or `failed`. Nil if the
    /// timer wakes the app.
    public var blocked: String?

    /// Sets the fields that every timer has.
    public init(app: String, name: String, kind: String) {
        self.app = app
        self.name = name
        self.kind = kind
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        app = try fields.string("app")
        name = try fields.string("name")
        kind = try fields.string("kind")
        when = try fields.string("when")
        next = try fields.optionalInt("next")
        last = try fields.optionalInt("last")
        wake = try fields.optionalString("wake")
        isPersistent = try fields.bool("persistent")
        blocked = try fields.optionalString("blocked")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "name": .string(name), "kind": .string(kind), "when": .string(when),
            "next": .optional(next), "last": .optional(last), "wake": .optional(wake),
            "persistent": .bool(isPersistent), "blocked": .optional(blocked),
        ]
    }
}
