// SPDX-License-Identifier: Apache-2.0

public import Configuration
import WireText

/// Everything that torpor-gateway's configuration says, with every default filled in.
public struct GatewaySpecification: Sendable, Hashable {
    /// The supervisor's control socket; absolute.
    public var socket: String
    /// The folder of secrets: passwords and tokens, each a file; absolute.
    public var secrets: String
    /// Bytes of one message at most.
    public var maxPayload = 64 << 10
    /// How many messages may wait for the supervisor.
    public var queue = 256
    /// How many messages the supervisor is told at a time.
    public var connections = 4
    /// The least severe messages that are logged.
    public var logLevel: LogLevel = .info
    /// The endpoint for HTTP; nil where there is none.
    public var http: GatewayEndpoint?
    /// Servers of NATS.
    public var nats: [GatewayBroker] = []
    /// Brokers of MQTT.
    public var mqtt: [GatewayBroker] = []
    /// What is allowed but hardly meant, sorted by place.
    public var warnings: [Diagnostic] = []

    /// One that listens to nothing.
    public init(socket: String, secrets: String) {
        self.socket = socket
        self.secrets = secrets
    }
}

/// `[gateway.http]`.
public struct GatewayEndpoint: Sendable, Hashable {
    /// Where it listens.
    public enum Address: Sendable, Hashable, CustomStringConvertible {
        /// A numeric address.
        case tcp(address: String, port: UInt16)
        /// A Unix socket's path; absolute.
        case unix(String)

        /// As it is written in the configuration.
        public var description: String {
            switch self {
            case .tcp(let address, let port): address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
            case .unix(let path): path
            }
        }
    }

    /// Where it listens.
    public var address = Address.tcp(address: "127.0.0.1", port: 8780)
    /// How many connections at a time.
    public var maxConnections = 512
    /// How long a connection may say nothing.
    public var timeout: Duration = .seconds(30)
    /// Who may post.
    public var tokens: [GatewayToken] = []

    /// One without tokens, to which nobody may post.
    public init() {}
}

/// `[[gateway.http.tokens]]`.
public struct GatewayToken: Sendable, Hashable {
    /// Whose it is, as apps are told the sender.
    public var name = ""
    /// The secret that holds it.
    public var secret = ""
    /// Patterns of the apps that it is for.
    public var apps = ["*"]
    /// Patterns of the topics that it is for.
    public var topics = ["*"]
    /// Patterns of the templates of which it opens scenes.
    public var scenes: [String] = []

    /// One without a name or a secret.
    public init() {}

    /// Whether it is for that.
    public func allows(app: String, topic: String) -> Bool {
        apps.contains { Glob.matches($0, app) } && topics.contains { Glob.matches($0, topic) }
    }

    /// Whether it opens scenes of that template.
    public func opens(_ template: String) -> Bool { scenes.contains { Glob.matches($0, template) } }
}

/// `[[gateway.nats]]`, `[[gateway.mqtt]]`.
public struct GatewayBroker: Sendable, Hashable {
    /// What logs and apps are told that it is.
    public var name = ""
    /// Where it is: `nats://host:4222`, `mqtt://host:1883`; with `tls://`, `mqtts://` encrypted.
    public var url = ""
    /// How it knows this client (MQTT): what it keeps for it while it is away.
    public var client: String?
    /// Who this is.
    public var user: String?
    /// The secret that is the user's password.
    public var password: String?
    /// The secret that is a token (NATS).
    public var token: String?
    /// A file with a user's JWT and seed (NATS); absolute.
    public var credentials: String?
    /// A file with the certificates of authorities to trust, instead of the system's; absolute.
    public var authorities: String?
    /// A file with this client's certificate, and the secret that is its key.
    public var certificate: String?
    /// The secret that is the key of the certificate.
    public var key: String?
    /// What it is asked for.
    public var subscriptions: [GatewaySubscription] = []

    /// One that is asked for nothing.
    public init() {}
}

/// `[[gateway.nats.subscriptions]]`, `[[gateway.mqtt.subscriptions]]`: what comes there is for which app.
public struct GatewaySubscription: Sendable, Hashable {
    /// Whether what comes wakes the app.
    public enum WakeRule: String, Sendable, Hashable, CaseIterable {
        /// When it says so itself: `content-available`.
        case payload
        case always
        case never
    }

    /// What becomes of what the app's mailbox has no place for.
    public enum FullRule: String, Sendable, Hashable, CaseIterable {
        /// The server keeps it, and what comes after it.
        case wait
        /// It is lost, and the log says so.
        case drop
    }

    /// How it becomes one with what waits already; nil as the app's configuration says.
    public enum Coalesce: String, Sendable, Hashable, CaseIterable {
        case all
        case latest
        case count
        case merge
    }

    /// The subject (NATS) or topic filter (MQTT).
    public var pattern = SubjectPattern(.nats)
    /// The app.
    public var app = SubjectTemplate("")
    /// The topic that the app is told; nil: the subject.
    public var topic: SubjectTemplate?
    /// How it becomes one with what waits already.
    public var coalesce: Coalesce?
    /// Only what has the same key coalesces.
    public var key: SubjectTemplate?
    /// Whether it wakes the app.
    public var wake = WakeRule.payload
    /// What becomes of what has no place.
    public var onFull = FullRule.wait
    /// Each message goes to one of all that name this group (NATS).
    public var group: String?
    /// The durable consumer of a stream (JetStream).
    public var durable: String?
    /// The stream, where the subject alone does not tell it (JetStream).
    public var stream: String?
    /// The quality of service that is asked for (MQTT): 0 or 1.
    public var quality: Int32 = 1

    /// One without anything.
    public init() {}
}
