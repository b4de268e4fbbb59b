/// Keeps policies from sending an app to and fro: who changes their mind about an app has to wait before it counts
/// again, longer each time.
public struct GoalDamping: Sendable {
    /// How long the first change of mind has to wait.
    public static let initial = Duration.seconds(1)
    /// The longest wait.
    public static let cap = Duration.seconds(60)

    private struct Entry {
        var goal: UInt32
        var at: Duration
        var wait: Duration
    }
    private var entries: [Int: Entry] = [:]

    /// Nobody was sent anywhere yet.
    public init() {}

    /// When an app may be sent to that goal; nil for now.
    public func heldUntil(_ app: Int, goal: UInt32, now: Duration) -> Duration? {
        guard let entry = entries[app], entry.goal != goal, now < entry.at + entry.wait else { return nil }
        return entry.at + entry.wait
    }

    /// An app was sent to a goal.
    public mutating func sent(_ app: Int, goal: UInt32, now: Duration) {
        guard let entry = entries[app], entry.goal != goal, now - entry.at < Self.cap * 2 else {
            if entries[app]?.goal != goal { entries[app] = Entry(goal: goal, at: now, wait: Self.initial) }
            return
        }
        // Soon after the wait was over it is the same again: then it waits longer.
        let isCalm = now - entry.at >= max(entry.wait * 4, .seconds(10))
        entries[app] = Entry(goal: goal, at: now, wait: isCalm ? Self.initial : min(entry.wait * 2, Self.cap))
    }

    /// Somebody else sent it somewhere, or it is gone: what policies thought before does not count.
    public mutating func forget(_ app: Int) { entries[app] = nil }
}
