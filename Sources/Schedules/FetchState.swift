// SPDX-License-Identifier: Apache-2.0

/// What an app reports after a fetch, in which torpord told the app to look for new content.
public enum FetchResult: String, Sendable, Hashable, CaseIterable {
    /// The app found new content.
    case newData = "new-data"
    /// The app found nothing new.
    case noData = "no-data"
    /// The app could not look for content.
    case failed
}

/// Decides when an app looks for new content (a fetch). The interval gets shorter while fetches find new content, and
/// longer while they find none. This value has no I/O and no clock.
public struct FetchState: Sendable, Hashable {
    /// The longest interval, unless `minimum` is longer.
    public static let longest = Duration.seconds(86_400)

    /// The shortest interval (`fetch_interval`).
    public private(set) var minimum: Duration
    /// The current interval, adapted to what the app found.
    public private(set) var interval: Duration
    /// When the last fetch began, in microseconds since 1970; nil if there was none.
    public private(set) var lastWall: Int64?
    /// When the current interval began, as time since boot.
    public private(set) var anchor: Duration
    /// How many fetches in a row have failed.
    public private(set) var failures: Int
    /// How many fetches had each result.
    public private(set) var counts: [FetchResult: Int64]
    /// Until when fetches are postponed (battery, memory or load), as time since boot; nil if they are not.
    public private(set) var putOffUntil: Duration?
    /// When the fetch that is due was first postponed, as time since boot; nil if it was not.
    public private(set) var putOffSince: Duration?
    /// Whether a fetch is in progress.
    public private(set) var isUnderWay = false

    /// What torpord has learned from the results of an app's fetches.
    public struct FetchHistory: Sendable, Hashable {
        /// The interval between fetches, adapted to their results.
        public var interval: Duration
        /// How many fetches in a row have failed.
        public var failures = 0
        /// How many fetches had each result.
        public var counts: [FetchResult: Int64] = [:]

        /// A history with no results yet.
        public init(interval: Duration) { self.interval = interval }
    }

    /// What torpord stores, so that the learned interval survives a restart of torpord.
    public var learned: FetchHistory {
        var learned = FetchHistory(interval: interval)
        learned.failures = failures
        learned.counts = counts
        return learned
    }

    /// Creates the state of an app's fetches. `minimum` is the shortest interval between two fetches. `learned` and
    /// `lastWall` are what an earlier torpord stored; nil for an app without fetches so far.
    public init(minimum: Duration, _ learned: FetchHistory? = nil, lastWall: Int64? = nil, now: ClockPair) {
        self.minimum = minimum
        interval = max(minimum, min(learned?.interval ?? minimum, Self.ceiling(minimum)))
        failures = learned?.failures ?? 0
        counts = learned?.counts ?? [:]
        self.lastWall = lastWall
        anchor = lastWall.map { now.running - .microseconds(max(0, now.wall - $0)) } ?? now.running
    }

    private static func ceiling(_ minimum: Duration) -> Duration { max(minimum, min(longest, minimum * 32)) }

    /// When the next fetch is due, as time since boot.
    public var due: Duration {
        let backoff = failures == 0 ? interval : min(Self.ceiling(minimum), minimum * (1 << min(failures, 5)))
        return max(anchor + max(interval, backoff), putOffUntil ?? .zero)
    }

    /// The earliest time for the next fetch if the app or the machine is awake anyway, as time since boot.
    public var opportunity: Duration { max(anchor + max(minimum, interval * 3 / 4), putOffUntil ?? .zero, retry) }

    /// After a failed fetch: the time before which it must not be retried, as time since boot. Zero if the last fetch
    /// did not fail.
    private var retry: Duration { failures == 0 ? .zero : due }

    /// How much later than `due` a fetch may begin, so that it can begin together with other fetches and timers.
    public var slack: Duration { interval / 4 }

    /// Records that a fetch begins.
    public mutating func begin(now: ClockPair) {
        lastWall = now.wall
        anchor = now.running
        putOffUntil = nil
        putOffSince = nil
        isUnderWay = true
    }

    /// Records that a fetch has ended, and adapts the interval to its result.
    public mutating func end(_ result: FetchResult) {
        guard isUnderWay else { return }
        isUnderWay = false
        counts[result, default: 0] += 1
        switch result {
        case .newData:
            failures = 0
            interval = max(minimum, interval * 2 / 3)
        case .noData:
            failures = 0
            interval = min(Self.ceiling(minimum), interval * 3 / 2)
        case .failed: failures += 1
        }
    }

    /// Records that a fetch has ended without a result; the interval stays.
    public mutating func endUnknown() { isUnderWay = false }

    /// Postpones the fetch (low battery, short memory, high load) by 60 s to 30 min. The longer the fetch has been
    /// postponed already, the longer the delay.
    public mutating func putOff(now: ClockPair) {
        let since = putOffSince ?? now.running
        putOffSince = since
        let waited = now.running - since
        putOffUntil = now.running + min(.seconds(1_800), max(.seconds(60), min(minimum / 4, .seconds(300)), waited / 2))
    }

    /// Applies a changed `fetch_interval`.
    public mutating func setMinimum(_ minimum: Duration) {
        self.minimum = minimum
        interval = max(minimum, min(interval, Self.ceiling(minimum)))
    }
}
