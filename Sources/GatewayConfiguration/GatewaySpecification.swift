// SPDX-License-Identifier: Apache-2.0

public import Configuration
import WireText

/// Everything that torpor-gateway's configuration says, with every default filled in.
public struct GatewaySpecification: Sendable, Hashable {
    /// The absolute path of the supervisor's control socket.
    public var socket: String
    /// The absolute path of the folder of secrets. Each password or token is a file in it.
    public var secrets: String
    /// The largest message in bytes.
    public var maxPayload = 64 << 10
    /// How many messages may be queued for the supervisor.
    public var queue = 256
    /// How many messages are sent to the supervisor at a time.
    public var connections = 4
    /// The least severe messages that are logged.
    public var logLevel: LogLevel = .info
    /// The HTTP endpoint; nil if there is none.
    public var http: GatewayEndpoint?
    /// Servers of NATS.
    public var nats: [GatewayBroker] = []
    /// Brokers of MQTT.
    public var mqtt: [GatewayBroker] = []
    /// Where to store the saved states of apps that several machines can own; nil to store none.
    public var state: GatewayStates?
    /// Remarks about values that are allowed but probably not intended, sorted by place.
    public var warnings: [Diagnostic] = []

    /// Creates a gateway without any endpoints or brokers.
    public init(socket: String, secrets: String) {
        self.socket = socket
        self.secrets = secrets
    }
}

/// The table `[gateway.http]` of the configuration.
public struct GatewayEndpoint: Sendable, Hashable {
    /// Where the HTTP endpoint listens.
    public enum Address: Sendable, Hashable, CustomStringConvertible {
        /// A numeric address.
        case tcp(address: String, port: UInt16)
        /// The absolute path of a Unix socket.
        case unix(String)

        /// The address in the form in which the configuration has it.
        public var description: String {
            switch self {
            case .tcp(let address, let port): address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
            case .unix(let path): path
            }
        }
    }

    /// Where the HTTP endpoint listens.
    public var address = Address.tcp(address: "127.0.0.1", port: 8780)
    /// The most connections at a time.
    public var maxConnections = 512
    /// How long a connection may be silent.
    public var timeout: Duration = .seconds(30)
    /// The tokens whose holders may post messages.
    public var tokens: [GatewayToken] = []

    /// An endpoint without tokens, to which no client may post.
    public init() {}
}

/// A table of `[[gateway.http.tokens]]` in the configuration.
public struct GatewayToken: Sendable, Hashable {
    /// The name of the token's holder. Apps see it in the sender of messages.
    public var name = ""
    /// The name of the secret with the token.
    public var secret = ""
    /// Patterns of the apps to which the token may post.
    public var apps = ["*"]
    /// Patterns of the topics that the token may post.
    public var topics = ["*"]
    /// Patterns of the templates whose scenes the token may open.
    public var scenes: [String] = []

    /// A token without a name and a secret.
    public init() {}

    /// Whether the token may post this topic to this app.
    public func allows(app: String, topic: String) -> Bool {
        apps.contains { Glob.matches($0, app) } && topics.contains { Glob.matches($0, topic) }
    }

    /// Whether the token may open scenes of that template.
    public func opens(_ template: String) -> Bool { scenes.contains { Glob.matches($0, template) } }
}

/// The configuration of a broker: a table of `[[gateway.nats]]` or `[[gateway.mqtt]]`.
public struct GatewayBroker: Sendable, Hashable {
    /// The broker's name in logs, and in the senders that apps see.
    public var name = ""
    /// The URL: `nats://host:4222` or `mqtt://host:1883`, with `tls://` or `mqtts://` for an encrypted connection.
    public var url = ""
    /// The client ID, by which the broker stores messages while the gateway is away (MQTT).
    public var client: String?
    /// The user name at the broker.
    public var user: String?
    /// The name of the secret with the user's password.
    public var password: String?
    /// The name of the secret with a token (NATS).
    public var token: String?
    /// The absolute path of a file with a user's JWT and seed (NATS).
    public var credentials: String?
    /// The absolute path of a file with CA certificates, which are trusted instead of the system's.
    public var authorities: String?
    /// A file with this client's certificate; its key is in ``key``.
    public var certificate: String?
    /// The name of the secret with the key of the certificate.
    public var key: String?
    /// The subscriptions.
    public var subscriptions: [GatewaySubscription] = []

    /// A broker without subscriptions.
    public init() {}
}

/// The table `[gateway.state]`: the JetStream stream that stores the saved states of apps, one message for each app.
public struct GatewayStates: Sendable, Hashable {
    /// The default folder of tokens. A boot empties it.
    public static let usualTokens = "/run/torpor-gateway-state"

    /// The NATS server to connect to. It has no subscriptions.
    public var broker = GatewayBroker()
    /// The name of the stream.
    public var stream = "TORPOR-STATE"
    /// The first part of the subjects: the subject of an app's state is this text, a dot and the app's name.
    public var subject = "torpor.state"
    /// Whether to create the stream if it is missing.
    public var create = false
    /// How many servers of a NATS cluster store the stream, if it is created.
    public var replicas = 1
    /// Patterns for the names of the apps whose states are pushed.
    public var apps = ["*"]
    /// A name for this machine that no other machine uses; nil for the host name.
    public var node: String?
    /// The absolute path of the folder of tokens, with a file for each app that this machine has claimed since the
    /// boot.
    public var tokens = usualTokens

    /// Creates the default values: a server without an address.
    public init() {}

    /// Whether the states of this app are pushed.
    public func keeps(_ app: String) -> Bool { apps.contains { Glob.matches($0, app) } }
}

/// A table of `[[gateway.nats.subscriptions]]` or `[[gateway.mqtt.subscriptions]]`: which messages go to which app.
public struct GatewaySubscription: Sendable, Hashable {
    /// Whether a message wakes the app.
    public enum WakeRule: String, Sendable, Hashable, CaseIterable {
        /// A message wakes the app if its payload has `content-available`.
        case payload
        case always
        case never
    }

    /// What happens to a message if the app's mailbox is full.
    public enum FullRule: String, Sendable, Hashable, CaseIterable {
        /// The server keeps this message and all later ones.
        case wait
        /// The message is dropped, and that is logged.
        case drop
    }

    /// How a message is coalesced with queued ones; nil for the app's setting.
    public enum Coalesce: String, Sendable, Hashable, CaseIterable {
        case all
        case latest
        case count
        case merge
    }

    /// The subject (NATS) or topic filter (MQTT).
    public var pattern = SubjectPattern(.nats)
    /// The name of the app.
    public var app = SubjectTemplate("")
    /// The topic under which the app gets the message; nil for the message's own subject.
    public var topic: SubjectTemplate?
    /// How a message is coalesced with queued ones.
    public var coalesce: Coalesce?
    /// Only messages with the same key are coalesced; nil for no key.
    public var key: SubjectTemplate?
    /// Whether a message wakes the app.
    public var wake = WakeRule.payload
    /// What happens to a message if the mailbox is full.
    public var onFull = FullRule.wait
    /// The queue group: each message goes to only one of its subscribers (NATS).
    public var group: String?
    /// The name of the durable consumer of a stream (JetStream).
    public var durable: String?
    /// The stream, if the subject does not determine it (JetStream).
    public var stream: String?
    /// The requested QoS (MQTT): 0 or 1.
    public var quality: Int32 = 1

    /// An empty subscription.
    public init() {}
}
