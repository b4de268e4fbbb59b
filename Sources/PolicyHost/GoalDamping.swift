// SPDX-License-Identifier: Apache-2.0

/// Keeps policies from switching an app's goal back and forth: the first few changes are allowed at once, later ones
/// are rate-limited.
public struct GoalDamping: Sendable {
    /// How many changes of an app's goal are allowed without a pause.
    public static let free = 4
    /// The pause before each further change of an app's goal, once the `free` changes are used up.
    public static let interval = Duration.seconds(10)

    private var changes = RateLimit<Int>(free: Self.free, interval: Self.interval)
    private var goals: [Int: UInt32] = [:]

    /// Creates a limiter without any recorded changes.
    public init() {}

    /// When a policy may change an app's goal to `goal`; nil if it may do so now.
    public func heldUntil(_ app: Int, goal: UInt32, now: Duration) -> Duration? {
        goals[app] == goal ? nil : changes.heldUntil(app, now: now)
    }

    /// Records that a policy set an app's goal.
    public mutating func sent(_ app: Int, goal: UInt32, now: Duration) {
        guard goals[app] != goal else { return }
        goals[app] = goal
        changes.count(app, now: now)
    }

    /// Forgets which goal policies set for an app, and how often. Call this when something other than a policy has set
    /// the app's goal, or when the app was removed.
    public mutating func forget(_ app: Int) {
        goals[app] = nil
        changes.forget(app)
    }
}
