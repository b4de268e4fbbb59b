// SPDX-License-Identifier: Apache-2.0

/// A source of messages that has a process of its own: a broker, or the stream of states.
public enum GatewaySource: Sendable, Hashable, CustomStringConvertible {
    /// A server of NATS, by its name.
    case nats(String)
    /// A broker of MQTT, by its name.
    case mqtt(String)
    /// The stream that keeps states.
    case state

    /// Parses what ``description`` returns.
    public init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
        switch (parts.first, parts.count) {
        case ("nats", 2): self = .nats(parts[1])
        case ("mqtt", 2): self = .mqtt(parts[1])
        case ("state", 1): self = .state
        default: return nil
        }
    }

    /// `nats:NAME`, `mqtt:NAME` or `state`: the source's name in the log, and the sender that apps see.
    public var description: String {
        switch self {
        case .nats(let name): "nats:\(name)"
        case .mqtt(let name): "mqtt:\(name)"
        case .state: "state"
        }
    }
}

extension GatewaySpecification {
    /// The sources that have a process of their own.
    public var sources: [GatewaySource] {
        nats.map { .nats($0.name) } + mqtt.map { .mqtt($0.name) } + (state == nil ? [] : [.state])
    }

    /// The broker of a source; nil if the configuration has none.
    public func broker(of source: GatewaySource) -> GatewayBroker? {
        switch source {
        case .nats(let name): nats.first { $0.name == name }
        case .mqtt(let name): mqtt.first { $0.name == name }
        case .state: state?.broker
        }
    }
}
