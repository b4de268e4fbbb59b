// SPDX-License-Identifier: Apache-2.0

/// Limits how many launches are between start and exec at once.
///
/// A thousand apps launched at once would not be ready sooner: they would compete for the CPU and disk while their
/// launch deadlines run. So launches above the limit wait in a queue, first in, first out. Restarts come last, so that
/// apps that crash repeatedly do not delay an app that a user wants. A launch that takes unusually long (an exec from a
/// hung filesystem, a slow command before the exec) no longer counts towards the limit, so that it does not block other
/// launches.
struct LaunchPacing: Sendable {
    /// The most launches that may be in progress at once; at least 1.
    var limit = Int.max
    private var underWay: Set<AppID> = []
    private var waiting: Set<AppID> = []
    /// The waiting apps that `queue` contains, because their launch is not a restart or because another launch waits
    /// for it.
    private var wanted: Set<AppID> = []
    private var queue = Queue()
    /// Restarts that wait, in order. An entry stays in this queue when its app is launched or moves to `queue`, so
    /// ``next()`` skips entries that no longer wait.
    private var restarts = Queue()

    /// Whether the number of launches in progress is below the limit, so that one more may begin.
    var hasRoom: Bool { underWay.count < limit }

    /// Whether launches wait because the limit is reached.
    var isBlocked: Bool { !waiting.isEmpty && !hasRoom }

    func isUnderWay(_ app: AppID) -> Bool { underWay.contains(app) }

    mutating func begin(_ app: AppID) { if limit != .max { underWay.insert(app) } }

    mutating func end(_ app: AppID) { underWay.remove(app) }

    /// Stops counting the launches in progress, so that they no longer block other launches.
    mutating func passOver() { underWay.removeAll() }

    mutating func wait(_ app: AppID, isRestart: Bool) {
        let isNew = waiting.insert(app).inserted
        if isRestart {
            if isNew { restarts.append(app) }
        } else if wanted.insert(app).inserted {
            queue.append(app)
        }
    }

    /// Whether the queue of restarts is not empty. All apps in it may already have been launched.
    var hasRestarts: Bool { !restarts.isEmpty }

    /// Moves a waiting restart to the queue of ordinary launches, because another app's launch waits for it.
    mutating func prefer(_ app: AppID) {
        if waiting.contains(app), wanted.insert(app).inserted { queue.append(app) }
    }

    /// The next app to launch; nil if the limit is reached or no launch waits.
    mutating func next() -> AppID? {
        guard hasRoom else { return nil }
        while let app = queue.popFirst() ?? restarts.popFirst() {
            wanted.remove(app)
            if waiting.remove(app) != nil { return app }
        }
        return nil
    }

    /// A queue: first in, first out.
    private struct Queue: Sendable {
        private var apps: [AppID] = []
        private var first = 0

        var isEmpty: Bool { apps.isEmpty }

        mutating func append(_ app: AppID) { apps.append(app) }

        mutating func popFirst() -> AppID? {
            guard first < apps.count else { return nil }
            let app = apps[first]
            first += 1
            if first == apps.count {
                apps.removeAll()
                first = 0
            } else if first >= 64, first * 2 > apps.count {
                apps.removeFirst(first)
                first = 0
            }
            return app
        }
    }
}
