// SPDX-License-Identifier: Apache-2.0

/// Keeps policies from sending an app to and fro: a few changes of its goal are free, further ones come one by one.
public struct GoalDamping: Sendable {
    /// So many changes follow each other at will.
    public static let free = 4
    /// One more is free after each of these.
    public static let interval = Duration.seconds(10)

    private var changes = RateLimit<Int>(free: Self.free, interval: Self.interval)
    private var goals: [Int: UInt32] = [:]

    /// Nobody was sent anywhere yet.
    public init() {}

    /// When an app may be sent to that goal; nil for now.
    public func heldUntil(_ app: Int, goal: UInt32, now: Duration) -> Duration? {
        goals[app] == goal ? nil : changes.heldUntil(app, now: now)
    }

    /// An app was sent to a goal.
    public mutating func sent(_ app: Int, goal: UInt32, now: Duration) {
        guard goals[app] != goal else { return }
        goals[app] = goal
        changes.count(app, now: now)
    }

    /// Somebody else sent it somewhere, or it is gone: what policies thought before does not count.
    public mutating func forget(_ app: Int) {
        goals[app] = nil
        changes.forget(app)
    }
}
