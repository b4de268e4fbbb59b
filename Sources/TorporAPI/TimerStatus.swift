// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A timer of an app, or its fetch mode: when it comes, and when it came.
public struct TimerStatus: Hashable, Sendable {
    /// The app's name.
    public var app: String
    /// What it is called among the app's; `fetch` for the fetch mode.
    public var name: String
    /// `timer` or `fetch`.
    public var kind: String
    /// What the configuration says of when it comes; of the fetch mode, what was learned.
    public var when = ""
    /// When it comes next, microseconds since 1970; nil for never.
    public var next: Int64?
    /// When it came last, microseconds since 1970.
    public var last: Int64?
    /// How it wakes the app: `background`, `foreground` or `none`.
    public var wake: String?
    /// Whether times that were missed are made up for.
    public var isPersistent = false
    /// Why it wakes nothing for now: `stopped`, `force-quit` or `failed`, until the app is started.
    public var blocked: String?

    /// Makes one from what every timer has.
    public init(app: String, name: String, kind: String) {
        self.app = app
        self.name = name
        self.kind = kind
    }

    /// Reads it from its object.
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

    /// It as an object.
    public var json: JSON {
        [
            "app": .string(app), "name": .string(name), "kind": .string(kind), "when": .string(when),
            "next": .optional(next), "last": .optional(last), "wake": .optional(wake),
            "persistent": .bool(isPersistent), "blocked": .optional(blocked),
        ]
    }
}
