// SPDX-License-Identifier: Apache-2.0

import Lifecycle
public import Mailbox
import WireText

/// An entry of `topics`: which messages an app accepts, and how it receives them.
public struct TopicRule: Sendable, Hashable {
    /// How messages of the topic that are queued are merged.
    public var coalesce: Coalescing = .all
    /// Whether each message wakes the app, even if its sender did not mark it urgent.
    public var urgent = false
    /// How urgent messages wake the app.
    public var wake: WakeManner = .background
    /// Whether messages stay queued until the app takes them, even if a signal notifies the app.
    public var keep = false
    /// The apps that get the messages that this app does not handle, in this order: names, or `tag:NAME`.
    public var next: [String] = []

    /// A rule by which messages are delivered one by one, and wake the app if they are urgent.
    public init() {}
}

extension TopicRule {
    static let keys: [Key<TopicRule>] = [
        .value("coalesce", \.coalesce) { Read.choice($0, $1) },
        .value("urgent", \.urgent, Read.boolean),
        .value("wake", \.wake) { Read.choice($0, $1) },
        .value("keep", \.keep, Read.boolean),
        .value("next", \.next, Read.texts),
    ]

    /// The maximum length of a topic's name, in bytes.
    public static let longestName = 128

    /// Why the name of a topic is not valid; nil if it is.
    public static func problem(_ name: String) -> String? {
        if name.isEmpty || name.utf8.count > longestName {
            return "the name of a topic has from 1 to \(longestName) bytes"
        }
        if name.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) {
            return "the name of a topic must not contain control characters"
        }
        return nil
    }

    /// Reads `{ news = "latest", "sensor/*" = { urgent = true } }`; a word stands for a table with `coalesce`.
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
                Read.table(inner, member.node, keys, into: &rule)
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
                rule.next.isEmpty ? nil : "next " + rule.next.joined(separator: " "),
            ]
            return words.compactMap { $0 }.joined(separator: ", ")
        }
    }
}

extension [String: TopicRule] {
    /// The rule for a topic: the entry with its name, otherwise the entry with the longest pattern that matches.
    public func rule(for topic: String) -> TopicRule? {
        if let rule = self[topic] { return rule }
        let fitting = filter { Glob.matches($0.key, topic) }
        return fitting.max { ($0.key.utf8.count, $0.key) < ($1.key.utf8.count, $1.key) }?.value
    }
}

/// Reads `wake_storm`, the rules for apps that events wake too often.
enum WakeStormReader {
    /// The values of `action`: what happens to an app that is woken too often.
    enum Action: String, CaseIterable {
        /// Events do not wake the app for a while.
        case hold
        /// Events do not wake the app for a while, and the app is terminated.
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
