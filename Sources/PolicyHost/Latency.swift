// SPDX-License-Identifier: Apache-2.0

/// A histogram of durations with sixteen buckets for each power of two: so quantiles are accurate to about 6 %.
public struct Latency: Sendable {
    /// The counters, sixteen per power of two; the last one counts everything from about 17 s on.
    private var buckets: [UInt32] = []
    /// How many durations were counted.
    public private(set) var count = 0

    /// Creates an empty histogram.
    public init() {}

    /// Counts a duration.
    public mutating func add(_ time: Duration) {
        let (seconds, attoseconds) = time.components
        add(nanoseconds: seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000)
    }

    /// Counts a duration.
    public mutating func add(nanoseconds: Int64) {
        if buckets.isEmpty { buckets = [UInt32](repeating: 0, count: Self.bucketCount) }
        buckets[Self.bucket(of: UInt64(clamping: nanoseconds))] &+= 1
        count += 1
    }

    /// The quantile for `part`, a number from 0 to 1; nil if nothing was counted.
    public func quantile(_ part: Double) -> Duration? {
        guard count > 0 else { return nil }
        var left = max(1, Int((Double(count) * part).rounded(.up)))
        for (index, number) in buckets.enumerated() {
            left -= Int(number)
            if left <= 0 { return .nanoseconds(Int64(Self.middle(of: index))) }
        }
        return nil
    }

    private static let bucketCount = 16 * 32

    private static func bucket(of nanoseconds: UInt64) -> Int {
        guard nanoseconds >= 16 else { return Int(nanoseconds) }
        let power = 63 - nanoseconds.leadingZeroBitCount
        let part = Int(nanoseconds >> UInt64(power - 4)) & 15
        return min(bucketCount - 1, (power - 3) * 16 + part)
    }

    private static func middle(of bucket: Int) -> UInt64 {
        guard bucket >= 16 else { return UInt64(bucket) }
        let power = bucket / 16 + 3
        let width = UInt64(1) << UInt64(power - 4)
        return (UInt64(16 + bucket % 16) << UInt64(power - 4)) + width / 2
    }
}
