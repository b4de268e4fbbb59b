// SPDX-License-Identifier: Apache-2.0

/// A rate limit per key: a number of events at once, then one event per interval.
public struct RateLimit<Key: Hashable & Sendable>: Sendable {
    private let free: Int
    private let interval: Duration
    /// For each key, the time from which `free` events at once are allowed again.
    private var restedAt: [Key: Duration] = [:]

    /// Allows `free` events at once, and one more after each interval.
    public init(free: Int, interval: Duration) {
        self.free = free
        self.interval = interval
    }

    /// When the next event with this key is allowed; nil if it is allowed now.
    public func heldUntil(_ key: Key, now: Duration) -> Duration? {
        guard let restedAt = restedAt[key] else { return nil }
        let next = restedAt - interval * (free - 1)
        return next > now ? next : nil
    }

    /// Counts an event of the key.
    public mutating func count(_ key: Key, now: Duration) {
        restedAt[key] = max(restedAt[key] ?? now, now) + interval
        // To limit the memory, remove each key that may have `free` events at once again. A key without an entry is
        // treated in the same way.
        if restedAt.count > 4096 { restedAt = restedAt.filter { $0.value > now } }
    }

    /// Forgets the counted events of the key, so that `free` events are allowed at once again.
    public mutating func forget(_ key: Key) { restedAt[key] = nil }
}
