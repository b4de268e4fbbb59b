// SPDX-License-Identifier: Apache-2.0

/// Keeps policies from switching an app's goal back and forth: the first few changes are free, then they are
/// rate-limited.
public struct GoalDamping: Sendable {
    /// How many changes may follow each other without a pause.
    public static let free = 4
    /// One more change is allowed after each interval.
    public static let interval = Duration.seconds(10)

    private var changes = RateLimit<Int>(free: Self.free, interval: Self.interval)
    private var goals: [Int: UInt32] = [:]

    /// No goals set yet.
    public init() {}

    /// When an app's goal may be set to this one; nil if now.
    public func heldUntil(_ app: Int, goal: UInt32, now: Duration) -> Duration? {
        goals[app] == goal ? nil : changes.heldUntil(app, now: now)
    }

    /// Records that a policy set an app's goal.
    public mutating func sent(_ app: Int, goal: UInt32, now: Duration) {
        guard goals[app] != goal else { return }
        goals[app] = goal
        changes.count(app, now: now)
    }

    /// The goal was set by something other than a policy, or the app is gone: earlier changes no longer count.
    public mutating func forget(_ app: Int) {
        goals[app] = nil
        changes.forget(app)
    }
}
