// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A message from torpor-desktop to torpord. The sender runs as the session's user.
public enum DesktopReport: Hashable, Sendable {
    /// The reply to `hello`: the ids of all open alerts and unacknowledged reports, and the notification server, if
    /// there is one.
    case here(ids: [Int64], server: DesktopServer?, version: Int64 = DesktopProtocol.version)
    /// A notification server has appeared or changed. Nil: it has disappeared, or no longer answers.
    case server(DesktopServer?)
    /// Why an alert would not be seen now, as a sentence; nil if a notification server runs or can be started.
    case unseen(problem: String?)
    /// An alert is on the screen, or was accepted by the server, which may hold it back. `place` is where the alert is
    /// shown; a later torpor-desktop gets it, so that it can replace the notification.
    case shown(id: Int64, place: ScreenPlace? = nil)
    /// An alert could not be shown. Unless the alert is closed, torpor-desktop shows it as soon as a notification
    /// server can show it.
    case failed(id: Int64, reason: String)
    /// An alert left the screen without an answer.
    case closed(id: Int64, DesktopClosing)
    /// A user chose an action; `default` stands for the alert itself. Repeated to each torpord until one acknowledges
    /// it.
    case answered(id: Int64, action: String, token: String?)
    /// This process owns the window with the keyboard focus; nil for none.
    case focused(pid: Int32?)
    /// Whether the focus can be followed: a sentence that says why not, or nil once it can be followed again.
    /// `manager` is the process of the window manager, if it is known.
    case following(problem: String?, manager: Int32? = nil)
    /// All running sound streams.
    case sound([DesktopSound])
    /// Whether sound streams can be followed: a sentence that says why not, or nil once they can be followed again.
    case listening(problem: String?)
    /// The reply to `ping`, with its number.
    case pong(number: Int64)

    /// Decodes a report.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        let kind = try fields.string("report")
        switch kind {
        case "here":
            self = .here(
                ids: try fields.list("ids") { json throws(FieldError) in
                    guard let id = json.intValue else { throw FieldError(field: "ids", problem: "must have integers") }
                    return id
                },
                server: try Self.server(fields),
                version: try fields.int("version")
            )
        case "server": self = .server(try Self.server(fields))
        case "unseen": self = .unseen(problem: try fields.optionalString("problem"))
        case "shown": self = .shown(id: try fields.int("id"), place: try ScreenPlace(optional: fields["place"]))
        case "failed": self = .failed(id: try fields.int("id"), reason: try fields.string("reason"))
        case "closed":
            guard let why = DesktopClosing(rawValue: try fields.string("why")) else {
                throw FieldError(field: "why", problem: "must be expired, dismissed or closed")
            }
            self = .closed(id: try fields.int("id"), why)
        case "answered":
            self = .answered(
                id: try fields.int("id"),
                action: try fields.string("action"),
                token: try fields.optionalString("token")
            )
        case "focused":
            let pid = try fields.optionalInt("pid")
            guard let small = Int32(exactly: pid ?? 0), small >= 0 else {
                throw FieldError(field: "pid", problem: "is out of range")
            }
            self = .focused(pid: pid == nil ? nil : small)
        case "following":
            self = .following(
                problem: try fields.optionalString("problem"),
                manager: try fields.optionalInt32("manager").flatMap { $0 > 0 ? $0 : nil }
            )
        case "sound":
            let streams = try fields.list("streams") { json throws(FieldError) in try DesktopSound(json: json) }
            self = .sound(Array(streams.prefix(DesktopSound.most)))
        case "listening": self = .listening(problem: try fields.optionalString("problem"))
        case "pong": self = .pong(number: try fields.int("number"))
        default: throw FieldError(field: "report", problem: "is \(kind), which is unknown")
        }
    }

    private static func server(_ fields: Fields) throws(FieldError) -> DesktopServer? {
        guard let json = fields["server"], json != .null else { return nil }
        return try DesktopServer(json: json)
    }

    /// The encoded report.
    public var json: JSON {
        switch self {
        case .here(let ids, let server, let version):
            [
                "report": "here", "ids": .array(ids.map { .int($0) }), "server": server?.json ?? .null,
                "version": .int(version),
            ]
        case .server(let server): ["report": "server", "server": server?.json ?? .null]
        case .unseen(let problem): ["report": "unseen", "problem": .optional(problem)]
        case .shown(let id, let place):
            ["report": "shown", "id": .int(id), "place": place?.json ?? .null]
        case .failed(let id, let reason): ["report": "failed", "id": .int(id), "reason": .string(reason)]
        case .closed(let id, let why): ["report": "closed", "id": .int(id), "why": .string(why.rawValue)]
        case .answered(let id, let action, let token):
            ["report": "answered", "id": .int(id), "action": .string(action), "token": .optional(token)]
        case .focused(let pid): ["report": "focused", "pid": .optional(pid.map { Int64($0) })]
        case .following(let problem, let manager):
            ["report": "following", "problem": .optional(problem), "manager": .optional(manager.map { Int64($0) })]
        case .sound(let streams): ["report": "sound", "streams": .array(streams.map(\.json))]
        case .listening(let problem): ["report": "listening", "problem": .optional(problem)]
        case .pong(let number): ["report": "pong", "number": .int(number)]
        }
    }
}

/// Where a notification server shows an alert.
public struct ScreenPlace: Hashable, Sendable {
    /// The server: the id of the bus, and the server's unique name there. No two servers have the same name.
    public var server: String
    /// The server's number for the notification.
    public var number: UInt32

    /// The longest name of a server, in bytes.
    private static let longestName = 320

    /// Creates a place.
    public init(server: String, number: UInt32) { (self.server, self.number) = (server, number) }

    init?(optional json: JSON?) throws(FieldError) {
        guard let json, json != .null else { return nil }
        let fields = try Fields(json)
        let server = try fields.string("server")
        guard server.utf8.count <= Self.longestName, let number = UInt32(exactly: try fields.int("number")) else {
            throw FieldError(field: "place", problem: "is out of range")
        }
        self.init(server: server, number: number)
    }

    var json: JSON { ["server": .string(server), "number": .int(Int64(number))] }
}

/// Why an alert left the screen without an answer.
public enum DesktopClosing: String, Hashable, Sendable, CaseIterable {
    /// The server's timeout for the alert has passed.
    case expired
    /// A user dismissed the alert.
    case dismissed
    /// torpord asked to close the alert.
    case closed
}

/// The program that shows notifications, as it describes itself.
public struct DesktopServer: Hashable, Sendable {
    /// The server's name and version, such as `dunst 1.9.0`.
    public var name: String
    /// The server's capabilities, by their names in org.freedesktop.Notifications: `actions`, `body`, `sound` …
    public var capabilities: [String]

    /// Creates a description.
    public init(name: String, capabilities: [String]) {
        self.name = name
        self.capabilities = capabilities
    }

    init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(name: try fields.string("name"), capabilities: try fields.strings("capabilities"))
    }

    var json: JSON { ["name": .string(name), "capabilities": .array(capabilities.map { .string($0) })] }
}
