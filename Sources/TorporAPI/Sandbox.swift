// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The sandbox of an app.
public struct SandboxInfo: Hashable, Sendable {
    /// How the app is confined: `true` or `agent`, as in the configuration.
    public var mode: String
    /// The permissions that the app asks for.
    public var permissions: [PermissionInfo] = []
    /// The parts of the sandbox that this machine does not enforce, as one sentence for each.
    public var unenforced: [String] = []
    /// The number of accesses that were denied to the app since torpord started; nil if torpord cannot see denials, or
    /// has seen none.
    public var denials: Int64?
    /// The last access that was denied to the app; nil if torpord has seen none.
    public var lastDenial: DenialInfo?

    /// Creates a sandbox without permissions.
    public init(mode: String) { self.mode = mode }

    init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        mode = try fields.string("mode")
        permissions = try fields.list("permissions") { json throws(FieldError) in try PermissionInfo(json: json) }
        unenforced = try fields.strings("unenforced")
        denials = try fields.optionalInt("denials")
        if let json = fields["last_denial"], !json.isNull { lastDenial = try DenialInfo(json: json) }
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "mode": .string(mode), "permissions": .array(permissions.map(\.json)),
            "unenforced": .strings(unenforced), "denials": .optional(denials),
            "last_denial": lastDenial?.json ?? .null,
        ]
    }

    static func optional(_ fields: Fields, _ name: String) throws(FieldError) -> SandboxInfo? {
        guard let json = fields[name], !json.isNull else { return nil }
        return try SandboxInfo(json: json)
    }
}

/// An access that was denied to a sandboxed app.
public struct DenialInfo: Hashable, Sendable {
    /// When the access was denied, in microseconds since 1970.
    public var at: Int64
    /// What was denied, as a sentence without its subject, which is the app.
    public var text: String

    /// Memberwise initializer.
    public init(at: Int64, text: String) { (self.at, self.text) = (at, text) }

    init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(at: try fields.int("at"), text: try fields.string("text"))
    }

    var json: JSON { ["at": .int(at), "text": .string(text)] }
}

/// A permission that an app asks for.
public struct PermissionInfo: Hashable, Sendable {
    /// The app that asks for the permission.
    public var app: String
    /// The permission's name, such as `camera` or `files:/srv/media:ro`.
    public var name: String
    /// `allowed`, `denied`, or `asked` (withheld, because no user has answered yet).
    public var state: String
    /// Why the app asks for the permission.
    public var purpose: String
    /// The texts of ``purpose`` in other languages, by language.
    public var purposes: [String: String]
    /// The TCP ports of the permission `network`; empty for all ports.
    public var ports: [Int64]

    /// The user who has answered; nil if no user has.
    public var by: String?
    /// When the user answered, in microseconds since 1970; nil if no user has.
    public var at: Int64?

    /// Creates a permission that no user has answered.
    public init(
        app: String,
        name: String,
        state: String,
        purpose: String,
        purposes: [String: String] = [:],
        ports: [Int64] = []
    ) {
        self.app = app
        self.name = name
        self.state = state
        self.purpose = purpose
        self.purposes = purposes
        self.ports = ports
    }

    /// The purpose in the first of `languages` for which ``purposes`` has a text; otherwise ``purpose``.
    public func purpose(in languages: [String]) -> String {
        AppSummary.text(purpose, purposes, in: languages) ?? purpose
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        app = try fields.string("app")
        name = try fields.string("name")
        by = try fields.optionalString("by")
        at = try fields.optionalInt("at")
        state = try fields.string("state")
        purpose = try fields.string("purpose")
        purposes = try fields.strings(byName: "purposes")
        ports = try fields.list("ports") { json throws(FieldError) -> Int64 in
            guard let port = json.intValue else { throw FieldError(field: "ports", problem: "must be integers") }
            return port
        }
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "name": .string(name), "state": .string(state), "purpose": .string(purpose),
            "purposes": .strings(purposes), "ports": .array(ports.map { .int($0) }),
            "by": .optional(by), "at": .optional(at),
        ]
    }
}

/// A permission of a sandboxed app and its state, in a reply to the app.
public struct PermissionStanding: Hashable, Sendable {
    /// The name of the permission.
    public var name: String
    /// The permission's state: `allow`, `deny`, or `ask` (withheld, since no user has answered yet).
    public var state: String

    /// Creates a value from its parts.
    public init(name: String, state: String) { (self.name, self.state) = (name, state) }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(name: try fields.string("name"), state: try fields.string("state"))
    }

    /// Encodes the value as a JSON object.
    public var json: JSON { ["name": .string(name), "state": .string(state)] }
}

/// The reply to an app that asks for a permission.
public struct PermissionReply: Hashable, Sendable {
    /// The permission's state: `allow`, `deny`, or `ask` (withheld, since no user has answered yet).
    public var state: String
    /// Whether users are being asked now.
    public var isAskedNow = false
    /// The earliest time at which users can be asked, in microseconds since 1970; nil if they are asked now, or if
    /// waiting does not help (see ``message``).
    public var nextAt: Int64?
    /// Why users are not asked now, as a sentence; nil if they are.
    public var message: String?

    /// Creates a reply that says that users are not being asked.
    public init(state: String) { self.state = state }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        state = try fields.string("state")
        isAskedNow = try fields.bool("asked")
        nextAt = try fields.optionalInt("next_at")
        message = try fields.optionalString("message")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "state": .string(state), "asked": .bool(isAskedNow), "next_at": .optional(nextAt),
            "message": .optional(message),
        ]
    }
}

/// A user's answer to an app's permission request.
public enum PermissionVerdict: String, CaseIterable, Sendable {
    case allow
    case deny
    /// Forget the answer, so that the default of the configuration applies again.
    case reset

    /// The verb of a sentence about the answer, in the past tense.
    public var past: String {
        switch self {
        case .allow: "allowed"
        case .deny: "denied"
        case .reset: "took back the answer to"
        }
    }
}

/// The parameters of AnswerPermissions, which answers an app that asks for permissions.
public struct AnswerPermissionsRequest: Hashable, Sendable {
    /// The app's name.
    public var app: String
    /// The names of the permissions; an empty list stands for all that the app declares.
    public var names: [String]
    /// The answer to the app.
    public var answer: PermissionVerdict

    /// Memberwise initializer.
    public init(app: String, names: [String], answer: PermissionVerdict) {
        (self.app, self.names, self.answer) = (app, names, answer)
    }

    init(fields: Fields) throws(FieldError) {
        app = try fields.string("app")
        names = try fields.strings("names")
        guard let verdict = PermissionVerdict(rawValue: try fields.string("answer")) else {
            throw FieldError(field: "answer", problem: "must be allow, deny or reset")
        }
        answer = verdict
    }

    var parameters: JSON {
        ["app": .string(app), "names": .strings(names), "answer": .string(answer.rawValue)]
    }
}
