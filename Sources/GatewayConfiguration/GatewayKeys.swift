// SPDX-License-Identifier: Apache-2.0

import Configuration

/// Every key of `[gateway]` and its tables.
enum GatewayKeys {
    static let all: [Key<GatewaySpecification>] = [
        .value("connections", \.connections, Read.integer(1...32)),
        Key("http") { context, node, gateway in
            var endpoint = GatewayEndpoint()
            Read.table(context, node, http, into: &endpoint)
            if endpoint.tokens.isEmpty, case .table = node.value {
                context.error(
                    "has no tokens, so no client could post: write [[gateway.http.tokens]] with name and secret",
                    at: node.position
                )
            }
            gateway.http = endpoint
        },
        .value("log_level", \.logLevel) { Read.choice($0, $1) },
        .value("max_payload", \.maxPayload, GatewayRead.payload),
        Key("mqtt") { context, node, gateway in
            gateway.mqtt = GatewayRead.brokers(context, node, .mqtt)
        },
        Key("nats") { context, node, gateway in
            gateway.nats = GatewayRead.brokers(context, node, .nats)
        },
        .value("queue", \.queue, Read.integer(1...65_536)),
        .value("secrets", \.secrets, Read.path),
        .value("socket", \.socket, Read.path),
        Key("state") { context, node, gateway in
            gateway.state = GatewayRead.states(context, node)
        },
    ]

    static let state: [Key<GatewayStates>] = [
        .value("apps", \.apps, Read.texts),
        .optional("ca_file", \.broker.authorities, Read.path),
        .optional("certificate", \.broker.certificate, Read.path),
        .value("create", \.create, Read.boolean),
        .optional("credentials", \.broker.credentials, Read.path),
        .optional("key", \.broker.key, Read.text),
        .optional("node", \.node, GatewayRead.word),
        .optional("password", \.broker.password, Read.text),
        .value("replicas", \.replicas, Read.integer(1...5)),
        .value("stream", \.stream, GatewayRead.word),
        .value("subject", \.subject, GatewayRead.subject),
        .optional("token", \.broker.token, Read.text),
        .value("tokens", \.tokens, Read.path),
        .value("url", \.broker.url, GatewayRead.url(.nats)),
        .optional("user", \.broker.user, Read.text),
    ]

    static let http: [Key<GatewayEndpoint>] = [
        .value("listen", \.address, GatewayRead.address),
        .value("max_connections", \.maxConnections, Read.integer(1...10_000)),
        .value("timeout", \.timeout, GatewayRead.timeout),
        .value("tokens", \.tokens, GatewayRead.tokens),
    ]

    static let token: [Key<GatewayToken>] = [
        .value("apps", \.apps, Read.texts),
        .value("name", \.name, Read.text),
        .value("scenes", \.scenes, Read.texts),
        .value("secret", \.secret, Read.text),
        .value("topics", \.topics, Read.texts),
    ]

    static func broker(_ dialect: SubjectPattern.Dialect) -> [Key<GatewayBroker>] {
        let both: [Key<GatewayBroker>] = [
            .optional("ca_file", \.authorities, Read.path),
            .optional("certificate", \.certificate, Read.path),
            .optional("key", \.key, Read.text),
            .value("name", \.name, Read.text),
            .optional("password", \.password, Read.text),
            Key("subscriptions") { context, node, broker in
                broker.subscriptions = GatewayRead.subscriptions(context, node, dialect)
            },
            .value("url", \.url, GatewayRead.url(dialect)),
            .optional("user", \.user, Read.text),
        ]
        return both
            + (dialect == .nats
                ? [.optional("credentials", \.credentials, Read.path), .optional("token", \.token, Read.text)]
                : [.optional("client_id", \.client, GatewayRead.client)])
    }

    static func subscription(_ dialect: SubjectPattern.Dialect) -> [Key<GatewaySubscriptionDraft>] {
        let both: [Key<GatewaySubscriptionDraft>] = [
            .optional("app", \.app, Read.text),
            .optional("coalesce", \.done.coalesce) { Read.choice($0, $1) },
            .optional("key", \.key, Read.text),
            .value("on_full", \.done.onFull) { Read.choice($0, $1) },
            .optional("topic", \.topic, Read.text),
            .value("wake", \.done.wake) { Read.choice($0, $1) },
        ]
        return both
            + (dialect == .nats
                ? [
                    .optional("durable", \.done.durable, GatewayRead.word),
                    .optional("group", \.done.group, GatewayRead.word),
                    .optional("stream", \.done.stream, GatewayRead.word),
                    .optional("subject", \.pattern, Read.text),
                ]
                : [.optional("filter", \.pattern, Read.text), .value("qos", \.done.quality, Read.integer(0...1))])
    }
}

/// A subscription whose templates are not parsed yet, because its subject decides which placeholders they may contain.
struct GatewaySubscriptionDraft: Sendable {
    var done = GatewaySubscription()
    var pattern: String?
    var app: String?
    var topic: String?
    var key: String?
}
