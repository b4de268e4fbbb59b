// SPDX-License-Identifier: Apache-2.0

/// The state of a recurring event of an app, such as a timer.
public struct StoredSchedule: Sendable, Hashable {
    /// The app and the event's name.
    public typealias Key = StoredKey

    /// The app and the event's name.
    public var key: Key
    /// When the event last occurred, microseconds since 1970; nil for never.
    public var lastFired: Int64?
    /// Data that torpord has learned about the event, a JSON text.
    public var learned: String?

    /// Creates a state from its parts.
    public init(app: String, name: String, lastFired: Int64? = nil, learned: String? = nil) {
        key = Key(app: app, name: name)
        self.lastFired = lastFired
        self.learned = learned
    }
}

/// A topic to which an app subscribed while it ran.
public struct StoredSubscription: Sendable, Hashable {
    /// The app and the topic.
    public struct Key: Sendable, Hashable {
        /// The app's name.
        public var app: String
        /// The topic, or a pattern that matches topics.
        public var topic: String

        /// Creates a key from its parts.
        public init(app: String, topic: String) {
            self.app = app
            self.topic = topic
        }
    }

    /// The app and the topic.
    public var key: Key
    /// How messages of the topic are delivered, a JSON text.
    public var rule: String

    /// Creates a subscription from its parts.
    public init(app: String, topic: String, rule: String) {
        key = Key(app: app, topic: topic)
        self.rule = rule
    }
}

extension StoredSchedule: TableRecord {
    package static var table: RowTable { .schedules }
    package static let shape = TableShape(
        "schedules",
        version: 3,
        "app name last_fired learned",
        numbers: ["last_fired"],
        keyCount: 2,
        frames: (6, 7)
    )

    package var recordKey: Key { key }
    package var values: [ColumnValue] { Self.values(of: key) + [.number(lastFired), .text(learned)] }

    package init?(_ values: [ColumnValue]) {
        guard let app = values[0].text, let name = values[1].text else { return nil }
        self.init(app: app, name: name, lastFired: values[2].number, learned: values[3].text)
    }
}

extension StoredSubscription: TableRecord {
    package static var table: RowTable { .subscriptions }
    package static let shape = TableShape(
        "subscriptions",
        version: 3,
        "app topic rule",
        numbers: [],
        keyCount: 2,
        frames: (8, 9)
    )
    package static func values(of key: Key) -> [ColumnValue] { [.text(key.app), .text(key.topic)] }

    package var recordKey: Key { key }
    package var values: [ColumnValue] { Self.values(of: key) + [.text(rule)] }

    package init?(_ values: [ColumnValue]) {
        guard let app = values[0].text, let topic = values[1].text, let rule = values[2].text else { return nil }
        self.init(app: app, topic: topic, rule: rule)
    }
}
