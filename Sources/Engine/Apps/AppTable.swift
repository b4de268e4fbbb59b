// SPDX-License-Identifier: Apache-2.0

import Configuration
public import Lifecycle

/// All apps: by id, and in the order in which commands list them.
///
/// An app that left the configuration stays in the table under its id, unlisted, until a new app reuses the id. So a
/// lookup by an old id never returns a different app before that.
public final class AppTable: Sequence {
    @usableFromInline var places: [AppRuntime] = []
    private var listed: [AppRuntime] = []

    init() {}

    /// The app with that id, even if the configuration no longer contains the app.
    @inlinable public subscript(id: AppID) -> AppRuntime { places[id] }

    /// The number of listed apps.
    package var count: Int { listed.count }

    /// The listed apps. Reading this array does not copy it.
    package var all: [AppRuntime] { listed }

    /// The listed apps, one after the other.
    public func makeIterator() -> IndexingIterator<[AppRuntime]> { listed.makeIterator() }

    /// Lists an app, and stores it under its id. The id must be one that no app uses, or the next higher one.
    package func append(_ app: AppRuntime) {
        app.isListed = true
        if app.id == places.count { places.append(app) } else { places[app.id] = app }
        let key = Self.order(app)
        // The apps of a configuration are sorted already, so the search below is rarely needed.
        if let last = listed.last, Self.order(last) > key {
            var (low, high) = (0, listed.count)
            while low < high {
                let middle = (low + high) / 2
                if Self.order(listed[middle]) > key { high = middle } else { low = middle + 1 }
            }
            listed.insert(app, at: low)
        } else {
            listed.append(app)
        }
    }

    /// Removes an app from the list. Its id can still be looked up.
    package func remove(_ app: AppRuntime) {
        app.isListed = false
        listed.removeAll { $0 === app }
    }

    /// The key for sorting: by name, and instances of a template by number.
    private static func order(_ app: AppRuntime) -> (String, Int, String) {
        (app.specification.template, app.specification.instance ?? 0, app.specification.scene ?? "")
    }
}
