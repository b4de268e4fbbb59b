// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The apps as they were listed last, and what another list changes of it.
public struct AppTable: Sendable {
    private var apps: [String: JSON] = [:]
    private var order: [String] = []

    /// An empty one.
    public init() {}

    /// All apps in their order.
    public var all: [JSON] { order.compactMap { apps[$0] } }

    /// What became different.
    public struct Change: Hashable, Sendable {
        /// Apps that are new or not as before.
        public var changed: [JSON] = []
        /// Names of apps that are gone.
        public var removed: [String] = []

        /// Whether nothing did.
        public var isEmpty: Bool { changed.isEmpty && removed.isEmpty }
        /// It as an object.
        public var json: JSON { ["changed": .array(changed), "removed": .strings(removed)] }
    }

    /// Takes a list. An app that only has been up for longer is as before.
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
        // A page knows from the first time when it was launched.
        if (one["uptime_s"] == .null) == (other["uptime_s"] == .null) {
            (one["uptime_s"], other["uptime_s"]) = (nil, nil)
        }
        return one == other
    }
}
