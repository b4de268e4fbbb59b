/// How many launches may be on their way to their exec at a time.
///
/// A thousand apps that are launched at once come to run no sooner for it: they would only make each other wait, and
/// each one's launch deadline would run while others have the machine. So the others wait for their turn, in the order
/// in which they came. A launch that takes unusually long (an exec from a dead filesystem, a command that runs before)
/// is passed over: it holds up nobody.
struct LaunchPacing: Sendable {
    /// How many; at least 1.
    var limit = Int.max
    private var underWay: Set<AppID> = []
    private var waiting: Set<AppID> = []
    private var queue: [AppID] = []
    private var first = 0

    /// Whether one more may begin.
    var hasRoom: Bool { underWay.count < limit }

    /// Whether some wait for others.
    var isBlocked: Bool { !waiting.isEmpty && !hasRoom }

    func isUnderWay(_ app: AppID) -> Bool { underWay.contains(app) }

    mutating func begin(_ app: AppID) { if limit != .max { underWay.insert(app) } }

    mutating func end(_ app: AppID) { underWay.remove(app) }

    /// Whatever is under way counts no more.
    mutating func passOver() { underWay.removeAll() }

    mutating func wait(_ app: AppID) {
        if waiting.insert(app).inserted { queue.append(app) }
    }

    /// Whose turn it is; nil when there is no room, or nobody waits.
    mutating func next() -> AppID? {
        guard hasRoom, first < queue.count else { return nil }
        let app = queue[first]
        first += 1
        if first == queue.count {
            queue.removeAll()
            first = 0
        }
        waiting.remove(app)
        return app
    }
}
