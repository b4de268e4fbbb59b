// SPDX-License-Identifier: Apache-2.0

import Configuration

/// Readers of the values of torpor-gateway's keys.
enum GatewayRead {
    static func payload(_ context: Context, _ node: Node) -> Int? {
        guard let size = Read.size(context, node) else { return nil }
        guard let size, (1...64 << 10).contains(size) else {
            context.error("must be between 1B and 64KiB, the most that an app's mailbox takes", at: node.position)
            return nil
        }
        return Int(size)
    }

    static func timeout(_ context: Context, _ node: Node) -> Duration? {
        guard let duration = Read.duration(context, node) else { return nil }
        guard duration >= .seconds(1), duration <= .seconds(3600) else {
            context.error("must be between 1s and 1h", at: node.position)
            return nil
        }
        return duration
    }

    /// Reads the address of the HTTP endpoint: `127.0.0.1:8780`, `[::1]:8780`, a port (on the loopback address), or a
    /// path.
    static func address(_ context: Context, _ node: Node) -> GatewayEndpoint.Address? {
        if case .integer(let number) = node.value {
            guard let port = UInt16(exactly: number), port > 0 else {
                context.error("\(number) is not a port: write 1 to 65535", at: node.position)
                return nil
            }
            return .tcp(address: "127.0.0.1", port: port)
        }
        guard let text = Read.text(context, node) else { return nil }
        if text.contains("/") { return .unix(Path.join(context.folder, text)) }
        if let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) {
            let host = text[..<colon]
            let isBracketed = host.hasPrefix("[") && host.hasSuffix("]") && host.count > 2
            let address = isBracketed ? String(host.dropFirst().dropLast()) : String(host)
            let hasColon = address.contains(":")
            if !address.isEmpty, hasColon == isBracketed { return .tcp(address: address, port: port) }
        }
        context.error(
            "\(quoted(text)) is not an address: write \"127.0.0.1:8780\", \"[::1]:8780\" or a socket's path",
            at: node.position
        )
        return nil
    }

    static func tokens(_ context: Context, _ node: Node) -> [GatewayToken]? {
        var names: Set<String> = []
        return Read.elements(context, node, of: "tables: write [[gateway.http.tokens]]") { context, node in
            var token = GatewayToken()
            let found = Read.table(context, node, GatewayKeys.token, into: &token)
            guard case .table = node.value else { return nil }
            for key in ["name", "secret"] where found[key] == nil {
                context.error("\(key) is missing", at: node.position)
            }
            if !names.insert(token.name).inserted {
                context.error("another token has the name \(quoted(token.name))", at: node.position)
            }
            return token
        }
    }

    // MARK: Brokers

    static func brokers(_ context: Context, _ node: Node, _ dialect: SubjectPattern.Dialect) -> [GatewayBroker] {
        let what = dialect == .nats ? "nats" : "mqtt"
        var names: Set<String> = []
        let keys = GatewayKeys.broker(dialect)
        let brokers = Read.elements(context, node, of: "tables: write [[gateway.\(what)]]") { context, node in
            var broker = GatewayBroker()
            guard case .table(let members) = node.value else {
                return context.expected("a table: write [[gateway.\(what)]]", node) as GatewayBroker?
            }
            let found = Read.table(context, node, keys, into: &broker)
            if !members.contains(where: { $0.key == "url" }) {
                let example = dialect == .nats ? "nats://127.0.0.1:4222" : "mqtt://127.0.0.1:1883"
                context.error("url is missing: write url = \(quoted(example))", at: node.position)
            }
            if found["subscriptions"] == nil {
                context.error("has no [[gateway.\(what).subscriptions]]: no messages would arrive", at: node.position)
            }
            checkLogin(context, node, broker)
            if broker.name.isEmpty { broker.name = names.isEmpty ? what : "\(what)\(names.count + 1)" }
            if !names.insert(broker.name).inserted {
                context.error("another broker has the name \(quoted(broker.name))", at: node.position)
            }
            return broker
        }
        return brokers ?? []
    }

    private static func checkLogin(_ context: Context, _ node: Node, _ broker: GatewayBroker) {
        if (broker.certificate == nil) != (broker.key == nil) {
            context.error("needs both certificate and key, or neither", at: node.position)
        }
        if broker.password != nil, broker.user == nil { context.error("password needs user", at: node.position) }
    }

    /// Reads `[gateway.state]`.
    static func states(_ context: Context, _ node: Node) -> GatewayStates {
        var states = GatewayStates()
        states.broker.name = "state"
        let found = Read.table(context, node, GatewayKeys.state, into: &states)
        guard case .table = node.value else { return states }
        if found["url"] == nil, states.broker.url.isEmpty {
            context.error("url is missing: write url = \"nats://127.0.0.1:4222\"", at: node.position)
        }
        checkLogin(context, node, states.broker)
        return states
    }

    /// Reads a NATS subject without wildcards.
    static func subject(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let isPlain = text.utf8.allSatisfy { $0 > 32 && $0 != 127 && !"*>".utf8.contains($0) }
        guard isPlain, parts.allSatisfy({ !$0.isEmpty }), text.utf8.count <= 128, parts[0] != "$JS" else {
            context.error(
                "\(quoted(text)) is no subject: write words with dots between, such as \"torpor.state\"",
                at: node.position
            )
            return nil
        }
        return text
    }

    /// Reads a URL: a scheme, a host and an optional port.
    static func url(_ dialect: SubjectPattern.Dialect) -> @Sendable (Context, Node) -> String? {
        { context, node in
            guard let text = Read.text(context, node) else { return nil }
            let schemes = dialect == .nats ? ["nats", "tls"] : ["mqtt", "mqtts"]
            let parts = text.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
            let isURL = parts.count == 3 && parts[0].hasSuffix(":") && parts[1].isEmpty && !parts[2].isEmpty
            guard isURL, schemes.contains(String(parts[0].dropLast())) else {
                let list = schemes.map { "\"\($0)://HOST:PORT\"" }.joined(separator: " or ")
                context.error("\(quoted(text)) is not the address of a server: write \(list)", at: node.position)
                return nil
            }
            guard !text.contains("@") else {
                context.error("must not contain a login: write user and password, a secret", at: node.position)
                return nil
            }
            guard dialect == .nats || BrokerAddress(text) != nil else {
                context.error("\(quoted(text)) has a path, or a port that is not a number", at: node.position)
                return nil
            }
            return text
        }
    }

    static func client(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        guard text.utf8.count <= 128 else {
            context.error("must not be longer than 128 bytes", at: node.position)
            return nil
        }
        return text
    }

    /// Reads the name of a consumer, group or stream.
    static func word(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        guard text.utf8.allSatisfy({ $0 > 32 && !".*>/\\".utf8.contains($0) }) else {
            context.error("\(quoted(text)) must not contain spaces, dots, *, > or slashes", at: node.position)
            return nil
        }
        return text
    }

    // MARK: Subscriptions

    static func subscriptions(
        _ context: Context,
        _ node: Node,
        _ dialect: SubjectPattern.Dialect
    ) -> [GatewaySubscription] {
        let keys = GatewayKeys.subscription(dialect)
        let what = dialect == .nats ? "nats" : "mqtt"
        return Read.elements(context, node, of: "tables: write [[gateway.\(what).subscriptions]]") { context, node in
            guard case .table = node.value else { return context.expected("a table", node) as GatewaySubscription? }
            var draft = GatewaySubscriptionDraft()
            let found = Read.table(context, node, keys, into: &draft)
            return finish(context, node, draft, found, dialect)
        } ?? []
    }

    private static func finish(
        _ context: Context,
        _ node: Node,
        _ draft: GatewaySubscriptionDraft,
        _ found: [String: Origin],
        _ dialect: SubjectPattern.Dialect
    ) -> GatewaySubscription? {
        var done = draft.done
        let name = dialect == .nats ? "subject" : "filter"
        guard let text = draft.pattern, let app = draft.app else {
            for key in [name, "app"] where found[key] == nil { context.error("\(key) is missing", at: node.position) }
            return nil
        }
        do throws(QuantityError) {
            done.pattern = try SubjectPattern(text, dialect)
        } catch {
            found[name]?.error(error.description)
            return nil
        }
        func template(_ key: String, _ text: String) -> SubjectTemplate? {
            do throws(QuantityError) {
                return try SubjectTemplate(text, wildcards: done.pattern.wildcards)
            } catch {
                found[key]?.error(error.description)
                return nil
            }
        }
        guard let name = template("app", app) else { return nil }
        done.app = name
        if name.isConstant, let problem = GatewayNames.problem(app: app) { found["app"]?.error(problem) }
        done.topic = draft.topic.flatMap { template("topic", $0) }
        done.key = draft.key.flatMap { template("key", $0) }
        if done.durable != nil, done.group != nil {
            found["group"]?.error("a durable consumer belongs to this gateway alone: remove group")
        }
        if done.stream != nil, done.durable == nil {
            found["stream"]?.error("needs durable, the name of the consumer that the stream keeps for this gateway")
        }
        if dialect == .mqtt, done.quality == 0, found["on_full"] != nil, done.onFull == .wait {
            found["on_full"]?.error("\"wait\" needs qos = 1: with less the broker sends no message again")
        }
        return done
    }
}

/// The address of an MQTT broker.
public struct BrokerAddress: Sendable, Hashable {
    /// A host name or an IP address.
    public let host: String
    /// The port of the broker: 1883 by default, or 8883 if the connection is encrypted.
    public let port: Int32
    /// Whether the connection is encrypted.
    public let isEncrypted: Bool

    /// Parses `mqtt://host:port`.
    public init?(_ url: String) {
        let parts = url.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3 || (parts.count == 4 && parts[3].isEmpty), parts[1].isEmpty else { return nil }
        isEncrypted = parts[0] == "mqtts:"
        var host = parts[2]
        var port: Int32 = isEncrypted ? 8883 : 1883
        if let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") {
            guard let number = UInt16(host[host.index(after: colon)...]), number > 0 else { return nil }
            port = Int32(number)
            host = host[..<colon]
        }
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty else { return nil }
        self.host = String(host)
        self.port = port
    }
}

/// Checks names in messages.
public enum GatewayNames {
    /// Why the name of an app, an instance or a scene is not valid; nil if it is.
    public static func problem(app: String) -> String? {
        let parts = app.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        if let problem = AppName.problem(parts[0]) { return problem }
        return parts.count == 1 ? nil : AppName.problem(scene: parts[1], of: parts[0])
    }

    /// Why a topic is not valid; nil if it is.
    public static func problem(topic: String) -> String? {
        // The longest topic in bytes. The supervisor refuses longer ones.
        let longest = TopicRule.longestName
        if topic.isEmpty || topic.utf8.count > longest { return "a topic has 1 to \(longest) bytes" }
        let isPlain = topic.unicodeScalars.allSatisfy { $0.value > 32 && $0.value != 127 }
        return isPlain ? nil : "a topic has no spaces and no control characters"
    }
}
