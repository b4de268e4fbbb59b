// SPDX-License-Identifier: Apache-2.0

import Lifecycle
public import Mailbox
import WireText

/// One entry of `topics`: what an app takes of what is posted to it, and how it hears of it.
public struct TopicRule: Sendable, Hashable {
    /// How several become one while they wait.
    public var coalesce: Coalescing = .all
    /// Each wakes the app, also those whose sender did not say that it is urgent.
    public var urgent = false
    /// How what is urgent wakes the app.
    public var wake: WakeManner = .background
    /// It waits until it is taken, also of an app that hears of it by a signal.
    public var keep = false
    /// The apps that are told what this one does not handle, the first first: names, or `tag:NAME`.
    public var next: [String] = []

    /// A topic of which each post is told by itself, and wakes the app where it is urgent.
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

    /// Bytes that the name of a topic may have.
    public static let longestName = 128

    /// What is wrong with the name of a topic, if anything.
    public static func problem(_ name: String) -> String? {
        if name.isEmpty || name.utf8.count > longestName {
            return "the name of a topic has from 1 to \(longestName) bytes"
        }
        if name.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) {
            return "the name of a topic must not contain control characters"
        }
        return nil
    }

    /// `{ news = "latest", "sensor/*" = { urgent = true } }`: a word stands for a table with `coalesce`.
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
    /// What goes for a topic: the entry of its name, else the longest pattern that it fits.
    public func rule(for topic: String) -> TopicRule? {
        if let rule = self[topic] { return rule }
        let fitting = filter { Glob.matches($0.key, topic) }
        return fitting.max { ($0.key.utf8.count, $0.key) < ($1.key.utf8.count, $1.key) }?.value
    }
}

/// `wake_storm`: the rules, as they are written.
enum WakeStormReader {
    /// `action`.
    enum Action: String, CaseIterable {
        /// Nothing wakes the app for a while.
        case hold
        /// It is ended as well.
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
