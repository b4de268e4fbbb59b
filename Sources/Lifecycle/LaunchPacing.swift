// SPDX-License-Identifier: Apache-2.0

/// How many launches may be on their way to their exec at a time.
///
/// A thousand apps that are launched at once come to run no sooner for it: they would only make each other wait, and
/// each one's launch deadline would run while others have the machine. So the others wait for their turn, in the order
/// in which they came; restarts after all others, so that apps that crash again and again delay no app that is wanted.
/// A launch that takes unusually long (an exec from a dead filesystem, a command that runs before) is passed over: it
/// holds up nobody.
struct LaunchPacing: Sendable {
    /// How many; at least 1.
    var limit = Int.max
    private var underWay: Set<AppID> = []
    private var waiting: Set<AppID> = []
    /// Those of `waiting` that are no restarts.
    private var wanted: Set<AppID> = []
    private var queue = Queue()
    /// May have some that have had their turn, or are in `queue` since.
    private var restarts = Queue()

    /// Whether one more may begin.
    var hasRoom: Bool { underWay.count < limit }

    /// Whether some wait for others.
    var isBlocked: Bool { !waiting.isEmpty && !hasRoom }

    func isUnderWay(_ app: AppID) -> Bool { underWay.contains(app) }

    mutating func begin(_ app: AppID) { if limit != .max { underWay.insert(app) } }

    mutating func end(_ app: AppID) { underWay.remove(app) }

    /// Whatever is under way counts no more.
    mutating func passOver() { underWay.removeAll() }

    mutating func wait(_ app: AppID, isRestart: Bool) {
        let isNew = waiting.insert(app).inserted
        if isRestart {
            if isNew { restarts.append(app) }
        } else if wanted.insert(app).inserted {
            queue.append(app)
        }
    }

    /// Whether some wait after all others.
    var hasRestarts: Bool { !restarts.isEmpty }

    /// One that waits as a restart is waited for by a launch that is none.
    mutating func prefer(_ app: AppID) {
        if waiting.contains(app), wanted.insert(app).inserted { queue.append(app) }
    }

    /// Whose turn it is; nil when there is no room, or nobody waits.
    mutating func next() -> AppID? {
        guard hasRoom else { return nil }
        while let app = queue.popFirst() ?? restarts.popFirst() {
            wanted.remove(app)
            if waiting.remove(app) != nil { return app }
        }
        return nil
    }

    /// First in, first out.
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
