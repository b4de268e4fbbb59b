// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A timer of an app, or its fetch mode: when it fires next, and when it last fired.
public struct TimerStatus: Hashable, Sendable {
    /// The app's name.
    public var app: String
    /// Its name within the app; `fetch` for the fetch mode.
    public var name: String
    /// `timer` or `fetch`.
    public var kind: String
    /// Its times as configured; for the fetch mode what was learned.
    public var when = ""
    /// When it fires next, microseconds since 1970; nil for never.
    public var next: Int64?
    /// When it last fired, microseconds since 1970.
    public var last: Int64?
    /// How it wakes the app: `background`, `foreground` or `none`.
    public var wake: String?
    /// Whether missed times are caught up.
    public var isPersistent = false
    /// Why it wakes nothing for now: `stopped`, `force-quit` or `failed`, until the app is started.
    public var blocked: String?

    /// Sets what every timer has.
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

    /// Encodes a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "name": .string(name), "kind": .string(kind), "when": .string(when),
            "next": .optional(next), "last": .optional(last), "wake": .optional(wake),
            "persistent": .bool(isPersistent), "blocked": .optional(blocked),
        ]
    }
}
