// SPDX-License-Identifier: Apache-2.0

import Lifecycle
public import Mailbox
import WireText

/// An entry of `topics`: how an app receives the messages of a topic.
public struct TopicRule: Sendable, Hashable {
    /// How to merge a new message with messages already queued for the topic.
    public var coalesce: Coalescing = .all
    /// Whether every message of the topic wakes the app, even if the sender has not marked the message as urgent.
    public var urgent = false
    /// How urgent messages wake the app.
    public var wake: WakeManner = .background
    /// Whether a message stays queued until the app fetches it, even if torpord has notified the app of the message by
    /// a signal.
    public var keep = false
    /// Whether messages of the topic are not queued. Instead, torpord stores only the topic's name, and sends it to the
    /// app with the message `refresh` when the app is in the foreground.
    public var refresh = false
    /// The apps to which torpord offers a message that this app does not handle, in this order. Each entry is a name or
    /// `tag:NAME`.
    public var next: [String] = []

    /// Creates a rule that merges no messages. Urgent messages wake the app.
    public init() {}
}

extension TopicRule {
    static let keys: [Key<TopicRule>] = [
        .value("coalesce", \.coalesce) { Read.choice($0, $1) },
        .value("urgent", \.urgent, Read.boolean),
        .value("wake", \.wake) { Read.choice($0, $1) },
        .value("keep", \.keep, Read.boolean),
        .value("refresh", \.refresh, Read.boolean),
        .value("next", \.next, Read.texts),
    ]

    /// The maximum length of a topic's name, in bytes.
    public static let longestName = 128

    /// Why a text is not a valid name of a topic; nil if it is valid.
    public static func problem(_ name: String) -> String? {
        if name.isEmpty || name.utf8.count > longestName {
            return "the name of a topic has from 1 to \(longestName) bytes"
        }
        if name.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) {
            return "the name of a topic must not contain control characters"
        }
        return nil
    }

    /// Reads the table `topics`, such as `{ news = "latest", "sensor/*" = { urgent = true } }`. A single word is the
    /// value of `coalesce`.
    static func topics(_ context: Context, _ node: Node) -> [(String, TopicRule)] {
        var topics: [(String, TopicRule)] = []
        for member in Read.members(context, node) ?? [] {
            let inner = context.at(member.key)
            if let problem = problem(member.key) {
                inner.error(problem, at: member.position)
                continue
            }
            var rule = TopicRule()
            if case .string = member.node.value {
                guard let coalesce: Coalescing = Read.choice(inner, member.node) else { continue }
                rule.coalesce = coalesce
            } else {
                let found = Read.table(inner, member.node, keys, into: &rule)
                let others = keys.map(\.name).filter { $0 != "refresh" && found[$0] != nil }
                if rule.refresh, !others.isEmpty {
                    inner.error(
                        "refresh = true keeps no message, only the topic's name: leave out "
                            + others.joined(separator: ", "),
                        at: member.position
                    )
                }
            }
            topics.append((member.key, rule))
        }
        return topics
    }

    @Sendable static func members(of topics: [String: TopicRule]) -> [String: String] {
        topics.mapValues { rule in
            let words = [
                rule.coalesce.rawValue, rule.urgent ? "urgent" : nil,
                rule.wake == .background ? nil : "wake \(rule.wake.rawValue)", rule.keep ? "keep" : nil,
                rule.refresh ? "refresh" : nil, rule.next.isEmpty ? nil : "next " + rule.next.joined(separator: " "),
            ]
            return words.compactMap { $0 }.joined(separator: ", ")
        }
    }
}

extension [String: TopicRule] {
    /// The rule for a topic: the entry with exactly that name, otherwise the entry with the longest matching pattern;
    /// nil if no entry matches.
    public func rule(for topic: String) -> TopicRule? {
        if let rule = self[topic] { return rule }
        let fitting = filter { Glob.matches($0.key, topic) }
        return fitting.max { ($0.key.utf8.count, $0.key) < ($1.key.utf8.count, $1.key) }?.value
    }
}

/// Reads `wake_storm`: what torpord does if events wake an app too often.
enum WakeStormReader {
    /// The values of `wake_storm.action`.
    enum Action: String, CaseIterable {
        /// For the time `wake_storm.hold`, no event wakes the app.
        case hold
        /// The app is terminated, and for the time `wake_storm.hold` no event wakes it.
        case end
    }

    static let keys: [Key<WakeStormRules>] = [
        .value("limit", \.limit, Read.integer(0...1_000_000)),
        .value("window", \.window, Read.positiveDuration),
        .value("hold", \.hold, Read.positiveDuration),
        Key("action") { context, node, rules in
            let action: Action? = Read.choice(context, node)
            if let action { rules.ends = action == .end }
        },
    ]

    @Sendable static func members(of rules: WakeStormRules) -> [String: String] {
        [
            "limit": "\(rules.limit)", "window": Quantity.text(rules.window), "hold": Quantity.text(rules.hold),
            "action": (rules.ends ? Action.end : Action.hold).rawValue,
        ]
    }
}
