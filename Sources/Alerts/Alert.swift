// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
public import Varlink

/// An alert that an app shows to users. It is either scheduled, or open: its time has come, and no user has answered
/// it yet.
///
/// Each time that a repeated alert is due, a new alert with an ``opening`` is made; the repeated alert itself stays
/// scheduled.
public struct Alert: Hashable, Sendable {
    /// How much an alert matters.
    public enum Urgency: String, Hashable, Sendable, CaseIterable {
        case low, normal, critical
    }

    /// When an alert is due.
    public enum Time: Hashable, Sendable {
        /// At a moment, in microseconds since 1970.
        case at(Int64)
        /// After some time, even if the wall clock is set in between. In the boot `boot`, the alert comes when the time
        /// since boot is `running`. In another boot, it comes when the wall clock shows `wall`. Both in microseconds.
        case after(wall: Int64, running: Int64, boot: String)
        /// At a local time in the named time zone; nil for the machine's zone. Given in microseconds since 1970, as
        /// if the local time were UTC.
        case local(Int64, zone: String?)
        /// At each time of a calendar expression.
        case calendar(String)
    }

    /// The alert's number, unique among all alerts and never reused.
    public var number: Int64
    /// The app's name.
    public var app: String
    /// The name that the app gave the alert.
    public var id: String
    /// The title: one line of plain text.
    public var title: String
    /// The body: plain text, possibly with newlines.
    public var body = ""
    /// How much the alert matters.
    public var urgency = Urgency.normal
    /// The sound: a name of the XDG sound theme.
    public var sound: String?
    /// The number that the app's badge shows once the alert comes.
    public var badge: Int64?
    /// The alert's buttons.
    public var actions: [AlertAction] = []
    /// The URL that is opened when a user chooses the alert.
    public var url: String?
    /// Data that the app receives back when a user answers the alert.
    public var payload: JSON = .null
    /// Whether the alert also wakes or launches the app in the background when it comes.
    public var wake = false
    /// The request's token for idempotent retries; 0 for none.
    public var token: UInt64 = 0
    /// When the alert is due.
    public var time: Time
    /// Whether an operator scheduled the alert. Such an alert may have any URL.
    public var isOperators = false
    /// The permission that the alert asks a user for; nil for every other alert. Only torpord makes alerts with a
    /// permission, and the app can neither see nor change them.
    public var permission: String?
    /// For calendar times: only times after this moment count, in microseconds since 1970.
    public var base: Int64
    /// The end of the quiet hours that hold the alert back, in microseconds since 1970; nil if none do.
    public var heldUntil: Int64?
    /// The alert's state after its time has come; nil while it is scheduled.
    public var opening: Opening?

    /// Creates an alert without options.
    public init(number: Int64, app: String, id: String, title: String, time: Time, base: Int64) {
        (self.number, self.app, self.id, self.title) = (number, app, id, title)
        (self.time, self.base) = (time, base)
    }

    /// The calendar expression of a repeated alert; nil for other alerts.
    public var calendar: String? { if case .calendar(let text) = time { text } else { nil } }
}

/// The state of an alert whose time has come.
public struct Opening: Hashable, Sendable {
    /// An app that is inactive because of a critical alert.
    public struct Interrupted: Hashable, Sendable {
        /// The app's name.
        public var app: String
        /// The number of the interrupted launch of the app.
        public var incarnation: UInt32

        /// Memberwise initializer.
        public init(app: String, incarnation: UInt32) { (self.app, self.incarnation) = (app, incarnation) }
    }

    /// A user's answer, which the app has not received yet.
    public struct Answer: Hashable, Sendable {
        /// The user's choice: `default`, or the id of an action.
        public var action: String
        /// The activation token that the window manager wants before it raises the app's window.
        public var token: String?

        /// Memberwise initializer.
        public init(action: String, token: String?) { (self.action, self.token) = (action, token) }
    }

    /// The notification that shows an alert on a screen.
    public struct Place: Hashable, Sendable {
        /// The notification server's unique name.
        public var server: String
        /// The server's number for the alert.
        public var number: Int64

        /// Memberwise initializer.
        public init(server: String, number: Int64) { (self.server, self.number) = (server, number) }
    }

    /// The time for which the alert was scheduled, in microseconds since 1970.
    public var scheduledAt: Int64
    /// When the alert came, in microseconds since 1970.
    public var openedAt: Int64
    /// The number of the repeated alert that led to this alert; nil for other alerts.
    public var parent: Int64?
    /// Whether torpord has decided how to show the alert, and has notified the app if necessary.
    public var isDelivered = false
    /// How often the alert's commands were started.
    public var tries: Int64 = 0
    /// Whether the alert's commands have ended, or need not run.
    public var isRun = false
    /// Whether a screen has shown the alert.
    public var isShown = false
    /// The notification server that has shown the alert last, and its number there; nil if none has.
    public var place: Place?
    /// Whether the notification server's timeout has removed the alert from the screen. Such an alert is not shown
    /// again.
    public var hasLeft = false
    /// The number under which this alert and others are shown as one alert; nil if this alert is shown alone.
    public var bundle: Int64?
    /// The apps that the alert interrupts.
    public var interrupted: [Interrupted] = []
    /// A user's answer; nil once torpord has carried it out.
    public var answer: Answer?

    /// Creates the state of an alert whose time has just come.
    public init(scheduledAt: Int64, openedAt: Int64, parent: Int64? = nil) {
        (self.scheduledAt, self.openedAt, self.parent) = (scheduledAt, openedAt, parent)
    }
}

// MARK: The stored form

extension Alert {
    /// Decodes a stored alert; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            number: try fields.int("number"),
            app: try fields.string("app"),
            id: try fields.string("id"),
            title: try fields.string("title"),
            time: try Time(fields: fields),
            base: try fields.int("base")
        )
        body = try fields.optionalString("body") ?? ""
        urgency = Urgency(rawValue: try fields.optionalString("urgency") ?? "") ?? .normal
        sound = try fields.optionalString("sound")
        badge = try fields.optionalInt("badge")
        actions = try fields.list("actions") { json throws(FieldError) in
            let fields = try Fields(json)
            return AlertAction(id: try fields.string("id"), label: try fields.string("label"))
        }
        url = try fields.optionalString("url")
        payload = fields["payload"] ?? .null
        wake = try fields.optionalBool("wake") ?? false
        token = UInt64(bitPattern: try fields.optionalInt("token") ?? 0)
        isOperators = try fields.optionalBool("operators") ?? false
        permission = try fields.optionalString("permission")
        heldUntil = try fields.optionalInt("held_until")
        if let json = fields["opening"], json != .null { opening = try Opening(json: json) }
    }

    /// Encodes the alert for the store.
    public var json: JSON {
        var object: JSONObject = [
            "number": .int(number), "app": .string(app), "id": .string(id), "title": .string(title),
            "base": .int(base),
        ]
        for member in time.members.members { object[member.name] = member.value }
        if !body.isEmpty { object["body"] = .string(body) }
        if urgency != .normal { object["urgency"] = .string(urgency.rawValue) }
        if let sound { object["sound"] = .string(sound) }
        if let badge { object["badge"] = .int(badge) }
        if !actions.isEmpty {
            object["actions"] = .array(actions.map { ["id": .string($0.id), "label": .string($0.label)] })
        }
        if let url { object["url"] = .string(url) }
        if payload != .null { object["payload"] = payload }
        if wake { object["wake"] = true }
        if token != 0 { object["token"] = .int(Int64(bitPattern: token)) }
        if isOperators { object["operators"] = true }
        if let permission { object["permission"] = .string(permission) }
        if let heldUntil { object["held_until"] = .int(heldUntil) }
        if let opening { object["opening"] = opening.json }
        return .object(object)
    }
}

extension Alert.Time {
    fileprivate init(fields: Fields) throws(FieldError) {
        if let at = try fields.optionalInt("at") {
            self = .at(at)
        } else if let wall = try fields.optionalInt("after_wall") {
            self = .after(wall: wall, running: try fields.int("after_running"), boot: try fields.string("boot"))
        } else if let local = try fields.optionalInt("local") {
            self = .local(local, zone: try fields.optionalString("zone"))
        } else {
            self = .calendar(try fields.string("calendar"))
        }
    }

    fileprivate var members: JSONObject {
        switch self {
        case .at(let moment): ["at": .int(moment)]
        case .after(let wall, let running, let boot):
            ["after_wall": .int(wall), "after_running": .int(running), "boot": .string(boot)]
        case .local(let local, let zone): ["local": .int(local), "zone": .optional(zone)]
        case .calendar(let text): ["calendar": .string(text)]
        }
    }
}

extension Opening {
    fileprivate init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            scheduledAt: try fields.int("scheduled_at"),
            openedAt: try fields.int("opened_at"),
            parent: try fields.optionalInt("parent")
        )
        isDelivered = try fields.optionalBool("delivered") ?? false
        tries = try fields.optionalInt("tries") ?? 0
        isRun = try fields.optionalBool("run") ?? false
        isShown = try fields.optionalBool("shown") ?? false
        hasLeft = try fields.optionalBool("left") ?? false
        bundle = try fields.optionalInt("bundle")
        if let server = try fields.optionalString("server") {
            place = Place(server: server, number: try fields.int("server_number"))
        }
        interrupted = try fields.list("interrupted") { json throws(FieldError) in
            let fields = try Fields(json)
            return Interrupted(
                app: try fields.string("app"),
                incarnation: UInt32(clamping: try fields.int("incarnation"))
            )
        }
        if let action = try fields.optionalString("action") {
            answer = Answer(action: action, token: try fields.optionalString("activation_token"))
        }
    }

    fileprivate var json: JSON {
        var object: JSONObject = ["scheduled_at": .int(scheduledAt), "opened_at": .int(openedAt)]
        if let parent { object["parent"] = .int(parent) }
        if isDelivered { object["delivered"] = true }
        if tries > 0 { object["tries"] = .int(tries) }
        if isRun { object["run"] = true }
        if isShown { object["shown"] = true }
        if hasLeft { object["left"] = true }
        if let bundle { object["bundle"] = .int(bundle) }
        if let place { (object["server"], object["server_number"]) = (.string(place.server), .int(place.number)) }
        if !interrupted.isEmpty {
            object["interrupted"] = .array(
                interrupted.map { ["app": .string($0.app), "incarnation": .int(Int64($0.incarnation))] }
            )
        }
        if let answer {
            object["action"] = .string(answer.action)
            if let token = answer.token { object["activation_token"] = .string(token) }
        }
        return .object(object)
    }
}
