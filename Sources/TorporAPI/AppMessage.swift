// SPDX-License-Identifier: Apache-2.0

public import Varlink
import WireText

/// A message that torpord sends to an app on the app's own socket.
public struct AppMessage: Hashable, Sendable {
    /// The number of the message in the app's run (its incarnation), from 1.
    public var id: Int64
    /// The message's name as in docs/lifecycle.md, such as `didEnterBackground`.
    public var name: String
    /// Milliseconds left for the app's answer; nil for no deadline.
    public var deadlineMilliseconds: Int64?
    /// The message's parameters: an object.
    public var parameters: JSON

    /// Memberwise initializer.
    public init(id: Int64, name: String, deadlineMilliseconds: Int64? = nil, parameters: JSON = .emptyObject) {
        self.id = id
        self.name = name
        self.deadlineMilliseconds = deadlineMilliseconds
        self.parameters = parameters
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        id = try fields.int("id")
        name = try fields.string("name")
        deadlineMilliseconds = try fields.optionalInt("deadline_ms")
        parameters = fields["parameters"] ?? .emptyObject
    }

    /// Encodes a JSON object.
    public var json: JSON {
        [
            "id": .int(id), "name": .string(name), "deadline_ms": .optional(deadlineMilliseconds),
            "parameters": parameters,
        ]
    }
}

/// An app's answer to a message.
public struct AppAnswer: Hashable, Sendable {
    /// How far the app is with the message.
    public enum Result: String, Hashable, Sendable, CaseIterable {
        /// The app is done.
        case done
        /// The app is done, but something failed.
        case failed
        /// The app needs more time: another answer follows.
        case pending
        /// The app cannot handle the message: torpord passes it to the next app that may handle it. For messages that
        /// go to this app only, this counts as `done`.
        case unhandled
    }

    /// What an app may refuse to do when it answers a message.
    public enum Declined: String, Hashable, Sendable, CaseIterable {
        /// Opening the URL.
        case url
        /// Restoring the app's saved state.
        case restoration
        /// Keeping a snapshot of the app.
        case snapshot
    }

    /// What an app found when torpord asked it to look for new content (the message performFetch).
    public enum Fetched: String, Hashable, Sendable, CaseIterable {
        /// The app found something new.
        case newData = "new-data"
        /// The app found nothing new.
        case noData = "no-data"
        /// The check failed.
        case failed
    }

    /// The number of the message that this answers.
    public var id: Int64
    /// How far the app is with the message.
    public var result: Result
    /// Why the app failed, or what it is doing, in a sentence.
    public var text: String?
    /// How long the app needs from now, in milliseconds.
    public var expectedMilliseconds: Int64?
    /// What the app declines.
    public var declines: [Declined] = []
    /// What the app found, in the answer to performFetch.
    public var fetch: Fetched?

    /// Sets the required fields; the others keep their defaults.
    public init(id: Int64, result: Result = .done, text: String? = nil) {
        self.id = id
        self.result = result
        self.text = text
    }

    init(fields: Fields) throws(FieldError) {
        id = try fields.int("id")
        let name = try fields.string("result")
        guard let result = Result(rawValue: name) else {
            throw FieldError(field: "result", problem: "must be done, failed, pending or unhandled")
        }
        self.result = result
        text = try fields.optionalString("text").map(Self.cut)
        expectedMilliseconds = try fields.optionalInt("expected_ms")
        guard (expectedMilliseconds ?? 0) >= 0 else {
            throw FieldError(field: "expected_ms", problem: "must be at least 0")
        }
        for name in try fields.strings("declines") {
            guard let declined = Declined(rawValue: name) else {
                throw FieldError(field: "declines", problem: "may have only url, restoration and snapshot")
            }
            declines.append(declined)
        }
        if let name = try fields.optionalString("fetch") {
            guard let found = Fetched(rawValue: name) else {
                throw FieldError(field: "fetch", problem: "must be new-data, no-data or failed")
            }
            fetch = found
        }
    }

    /// The maximum length of `text` in bytes. It is limited because torpord stores the text in histories.
    private static let longestText = 1_024

    private static func cut(_ text: String) -> String {
        text.utf8.count <= longestText ? text : String(wire: text.utf8.prefix(longestText))
    }

    var parameters: JSON {
        [
            "id": .int(id), "result": .string(result.rawValue), "text": .optional(text),
            "expected_ms": .optional(expectedMilliseconds), "declines": .strings(declines.map(\.rawValue)),
            "fetch": .optional(fetch?.rawValue),
        ]
    }
}

/// A background task of an app.
public struct AppTask: Hashable, Sendable {
    /// Identifies the task in calls.
    public var token: Int64
    /// What the task is for, as named by the app.
    public var name: String

    /// Memberwise initializer.
    public init(token: Int64, name: String) {
        self.token = token
        self.name = name
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        token = try fields.int("token")
        name = try fields.string("name")
    }

    /// Encodes a JSON object.
    public var json: JSON { ["token": .int(token), "name": .string(name)] }
}

/// The status of an app as the app itself sees it.
public struct AppSituation: Hashable, Sendable {
    /// The app's name.
    public var app: String
    /// The number of the app's run, counted from 1.
    public var incarnation: Int64
    /// The app's state.
    public var state: String
    /// The transition in progress, such as `launching`; nil for none.
    public var transition: String?
    /// Why the app was launched: an object, as in TORPOR_LAUNCH_OPTIONS.
    public var options: JSON = .emptyObject
    /// The app's background tasks.
    public var tasks: [AppTask] = []
    /// The app's connected scenes; nil for an app without scenes inside it.
    public var scenes: [AppScene]?

    /// Sets the required fields; the others keep their defaults.
    public init(app: String, incarnation: Int64, state: String, transition: String? = nil) {
        self.app = app
        self.incarnation = incarnation
        self.state = state
        self.transition = transition
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        app = try fields.string("app")
        incarnation = try fields.int("incarnation")
        state = try fields.string("state")
        transition = try fields.optionalString("transition")
        options = fields["options"] ?? .emptyObject
        tasks = try fields.list("tasks") { json throws(FieldError) in try AppTask(json: json) }
        if let scenes = fields["scenes"], !scenes.isNull {
            self.scenes = try fields.list("scenes") { json throws(FieldError) in try AppScene(json: json) }
        }
    }

    /// Encodes a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "incarnation": .int(incarnation), "state": .string(state),
            "transition": .optional(transition), "options": options, "tasks": .array(tasks.map(\.json)),
            "scenes": scenes.map { JSON.array($0.map(\.json)) } ?? .null,
        ]
    }
}

/// A scene inside an app, as the app's delegate sees it.
public struct AppScene: Hashable, Sendable {
    /// The scene's name.
    public var name: String
    /// The scene's state: `inactive`, `active` or `background`.
    public var state: String

    /// Memberwise initializer.
    public init(name: String, state: String) { (self.name, self.state) = (name, state) }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        name = try fields.string("name")
        state = try fields.string("state")
    }

    /// Encodes a JSON object.
    public var json: JSON { ["name": .string(name), "state": .string(state)] }
}
