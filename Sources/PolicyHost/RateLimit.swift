// SPDX-License-Identifier: Apache-2.0

/// A rate limit per key: a number of events in a row, then one per interval.
public struct RateLimit<Key: Hashable & Sendable>: Sendable {
    private let free: Int
    private let interval: Duration
    /// When the whole allowance of a key is available again.
    private var restedAt: [Key: Duration] = [:]

    /// Allows `free` in a row, and one more after each interval.
    public init(free: Int, interval: Duration) {
        self.free = free
        self.interval = interval
    }

    /// When the next event is allowed; nil if now.
    public func heldUntil(_ key: Key, now: Duration) -> Duration? {
        guard let restedAt = restedAt[key] else { return nil }
        let next = restedAt - interval * (free - 1)
        return next > now ? next : nil
    }

    /// Counts an event.
    public mutating func count(_ key: Key, now: Duration) {
        restedAt[key] = max(restedAt[key] ?? now, now) + interval
        // Keys with a full allowance need no entry.
        if restedAt.count > 4096 { restedAt = restedAt.filter { $0.value > now } }
    }

    /// Forgets what was counted for the key.
    public mutating func forget(_ key: Key) { restedAt[key] = nil }
}
