// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The last list of apps. Determines what changes in a new list.
public struct AppTable: Sendable {
    private var apps: [String: JSON] = [:]
    private var order: [String] = []

    /// Creates an empty table.
    public init() {}

    /// All apps in their order.
    public var all: [JSON] { order.compactMap { apps[$0] } }

    /// The difference between two lists.
    public struct Change: Hashable, Sendable {
        /// Apps that are new or changed.
        public var changed: [JSON] = []
        /// Names of removed apps.
        public var removed: [String] = []

        /// Whether nothing changed.
        public var isEmpty: Bool { changed.isEmpty && removed.isEmpty }
        /// The difference as JSON, for pages.
        public var json: JSON { ["changed": .array(changed), "removed": .strings(removed)] }
    }

    /// Replaces the list. An app is unchanged if only its uptime differs.
    public mutating func take(_ list: [JSON]) -> Change {
        var change = Change()
        var names: [String] = []
        for app in list {
            guard let name = app["name"]?.stringValue else { continue }
            names.append(name)
            let isKnown = apps[name].map { Self.isSame($0, app) } ?? false
            if !isKnown { change.changed.append(app) }
            apps[name] = app
        }
        let now = Set(names)
        change.removed = order.filter { !now.contains($0) }
        for name in change.removed { apps[name] = nil }
        order = names
        return change
    }

    private static func isSame(_ one: JSON, _ other: JSON) -> Bool {
        guard var one = one.objectValue, var other = other.objectValue else { return one == other }
        // The page computes the launch time from the first uptime that it gets, so only a change from or to null
        // counts.
        if (one["uptime_s"] == .null) == (other["uptime_s"] == .null) {
            (one["uptime_s"], other["uptime_s"]) = (nil, nil)
        }
        return one == other
    }
}
