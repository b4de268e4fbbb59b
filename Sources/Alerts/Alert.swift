// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
public import Varlink

/// An alert of an app for people: scheduled, or open, which means that it came and was not answered yet.
///
/// Each time a repeated alert comes is an alert of its own with an ``opening``; the repeated one stays scheduled.
public struct Alert: Hashable, Sendable {
    /// How much an alert matters.
    public enum Urgency: String, Hashable, Sendable, CaseIterable {
        case low, normal, critical
    }

    /// When it is due.
    public enum Time: Hashable, Sendable {
        /// At that moment, in microseconds since 1970.
        case at(Int64)
        /// When some time has passed, however the clock is set: at `running` since the boot `boot`, or, after another
        /// boot, at `wall`. Both in microseconds.
        case after(wall: Int64, running: Int64, boot: String)
        /// When clocks show a time: microseconds as if it were UTC, in a zone by its name, or the machine's.
        case local(Int64, zone: String?)
        /// At each time of a calendar expression.
        case calendar(String)
    }

    /// Unique among all alerts, and never used again.
    public var number: Int64
    /// The app's name.
    public var app: String
    /// The app's name for it.
    public var id: String
    /// One line of plain text.
    public var title: String
    /// Plain text, possibly with newlines.
    public var body = ""
    /// How much it matters.
    public var urgency = Urgency.normal
    /// A name of the XDG sound theme.
    public var sound: String?
    /// The app's badge once it comes.
    public var badge: Int64?
    /// The buttons.
    public var actions: [AlertAction] = []
    /// What a person opens by it.
    public var url: String?
    /// What the app is told with it.
    public var payload: JSON = .null
    /// Whether it also wakes the app in the background.
    public var wake = false
    /// The request's token for idempotent retries; 0 for none.
    public var token: UInt64 = 0
    /// When it is due.
    public var time: Time
    /// An operator scheduled it, who may open any URL.
    public var isOperators = false
    /// The permission that the app asks people for by it; nil for every other alert. Only torpord makes such an alert,
    /// and its app can neither change nor see it.
    public var permission: String?
    /// Calendar times after this one count, in microseconds since 1970.
    public var base: Int64
    /// The end of the quiet hours that it waits for, in microseconds since 1970.
    public var heldUntil: Int64?
    /// Set once it came.
    public var opening: Opening?

    /// An alert without its options.
    public init(number: Int64, app: String, id: String, title: String, time: Time, base: Int64) {
        (self.number, self.app, self.id, self.title) = (number, app, id, title)
        (self.time, self.base) = (time, base)
    }

    /// The calendar expression of a repeated one.
    public var calendar: String? { if case .calendar(let text) = time { text } else { nil } }
}

/// What became of an alert that came.
public struct Opening: Hashable, Sendable {
    /// An app that is inactive because of a critical alert.
    public struct Interrupted: Hashable, Sendable {
        /// Its name.
        public var app: String
        /// The run that was interrupted.
        public var incarnation: UInt32

        /// Memberwise initializer.
        public init(app: String, incarnation: UInt32) { (self.app, self.incarnation) = (app, incarnation) }
    }

    /// A person's answer that the app has not got yet.
    public struct Answer: Hashable, Sendable {
        /// `default`, or the id of an action.
        public var action: String
        /// What a window manager wants to see before it raises the app's window.
        public var token: String?

        /// Memberwise initializer.
        public init(action: String, token: String?) { (self.action, self.token) = (action, token) }
    }

    /// For when it was scheduled, in microseconds since 1970.
    public var scheduledAt: Int64
    /// When it came, in microseconds since 1970.
    public var openedAt: Int64
    /// The repeated alert that it belongs to.
    public var parent: Int64?
    /// Whether it was decided that it is shown, and the app, which has `wake`, told.
    public var isDelivered = false
    /// How often its commands were started.
    public var tries: Int64 = 0
    /// Its commands have ended, or need not run.
    public var isRun = false
    /// A screen has shown it.
    public var isShown = false
    /// The alert has left the screen, since its time there was over: it is not shown again.
    public var hasLeft = false
    /// It is one of many that were shown as one: the number of that one.
    public var bundle: Int64?
    /// The apps that it interrupts.
    public var interrupted: [Interrupted] = []
    /// A person's answer, until it is carried out.
    public var answer: Answer?

    /// An alert that comes now.
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

    /// The stored form.
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
