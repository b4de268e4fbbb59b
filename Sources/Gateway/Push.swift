// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
public import Varlink

/// A message from outside for an app.
public struct Push: Sendable, Hashable {
    /// The app's name.
    public var app: String
    /// The topic.
    public var topic: String
    /// The content.
    public var payload: JSON
    /// How to coalesce it with queued messages: `latest`, `count`, `merge` or `all`; nil for the app's setting.
    public var coalesce: String?
    /// Only messages with the same key are coalesced.
    public var key: String?
    /// Whether it wakes the app: there is content to fetch.
    public var wakes: Bool
    /// The sender: `http:ci`, `nats:main`.
    public var sender: String
    /// Makes the post idempotent, in case it is repeated because the first reply was lost.
    public var token = RequestToken.random()

    /// Memberwise initializer.
    public init(
        app: String,
        topic: String,
        payload: JSON,
        coalesce: String? = nil,
        key: String? = nil,
        wakes: Bool = false,
        sender: String
    ) {
        self.app = app
        self.topic = topic
        self.payload = payload
        self.coalesce = coalesce
        self.key = key
        self.wakes = wakes
        self.sender = sender
    }

    /// The call to the supervisor.
    public var call: VarlinkCall {
        var parameters: JSONObject = [
            "app": .string(app), "topic": .string(topic), "urgent": .bool(wakes), "sender": .string(sender),
            "remote": true, "token": .string(token.text),
        ]
        if !payload.isNull { parameters["payload"] = payload }
        if let coalesce { parameters["coalesce"] = .string(coalesce) }
        if let key { parameters["key"] = .string(key) }
        return VarlinkCall(method: "io.torpor.Manager.Post", parameters: .object(parameters))
    }
}

/// A scene to be made for a client that is about to connect to its socket.
public struct SceneOpening: Sendable, Hashable {
    /// The template's name.
    public var template: String
    /// The scene's own name.
    public var name: String
    /// The name of the token: `http:proxy`.
    public var sender: String

    /// Memberwise initializer.
    public init(template: String, name: String, sender: String) {
        (self.template, self.name, self.sender) = (template, name, sender)
    }

    /// The call to the supervisor. It does not launch the scene: the connection to its socket does.
    public var call: VarlinkCall {
        VarlinkCall(
            method: "io.torpor.Manager.OpenScene",
            parameters: ["template": .string(template), "name": .string(name), "remote": true]
        )
    }
}

/// A request to the supervisor for a client outside.
public enum OutsideRequest: Sendable, Hashable {
    case post(Push)
    case open(SceneOpening)
}

/// The outcome of a message.
public enum PostOutcome: Sendable, Hashable {
    /// It is in the app's mailbox, on disk; with `id`, `change`, `outcome` and `message` of the supervisor's reply.
    /// Or the scene exists, with the supervisor's reply.
    case taken(JSON)
    /// There is no such app.
    case unknownApp(String)
    /// It was refused, and a retry would be too.
    case refused(String)
    /// The app's mailbox is full.
    case full(String)
    /// The supervisor does not answer, or its queue is full.
    case unavailable(String)

    /// Whether a retry may succeed.
    public var isTemporary: Bool {
        switch self {
        case .full, .unavailable: true
        case .taken, .unknownApp, .refused: false
        }
    }

    /// A sentence for people.
    public var text: String {
        switch self {
        case .taken(let reply): reply["outcome"]?.stringValue ?? "taken"
        case .unknownApp(let text), .refused(let text), .full(let text), .unavailable(let text): text
        }
    }

    /// The outcome of a failed call.
    init(_ error: VarlinkClientError) {
        guard case .service(let name, let parameters) = error else {
            self = .unavailable("the call to the supervisor failed: \(error)")
            return
        }
        let text = "\(error)"
        switch name {
        case ManagerInterface.ErrorName.unknownApp:
            let nearest = parameters["nearest"]?.stringValue.map { ": did you mean \($0)?" } ?? ""
            self = .unknownApp("there is no app \(parameters["name"]?.stringValue ?? "of that name")\(nearest)")
        case "io.torpor.Manager.MailboxFull": self = .full(text)
        // Its disk is full, or its configuration does not allow the gateway: an administrator can fix that.
        case ManagerInterface.ErrorName.failed, ManagerInterface.ErrorName.notPermitted: self = .unavailable(text)
        case VarlinkErrorName.methodNotFound, VarlinkErrorName.methodNotImplemented:
            self = .unavailable("the supervisor is too old to accept messages: upgrade it")
        default: self = .refused(text)
        }
    }
}
