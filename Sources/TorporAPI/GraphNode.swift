// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// An app and its dependencies.
public struct GraphNode: Hashable, Sendable {
    /// The app's name.
    public var app: String
    /// The app's state.
    public var state: String
    /// Whether the supervisor gave up restarting the app.
    public var failed: Bool
    /// The apps that must be ready before this app is launched, and are stopped after it.
    public var requires: [String]
    /// The apps that are launched before this app, if they are launched at all.
    public var after: [String]

    /// Memberwise initializer.
    public init(app: String, state: String, failed: Bool = false, requires: [String] = [], after: [String] = []) {
        self.app = app
        self.state = state
        self.failed = failed
        self.requires = requires
        self.after = after
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        app = try fields.string("app")
        state = try fields.string("state")
        failed = try fields.bool("failed")
        requires = try fields.strings("requires")
        after = try fields.strings("after")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "state": .string(state), "failed": .bool(failed), "requires": .strings(requires),
            "after": .strings(after),
        ]
    }
}
