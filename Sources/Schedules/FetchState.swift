// SPDX-License-Identifier: Apache-2.0

/// What an app found when it was told to look for new content.
public enum FetchResult: String, Sendable, Hashable, CaseIterable {
    /// There was something new.
    case newData = "new-data"
    /// There was nothing new.
    case noData = "no-data"
    /// It could not look.
    case failed
}

/// When an app looks for new content: in intervals that become shorter while it finds some and longer while it finds
/// none. A value without I/O and clocks.
public struct FetchState: Sendable, Hashable {
    /// No interval is longer, unless it must be.
    public static let longest = Duration.seconds(86_400)

    /// `fetch_interval`: no interval is shorter.
    public private(set) var minimum: Duration
    /// The interval now, by what was found so far.
    public private(set) var interval: Duration
    /// When it was told to look last, by the wall and since the boot.
    public private(set) var lastWall: Int64?
    /// When the interval began, since the boot.
    public private(set) var anchor: Duration
    /// How many times in a row it could not look.
    public private(set) var failures: Int
    /// How many times it found something, found nothing, could not look.
    public private(set) var counts: [FetchResult: Int64]
    /// Not before then, since the boot: the machine has no strength to spare.
    public private(set) var putOffUntil: Duration?
    /// Since when it is put off, since the boot.
    public private(set) var putOffSince: Duration?
    /// It was told to look and has not said what it found.
    public private(set) var isUnderWay = false

    /// What is known of an app's intervals.
    public struct FetchHistory: Sendable, Hashable {
        /// The interval.
        public var interval: Duration
        /// How many times in a row it could not look.
        public var failures = 0
        /// How many times it found something, found nothing, could not look.
        public var counts: [FetchResult: Int64] = [:]

        /// An app of which the interval is known.
        public init(interval: Duration) { self.interval = interval }
    }

    /// What was learned, for whoever goes on with it.
    public var learned: FetchHistory {
        var learned = FetchHistory(interval: interval)
        learned.failures = failures
        learned.counts = counts
        return learned
    }

    /// An app that looks for new content at most once in `minimum`.
    public init(minimum: Duration, _ learned: FetchHistory? = nil, lastWall: Int64? = nil, now: ClockPair) {
        self.minimum = minimum
        interval = max(minimum, min(learned?.interval ?? minimum, Self.ceiling(minimum)))
        failures = learned?.failures ?? 0
        counts = learned?.counts ?? [:]
        self.lastWall = lastWall
        anchor = lastWall.map { now.running - .microseconds(max(0, now.wall - $0)) } ?? now.running
    }

    private static func ceiling(_ minimum: Duration) -> Duration { max(minimum, min(longest, minimum * 32)) }

    /// When it is told to look, if nothing comes before that.
    public var due: Duration {
        let backoff = failures == 0 ? interval : min(Self.ceiling(minimum), minimum * (1 << min(failures, 5)))
        return max(anchor + max(interval, backoff), putOffUntil ?? .zero)
    }

    /// From when on it may be told to look because the app, or the machine, is awake anyway.
    public var opportunity: Duration { max(anchor + max(minimum, interval * 3 / 4), putOffUntil ?? .zero, retry) }

    /// What could not look is not asked again before its time.
    private var retry: Duration { failures == 0 ? .zero : due }

    /// It may come so much later than `due`, to come together with others.
    public var slack: Duration { interval / 4 }

    /// It is told to look now.
    public mutating func begin(now: ClockPair) {
        lastWall = now.wall
        anchor = now.running
        putOffUntil = nil
        putOffSince = nil
        isUnderWay = true
    }

    /// It has looked.
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

    /// It is over without a word of what was found: nothing is learned of it.
    public mutating func endUnknown() { isUnderWay = false }

    /// The machine has no strength to spare now: it is looked at again after a while, which grows the longer it lasts.
    public mutating func putOff(now: ClockPair) {
        let since = putOffSince ?? now.running
        putOffSince = since
        let waited = now.running - since
        putOffUntil = now.running + min(.seconds(1_800), max(.seconds(60), min(minimum / 4, .seconds(300)), waited / 2))
    }

    /// The configuration has another interval.
    public mutating func setMinimum(_ minimum: Duration) {
        self.minimum = minimum
        interval = max(minimum, min(interval, Self.ceiling(minimum)))
    }
}
