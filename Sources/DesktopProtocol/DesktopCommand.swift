// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A message from torpord to torpor-desktop: a JSON object that ends with a NUL, like messages of Varlink.
public enum DesktopCommand: Hashable, Sendable {
    /// The first message of each torpord. torpor-desktop replies with `here`, then with all unacknowledged reports.
    case hello
    /// Show an alert. If an alert with the same id is on the screen, replace it without a sound.
    case show(DesktopAlert)
    /// Remove an alert from the screen. Ignored if the id is unknown.
    case close(id: Int64)
    /// Show a number at an app's entry in the dock; 0 removes the number.
    case badge(entry: String, count: Int64)
    /// Start reporting which process has the keyboard focus; nil to stop.
    case follow(DesktopFocus?)
    /// Start (true) or stop (false) reporting which processes play or record sound.
    case listen(Bool)
    /// torpord has stored the report about this alert: do not repeat it.
    case acknowledge(id: Int64)
    /// Focus the window of these processes that had the focus last. Ignored unless the focus is followed.
    case raise(pids: [Int32])
    /// Reply with `pong` at once. torpord uses this to check whether torpor-desktop still works.
    case ping(number: Int64)

    /// The most processes in one command; further ones are left out. Parents come first, since they usually own the
    /// windows.
    public static let mostPids = 256

    /// Decodes a command.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        let kind = try fields.string("command")
        switch kind {
        case "hello": self = .hello
        case "show": self = .show(try DesktopAlert(fields: try Fields(fields["alert"] ?? .null)))
        case "close": self = .close(id: try fields.int("id"))
        case "badge": self = .badge(entry: try fields.string("entry"), count: try fields.int("count"))
        case "follow":
            self = .follow(try fields.optionalString("focus").map { name throws(FieldError) in try DesktopFocus(name) })
        case "listen": self = .listen(try fields.bool("on"))
        case "acknowledge": self = .acknowledge(id: try fields.int("id"))
        case "raise":
            let pids = try fields.list("pids") { json throws(FieldError) in
                guard let pid = json.intValue.flatMap({ Int32(exactly: $0) }), pid > 0 else {
                    throw FieldError(field: "pids", problem: "must have processes")
                }
                return pid
            }
            self = .raise(pids: Array(pids.prefix(Self.mostPids)))
        case "ping": self = .ping(number: try fields.int("number"))
        default: throw FieldError(field: "command", problem: "is \(kind), which is unknown")
        }
    }

    /// The encoded command.
    public var json: JSON {
        switch self {
        case .hello: ["command": "hello"]
        case .show(let alert): ["command": "show", "alert": alert.json]
        case .close(let id): ["command": "close", "id": .int(id)]
        case .badge(let entry, let count): ["command": "badge", "entry": .string(entry), "count": .int(count)]
        case .follow(let focus): ["command": "follow", "focus": .optional(focus?.rawValue)]
        case .listen(let isOn): ["command": "listen", "on": .bool(isOn)]
        case .acknowledge(let id): ["command": "acknowledge", "id": .int(id)]
        case .raise(let pids): ["command": "raise", "pids": .array(pids.map { .int(Int64($0)) })]
        case .ping(let number): ["command": "ping", "number": .int(number)]
        }
    }
}

/// The protocol between torpord and torpor-desktop.
public enum DesktopProtocol {
    /// The protocol's version, raised by each incompatible change. torpord replaces a torpor-desktop of another
    /// version.
    public static let version: Int64 = 4
}

/// The window manager whose focus is followed.
public enum DesktopFocus: String, Hashable, Sendable, CaseIterable {
    /// Sway, by its IPC socket.
    case sway
    /// i3, by its IPC socket.
    case i3

    init(_ name: String) throws(FieldError) {
        guard let focus = Self(rawValue: name) else { throw FieldError(field: "focus", problem: "must be sway or i3") }
        self = focus
    }
}

/// The parts of an alert that torpor-desktop needs.
public struct DesktopAlert: Hashable, Sendable {
    /// The urgency levels of org.freedesktop.Notifications.
    public enum Urgency: String, Hashable, Sendable, CaseIterable {
        case low, normal, critical
    }

    /// A button of an alert.
    public struct Action: Hashable, Sendable {
        /// The id that the app gave the action.
        public var id: String
        /// The text of the button.
        public var label: String

        /// Creates an action from its parts.
        public init(id: String, label: String) {
            self.id = id
            self.label = label
        }
    }

    /// The alert's id, unique among the alerts of all apps. An alert that is shown again keeps its id.
    public var id: Int64
    /// The title of the app, for people.
    public var app: String
    /// One line of plain text.
    public var title: String
    /// Plain text, possibly empty.
    public var body = ""
    /// How urgent the alert is.
    public var urgency = Urgency.normal
    /// A sound's name in the XDG sound theme; nil for silence.
    public var sound: String?
    /// The buttons, in their order.
    public var actions: [Action] = []
    /// The absolute path of a picture; nil for none.
    public var icon: String?
    /// The name of the app's desktop entry, without `.desktop`.
    public var entry: String?
    /// Where an earlier torpor-desktop has shown the alert last; nil if none has. If it is set, the alert makes no
    /// sound, and replaces that earlier notification.
    public var place: ScreenPlace?

    /// Creates an alert without options.
    public init(id: Int64, app: String, title: String) {
        self.id = id
        self.app = app
        self.title = title
    }

    /// Decodes an alert.
    public init(json: JSON) throws(FieldError) { try self.init(fields: Fields(json)) }

    init(fields: Fields) throws(FieldError) {
        self.init(id: try fields.int("id"), app: try fields.string("app"), title: try fields.string("title"))
        body = try fields.optionalString("body") ?? ""
        guard let urgency = Urgency(rawValue: try fields.optionalString("urgency") ?? "normal") else {
            throw FieldError(field: "urgency", problem: "must be low, normal or critical")
        }
        self.urgency = urgency
        sound = try fields.optionalString("sound")
        actions =
            try fields["actions"] == nil
            ? []
            : fields.list("actions") { json throws(FieldError) in
                let action = try Fields(json)
                return Action(id: try action.string("id"), label: try action.string("label"))
            }
        icon = try fields.optionalString("icon")
        entry = try fields.optionalString("entry")
        place = try ScreenPlace(optional: fields["place"])
    }

    /// The encoded alert.
    public var json: JSON {
        [
            "id": .int(id), "app": .string(app), "title": .string(title), "body": .string(body),
            "urgency": .string(urgency.rawValue), "sound": .optional(sound),
            "actions": .array(actions.map { ["id": .string($0.id), "label": .string($0.label)] }),
            "icon": .optional(icon), "entry": .optional(entry), "place": place?.json ?? .null,
        ]
    }
}
