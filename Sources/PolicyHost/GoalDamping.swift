/// Keeps policies from sending an app to and fro: a few changes of its goal are free, further ones come one by one.
public struct GoalDamping: Sendable {
    /// So many changes follow each other at will.
    public static let free = 4
    /// One more is free after each of these.
    public static let interval = Duration.seconds(10)

    private struct Entry {
        var goal: UInt32
        /// When all that is free will be free again.
        var restedAt: Duration
    }
    private var entries: [Int: Entry] = [:]

    /// Nobody was sent anywhere yet.
    public init() {}

    /// When an app may be sent to that goal; nil for now.
    public func heldUntil(_ app: Int, goal: UInt32, now: Duration) -> Duration? {
        guard let entry = entries[app], entry.goal != goal else { return nil }
        let free = entry.restedAt - Self.interval * (Self.free - 1)
        return free > now ? free : nil
    }

    /// An app was sent to a goal.
    public mutating func sent(_ app: Int, goal: UInt32, now: Duration) {
        let restedAt = max(entries[app]?.restedAt ?? now, now)
        let isChange = entries[app]?.goal != goal
        entries[app] = Entry(goal: goal, restedAt: isChange ? restedAt + Self.interval : restedAt)
    }

    /// Somebody else sent it somewhere, or it is gone: what policies thought before does not count.
    public mutating func forget(_ app: Int) { entries[app] = nil }
}
