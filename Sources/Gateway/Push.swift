// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
public import Varlink

/// A message from outside for an app.
public struct Push: Sendable, Hashable {
    /// The app's name.
    public var app: String
    /// What it is about.
    public var topic: String
    /// What it says.
    public var payload: JSON
    /// How it becomes one with what waits already: `latest`, `count`, `merge` or `all`; nil as the app says.
    public var coalesce: String?
    /// Only what has the same key coalesces.
    public var key: String?
    /// Whether it wakes the app: there is something to fetch.
    public var wakes: Bool
    /// Where it comes from: `http:ci`, `nats:main`.
    public var sender: String
    /// By which the supervisor knows it again, should it be posted twice because the first reply was lost.
    public var token = RequestToken.random()

    /// Makes one from its parts.
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

    /// The call of the supervisor that takes it.
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

/// A scene that is to be there for whoever comes to its socket.
public struct SceneOpening: Sendable, Hashable {
    /// The template's name.
    public var template: String
    /// The scene's own.
    public var name: String
    /// Whose token it was: `http:proxy`.
    public var sender: String

    /// Makes one from its parts.
    public init(template: String, name: String, sender: String) {
        (self.template, self.name, self.sender) = (template, name, sender)
    }

    /// The call of the supervisor that opens it. It launches nothing: whoever connects to its socket does.
    public var call: VarlinkCall {
        VarlinkCall(
            method: "io.torpor.Manager.OpenScene",
            parameters: ["template": .string(template), "name": .string(name), "remote": true]
        )
    }
}

/// What is asked of the supervisor for somebody outside.
public enum OutsideRequest: Sendable, Hashable {
    case post(Push)
    case open(SceneOpening)
}

/// What became of a message.
public enum PostOutcome: Sendable, Hashable {
    /// It is in the app's mailbox, on disk; with the supervisor's reply: `id`, `change`, `outcome`, `message`. Or the scene is
    /// there, with what it did.
    case taken(JSON)
    /// There is no such app.
    case unknownApp(String)
    /// It is not taken, now or later.
    case refused(String)
    /// The app's mailbox is full.
    case full(String)
    /// The supervisor does not answer, or too much waits for it already.
    case unavailable(String)

    /// Whether it may be another one later.
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

    /// Reads why it came to nothing.
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
        // Its disk is full, or its configuration does not know the gateway: that can be mended.
        case ManagerInterface.ErrorName.failed, ManagerInterface.ErrorName.notPermitted: self = .unavailable(text)
        case VarlinkErrorName.methodNotFound, VarlinkErrorName.methodNotImplemented:
            self = .unavailable("the supervisor is too old to accept messages: upgrade it")
        default: self = .refused(text)
        }
    }
}
