// SPDX-License-Identifier: Apache-2.0

public import Varlink
import WireText

/// Something that an app is told on its own socket.
public struct AppMessage: Hashable, Sendable {
    /// Counts the messages of an incarnation, from 1.
    public var id: Int64
    /// A message of docs/lifecycle.md, such as `didEnterBackground`.
    public var name: String
    /// The time that is left for the answer in milliseconds; nil for no bound.
    public var deadlineMilliseconds: Int64?
    /// What belongs to it: an object.
    public var parameters: JSON

    /// Makes one from its parts.
    public init(id: Int64, name: String, deadlineMilliseconds: Int64? = nil, parameters: JSON = .emptyObject) {
        self.id = id
        self.name = name
        self.deadlineMilliseconds = deadlineMilliseconds
        self.parameters = parameters
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        id = try fields.int("id")
        name = try fields.string("name")
        deadlineMilliseconds = try fields.optionalInt("deadline_ms")
        parameters = fields["parameters"] ?? .emptyObject
    }

    /// It as an object.
    public var json: JSON {
        [
            "id": .int(id), "name": .string(name), "deadline_ms": .optional(deadlineMilliseconds),
            "parameters": parameters,
        ]
    }
}

/// What an app says to a message.
public struct AppAnswer: Hashable, Sendable {
    /// Whether it is done with it.
    public enum Result: String, Hashable, Sendable, CaseIterable {
        /// It is.
        case done
        /// It is, and it did not work.
        case failed
        /// Not yet: another answer follows.
        case pending
        /// It has no use for it: whoever comes next is told. For what no one else can be told, it is done.
        case unhandled
    }

    /// What an app may decline.
    public enum Declined: String, Hashable, Sendable, CaseIterable {
        /// The URL that it would be asked to open.
        case url
        /// The state that it would be asked to restore.
        case restoration
        /// That a snapshot of it is kept.
        case snapshot
    }

    /// What an app found that was told to look for new content.
    public enum Fetched: String, Hashable, Sendable, CaseIterable {
        /// Something new.
        case newData = "new-data"
        /// Nothing new.
        case noData = "no-data"
        /// It could not look.
        case failed
    }

    /// The message's number.
    public var id: Int64
    /// Whether it is done.
    public var result: Result
    /// Why it failed, or what it is doing, in a sentence.
    public var text: String?
    /// How long it takes from now, in milliseconds.
    public var expectedMilliseconds: Int64?
    /// What the app does not want.
    public var declines: [Declined] = []
    /// What it found, in the answer to performFetch.
    public var fetch: Fetched?

    /// Makes one from its parts.
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

    /// A sentence, and no more: it is kept in histories.
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
    /// Names it in calls.
    public var token: Int64
    /// What it is for.
    public var name: String

    /// Makes one from its parts.
    public init(token: Int64, name: String) {
        self.token = token
        self.name = name
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        token = try fields.int("token")
        name = try fields.string("name")
    }

    /// It as an object.
    public var json: JSON { ["token": .int(token), "name": .string(name)] }
}

/// How an app is, as it is told itself.
public struct AppSituation: Hashable, Sendable {
    /// Its name.
    public var app: String
    /// Which run of it, counted from 1.
    public var incarnation: Int64
    /// Its state.
    public var state: String
    /// The edge in flight.
    public var transition: String?
    /// Why it was launched: an object, as in TORPOR_LAUNCH_OPTIONS.
    public var options: JSON = .emptyObject
    /// Its background tasks.
    public var tasks: [AppTask] = []
    /// The scenes inside it that are connected; nil for an app that has none.
    public var scenes: [AppScene]?

    /// Makes one from its parts.
    public init(app: String, incarnation: Int64, state: String, transition: String? = nil) {
        self.app = app
        self.incarnation = incarnation
        self.state = state
        self.transition = transition
    }

    /// Reads it from its object.
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

    /// It as an object.
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
    /// Its name.
    public var name: String
    /// `inactive`, `active` or `background`.
    public var state: String

    /// Makes one from its parts.
    public init(name: String, state: String) { (self.name, self.state) = (name, state) }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        name = try fields.string("name")
        state = try fields.string("state")
    }

    /// It as an object.
    public var json: JSON { ["name": .string(name), "state": .string(state)] }
}
