// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
public import Varlink

/// A message from outside for an app.
public struct Push: Sendable, Hashable {
    /// The app's name.
    public var app: String
    /// The message's topic.
    public var topic: String
    /// The message's content.
    public var payload: JSON
    /// How to coalesce the message with queued ones: `latest`, `count`, `merge` or `all`; nil for the app's own
    /// setting.
    public var coalesce: String?
    /// Only messages with the same key are coalesced; nil for no key.
    public var key: String?
    /// Whether the message wakes the app, because there is content to fetch.
    public var wakes: Bool
    /// The sender, such as `http:ci` or `nats:main`.
    public var sender: String
    /// Whether the supervisor must refuse the message if several machines can own the app and this machine does not own
    /// it.
    public var owned = false
    /// Identifies the message, so that a repeated post has no effect if only the first reply was lost.
    public var token = RequestToken.random()

    /// Creates a message from its parts.
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

    /// The message as a call to the supervisor.
    public var call: VarlinkCall {
        var parameters: JSONObject = [
            "app": .string(app), "topic": .string(topic), "urgent": .bool(wakes), "sender": .string(sender),
            "remote": true, "token": .string(token.text),
        ]
        if !payload.isNull { parameters["payload"] = payload }
        if let coalesce { parameters["coalesce"] = .string(coalesce) }
        if let key { parameters["key"] = .string(key) }
        if owned { parameters["owned"] = true }
        return VarlinkCall(method: "io.torpor.Manager.Post", parameters: .object(parameters))
    }
}

/// A request to make a scene for a client that is about to connect to the scene's socket.
public struct SceneOpening: Sendable, Hashable {
    /// The template's name.
    public var template: String
    /// The scene's name without that of its template.
    public var name: String
    /// The name of the token that the client used, such as `http:proxy`.
    public var sender: String

    /// Creates a request from its parts.
    public init(template: String, name: String, sender: String) {
        (self.template, self.name, self.sender) = (template, name, sender)
    }

    /// The request as a call to the supervisor. It does not launch the scene: the client's connection to the scene's
    /// socket does.
    public var call: VarlinkCall {
        VarlinkCall(
            method: "io.torpor.Manager.OpenScene",
            parameters: ["template": .string(template), "name": .string(name), "remote": true]
        )
    }
}

/// A request to the supervisor on behalf of a client that is not an app of this machine.
public enum OutsideRequest: Sendable, Hashable {
    case post(Push)
    case open(SceneOpening)
}

/// The outcome of a message, or of the opening of a scene.
public enum PostOutcome: Sendable, Hashable {
    /// The message is stored in the app's mailbox on disk, or the scene exists. The value is the supervisor's reply;
    /// for a message, the reply has `id`, `change`, `outcome` and `message`.
    case taken(JSON)
    /// There is no such app.
    case unknownApp(String)
    /// The supervisor has refused the message, and would refuse a retry too.
    case refused(String)
    /// The app's mailbox is full.
    case full(String)
    /// Several machines can own the app, and this machine does not own it.
    case elsewhere(String)
    /// The supervisor does not reply, or the queue of messages for it is full.
    case unavailable(String)

    /// Whether a retry may succeed.
    public var isTemporary: Bool {
        switch self {
        case .full, .elsewhere, .unavailable: true
        case .taken, .unknownApp, .refused: false
        }
    }

    /// The outcome as a sentence for people.
    public var text: String {
        switch self {
        case .taken(let reply): reply["outcome"]?.stringValue ?? "taken"
        case .unknownApp(let text), .refused(let text), .full(let text), .elsewhere(let text), .unavailable(let text):
            text
        }
    }

    /// The outcome that an error of a call means.
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
        case ManagerInterface.ErrorName.notOwned: self = .elsewhere(text)
        // The supervisor's disk is full, or its configuration does not allow the gateway. An administrator can
        // correct both, so a retry may succeed.
        case ManagerInterface.ErrorName.failed, ManagerInterface.ErrorName.notPermitted: self = .unavailable(text)
        case VarlinkErrorName.methodNotFound, VarlinkErrorName.methodNotImplemented:
            self = .unavailable("the supervisor is too old to accept messages: upgrade it")
        default: self = .refused(text)
        }
    }
}
