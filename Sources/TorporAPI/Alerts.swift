// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A button of an alert.
public struct AlertAction: Hashable, Sendable {
    /// The id that the app gave the button.
    public var id: String
    /// The text of the button.
    public var label: String

    /// Creates a button.
    public init(id: String, label: String) {
        self.id = id
        self.label = label
    }

    init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(id: try fields.string("id"), label: try fields.string("label"))
    }

    var json: JSON { ["id": .string(id), "label": .string(label)] }
}

/// The parameters of ScheduleAlert, with one of `at`, `after` and `calendar`; with none, the alert is due at once.
public struct ScheduleAlertRequest: Hashable, Sendable {
    /// The id that the app gives the alert; nil for a new id. An alert that has this id already is replaced.
    public var id: String?
    /// The alert's text in one line, for users.
    public var title: String
    /// More text below the title; empty for none.
    public var body = ""
    /// When the alert is due, as in RFC 3339; without an offset it is a local time in `timeZone`. A time without a
    /// date, such as `14:30`, is the next time at which clocks in that zone show it.
    public var at: String?
    /// The time zone of `at`: `local` (the machine's zone when the alert is due; the default) or a name such as
    /// `Europe/Berlin`.
    public var timeZone: String?
    /// When the alert is due, in milliseconds from now.
    public var after: Int64?
    /// A calendar expression: the alert is due at each time that matches.
    public var calendar: String?
    /// The sound to play: a name of the XDG sound theme.
    public var sound: String?
    /// The number for the app's badge (at its menu entry) from the time when the alert is shown; nil to leave it
    /// unchanged.
    public var badge: Int64?
    /// The urgency: `low`, `normal` or `critical`.
    public var urgency = "normal"
    /// The buttons of the alert.
    public var actions: [AlertAction] = []
    /// The URL to open when a user chooses the alert; nil for none.
    public var url: String?
    /// Data that the app receives with the alert.
    public var payload: JSON = .null
    /// Whether the alert also wakes or launches the app in the background.
    public var wake = false
    /// Makes the request idempotent: however often torpord receives this token, it schedules the alert only once.
    public var token: RequestToken?

    /// An alert that is due at once.
    public init(title: String) { self.title = title }

    init(fields: Fields) throws(FieldError) {
        self.init(title: try fields.string("title"))
        id = try fields.optionalString("id")
        body = try fields.optionalString("body") ?? ""
        at = try fields.optionalString("at")
        timeZone = try fields.optionalString("time_zone")
        after = try fields.optionalInt("after_ms")
        calendar = try fields.optionalString("calendar")
        sound = try fields.optionalString("sound")
        badge = try fields.optionalInt("badge")
        urgency = try fields.optionalString("urgency") ?? "normal"
        actions = try fields.list("actions") { json throws(FieldError) in try AlertAction(json: json) }
        url = try fields.optionalString("url")
        payload = fields["payload"] ?? .null
        wake = try fields.optionalBool("wake") ?? false
        token = try fields.optionalToken("token")
    }

    var members: JSONObject {
        var object: JSONObject = ["title": .string(title)]
        if let id { object["id"] = .string(id) }
        if !body.isEmpty { object["body"] = .string(body) }
        if let at { object["at"] = .string(at) }
        if let timeZone { object["time_zone"] = .string(timeZone) }
        if let after { object["after_ms"] = .int(after) }
        if let calendar { object["calendar"] = .string(calendar) }
        if let sound { object["sound"] = .string(sound) }
        if let badge { object["badge"] = .int(badge) }
        if urgency != "normal" { object["urgency"] = .string(urgency) }
        if !actions.isEmpty { object["actions"] = .array(actions.map(\.json)) }
        if let url { object["url"] = .string(url) }
        if payload != .null { object["payload"] = payload }
        if wake { object["wake"] = true }
        if let token { object["token"] = .string(token.text) }
        return object
    }
}

/// An alert that is scheduled, or an open alert: one that was shown and neither answered nor dismissed.
public struct AlertInfo: Hashable, Sendable {
    /// The alert's number. A repeated alert gets a new number each time it is due.
    public var number: Int64
    /// The app that the alert belongs to.
    public var app: String
    /// The id that the app gave the alert.
    public var id: String
    /// The alert's state: `scheduled` or `open`.
    public var state: String
    /// The alert's text in one line, for users.
    public var title: String
    /// More text below the title; may be empty.
    public var body = ""
    /// The urgency: `low`, `normal` or `critical`.
    public var urgency = "normal"
    /// When a scheduled alert is due next, or when an open alert was due; microseconds since 1970.
    public var at: Int64?
    /// When an open alert was shown, microseconds since 1970.
    public var openedAt: Int64?
    /// The calendar expression of a repeated alert.
    public var calendar: String?
    /// The end of the quiet hours for which the alert waits, or will wait when it is due, in microseconds since 1970;
    /// nil for none.
    public var heldUntil: Int64?
    /// The buttons of the alert.
    public var actions: [AlertAction] = []
    /// The URL that opens when a user chooses the alert.
    public var url: String?
    /// The permission that the alert asks a user for; nil for every other alert.
    public var permission: String?

    /// Sets the required fields; the others keep their defaults.
    public init(number: Int64, app: String, id: String, state: String, title: String) {
        (self.number, self.app, self.id, self.state, self.title) = (number, app, id, state, title)
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            number: try fields.int("number"),
            app: try fields.string("app"),
            id: try fields.string("id"),
            state: try fields.string("state"),
            title: try fields.string("title")
        )
        body = try fields.optionalString("body") ?? ""
        urgency = try fields.optionalString("urgency") ?? "normal"
        at = try fields.optionalInt("at")
        openedAt = try fields.optionalInt("opened_at")
        calendar = try fields.optionalString("calendar")
        heldUntil = try fields.optionalInt("held_until")
        actions = try fields.list("actions") { json throws(FieldError) in try AlertAction(json: json) }
        url = try fields.optionalString("url")
        permission = try fields.optionalString("permission")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "number": .int(number), "app": .string(app), "id": .string(id), "state": .string(state),
            "title": .string(title), "body": .string(body), "urgency": .string(urgency), "at": .optional(at),
            "opened_at": .optional(openedAt), "calendar": .optional(calendar), "held_until": .optional(heldUntil),
            "actions": .array(actions.map(\.json)), "url": .optional(url), "permission": .optional(permission),
        ]
    }
}

/// The parameters of ScheduleAlert in `io.torpor.Manager`.
public struct ScheduleAppAlertRequest: Hashable, Sendable {
    /// The app that the alert belongs to.
    public var app: String
    /// The alert to schedule.
    public var alert: ScheduleAlertRequest

    /// Memberwise initializer.
    public init(app: String, alert: ScheduleAlertRequest) { (self.app, self.alert) = (app, alert) }

    init(fields: Fields) throws(FieldError) {
        self.init(app: try fields.string("app"), alert: try ScheduleAlertRequest(fields: fields))
    }

    var parameters: JSON {
        var object = alert.members
        object["app"] = .string(app)
        return .object(object)
    }
}

/// Selects alerts: all alerts of some apps, or only those with certain ids or numbers.
public struct AlertsRequest: Hashable, Sendable {
    /// Select only alerts of these apps: names, patterns or `tag:NAME`; empty for all apps.
    public var apps: [String] = []
    /// Select only alerts with these ids; an empty list selects none. If `ids` and `numbers` are both nil, all alerts
    /// of the apps are selected.
    public var ids: [String]?
    /// Select only alerts with these numbers.
    public var numbers: [Int64]?

    /// Memberwise initializer.
    public init(apps: [String] = [], ids: [String]? = nil, numbers: [Int64]? = nil) {
        (self.apps, self.ids, self.numbers) = (apps, ids, numbers)
    }

    init(fields: Fields) throws(FieldError) {
        apps = try fields.strings("apps")
        ids = try fields["ids"] == nil ? nil : fields.strings("ids")
        numbers = try fields["numbers"] == nil ? nil : fields.integers("numbers")
    }

    var parameters: JSON {
        var object: JSONObject = [:]
        if !apps.isEmpty { object["apps"] = .strings(apps) }
        if let ids { object["ids"] = .strings(ids) }
        if let numbers { object["numbers"] = .array(numbers.map { .int($0) }) }
        return .object(object)
    }
}

/// The parameters of AnswerAlert in `io.torpor.Manager`: a number, or an app and the id of one of its alerts.
public struct AnswerAlertRequest: Hashable, Sendable {
    /// The number of an open alert.
    public var number: Int64?
    /// The app of the alert with this `id`; may be nil if only one app has an open alert with that id.
    public var app: String?
    /// The id of an open alert. For a repeated alert, it stands for the latest open one.
    public var id: String?
    /// The answer: `default`, or the id of one of the alert's buttons.
    public var action = "default"

    /// Memberwise initializer.
    public init(number: Int64? = nil, app: String? = nil, id: String? = nil, action: String = "default") {
        (self.number, self.app, self.id, self.action) = (number, app, id, action)
    }

    init(fields: Fields) throws(FieldError) {
        number = try fields.optionalInt("number")
        app = try fields.optionalString("app")
        id = try fields.optionalString("id")
        action = try fields.optionalString("action") ?? "default"
        guard (number == nil) != (id == nil) else {
            throw FieldError(field: "id", problem: "or number: give one of the two")
        }
    }

    var parameters: JSON {
        var object: JSONObject = ["action": .string(action)]
        if let number { object["number"] = .int(number) }
        if let app { object["app"] = .string(app) }
        if let id { object["id"] = .string(id) }
        return .object(object)
    }
}
