// SPDX-License-Identifier: Apache-2.0

/// So many at will, further ones one by one; for each key by itself.
public struct RateLimit<Key: Hashable & Sendable>: Sendable {
    private let free: Int
    private let interval: Duration
    /// When all that is free will be free again.
    private var restedAt: [Key: Duration] = [:]

    /// Allows `free` in a row, and one more after each interval.
    public init(free: Int, interval: Duration) {
        self.free = free
        self.interval = interval
    }

    /// When the next one is allowed; nil for now.
    public func heldUntil(_ key: Key, now: Duration) -> Duration? {
        guard let restedAt = restedAt[key] else { return nil }
        let next = restedAt - interval * (free - 1)
        return next > now ? next : nil
    }

    /// Counts one.
    public mutating func count(_ key: Key, now: Duration) {
        restedAt[key] = max(restedAt[key] ?? now, now) + interval
        // Those that are rested need no memory.
        if restedAt.count > 4096 { restedAt = restedAt.filter { $0.value > now } }
    }

    /// What was counted for the key counts no more.
    public mutating func forget(_ key: Key) { restedAt[key] = nil }
}
