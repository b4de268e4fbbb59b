// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A button of an alert.
public struct AlertAction: Hashable, Sendable {
    /// The app's name for it.
    public var id: String
    /// The text of the button.
    public var label: String

    /// Makes one.
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

/// The parameters of ScheduleAlert: one of `at`, `after` and `calendar`, or none for an alert that is due at once.
public struct ScheduleAlertRequest: Hashable, Sendable {
    /// The app's name for the alert; nil for a new one. An alert of the same name is replaced.
    public var id: String?
    /// One line for people.
    public var title: String
    /// More text; empty for none.
    public var body = ""
    /// RFC 3339, or the same without an offset: then it is a time of day in `timeZone`.
    public var at: String?
    /// `local`, for the machine's zone as it is then (the default), or a name such as `Europe/Berlin`.
    public var timeZone: String?
    /// Milliseconds from now.
    public var after: Int64?
    /// A calendar expression: the alert is repeated.
    public var calendar: String?
    /// A name of the XDG sound theme.
    public var sound: String?
    /// The app's badge from then on.
    public var badge: Int64?
    /// `low`, `normal` or `critical`.
    public var urgency = "normal"
    /// The buttons.
    public var actions: [AlertAction] = []
    /// What to open when a person chooses the alert.
    public var url: String?
    /// What the app is told with it.
    public var payload: JSON = .null
    /// Whether it also wakes or launches the app in the background.
    public var wake = false
    /// The alert is scheduled once, however often the request is sent.
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

/// An alert that is scheduled, or open: it came, and was neither answered nor dismissed.
public struct AlertInfo: Hashable, Sendable {
    /// Its number. Each time a repeated alert comes has a number of its own.
    public var number: Int64
    /// The app that it belongs to.
    public var app: String
    /// The app's name for it.
    public var id: String
    /// `scheduled` or `open`.
    public var state: String
    /// One line for people.
    public var title: String
    /// More text, possibly empty.
    public var body = ""
    /// `low`, `normal` or `critical`.
    public var urgency = "normal"
    /// When a scheduled one comes next, or for when an open one was scheduled; microseconds since 1970.
    public var at: Int64?
    /// When an open one came, microseconds since 1970.
    public var openedAt: Int64?
    /// The calendar expression of a repeated one.
    public var calendar: String?
    /// The end of the quiet hours that it waits for, or will wait for when it is due; microseconds since 1970.
    public var heldUntil: Int64?
    /// The buttons.
    public var actions: [AlertAction] = []
    /// What a person opens by it.
    public var url: String?
    /// The permission that the app asks for by it; nil for every other alert.
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

    /// Encodes a JSON object.
    public var json: JSON {
        [
            "number": .int(number), "app": .string(app), "id": .string(id), "state": .string(state),
            "title": .string(title), "body": .string(body), "urgency": .string(urgency), "at": .optional(at),
            "opened_at": .optional(openedAt), "calendar": .optional(calendar), "held_until": .optional(heldUntil),
            "actions": .array(actions.map(\.json)), "url": .optional(url), "permission": .optional(permission),
        ]
    }
}

/// The parameters of Manager's ScheduleAlert.
public struct ScheduleAppAlertRequest: Hashable, Sendable {
    /// The app that the alert belongs to.
    public var app: String
    /// The alert.
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

/// Which alerts: all of these apps, or those with these ids or numbers.
public struct AlertsRequest: Hashable, Sendable {
    /// Of these apps: names, patterns or `tag:NAME`; empty for all.
    public var apps: [String] = []
    /// With these ids. Without ids and numbers: all. An empty list is no alert.
    public var ids: [String]?
    /// With these numbers.
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

/// The parameters of Manager's AnswerAlert: a number, or an app and the id of one of its alerts.
public struct AnswerAlertRequest: Hashable, Sendable {
    /// The number of an open alert.
    public var number: Int64?
    /// The app, with `id`; nil if only one app has an open alert of that id.
    public var app: String?
    /// The id of an open alert; the latest one if it was repeated.
    public var id: String?
    /// `default`, or the id of one of its actions.
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
