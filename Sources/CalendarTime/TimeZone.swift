// SPDX-License-Identifier: Apache-2.0

/// What the clocks of a place show: a table of changes, and a rule for the time after it.
public struct TimeZone: Sendable, Hashable {
    /// What the clocks are set to.
    struct Kind: Sendable, Hashable {
        /// Seconds ahead of UTC.
        var offset: Int
        var isDaylight: Bool
        /// What people call it, as in `CET`.
        var name: String
    }

    /// A stretch of time in which the clocks are not changed, in seconds since 1970; the end does not belong to it.
    struct Period {
        var start: Int64
        var end: Int64
        var kind: Kind

        /// What the clocks show, in seconds since 1970 as if they were those of UTC, when it begins.
        var localStart: Int64 { start == .min ? .min : start + Int64(kind.offset) }
        /// What they show when it is over.
        var localEnd: Int64 { end == .max ? .max : end + Int64(kind.offset) }
    }

    /// What the clocks are set to before the first change.
    private var initial: Kind
    /// When they are set to what, in order.
    private var changes: [Change]
    private var rule: ZoneRule?

    struct Change: Sendable, Hashable {
        var at: Int64
        var to: Kind
    }

    /// No zone says anything of times that are further from 1970, in seconds: 34,000 years.
    private static let horizon: Int64 = 1 << 40

    init(initial: Kind, changes: [Change], rule: ZoneRule?) {
        // Some files begin with the beginning of the universe.
        self.initial = changes.last { $0.at < -Self.horizon }?.to ?? initial
        self.changes = changes.filter { $0.at >= -Self.horizon && $0.at <= Self.horizon }
        self.rule = rule
    }

    /// Coordinated Universal Time.
    public static let utc = TimeZone(initial: Kind(offset: 0, isDaylight: false, name: "UTC"), changes: [], rule: nil)

    /// A zone of the time zone database (``ZoneFile``); nil when the bytes are none.
    package init?(file bytes: [UInt8]) {
        guard let zone = ZoneFile.zone(bytes) else { return nil }
        self = zone
    }

    /// A zone by its rule alone, such as `CET-1CEST,M3.5.0,M10.5.0/3`; nil when the text is none.
    public init?(rule text: String) {
        guard let rule = ZoneRule(text) else { return nil }
        self.init(initial: rule.standard, changes: [], rule: rule)
    }

    /// Seconds that the clocks are ahead of UTC at a time in seconds since 1970.
    public func offset(at moment: Int64) -> Int { period(at: moment).kind.offset }

    /// What people call the time that the clocks show then, such as `CEST`.
    public func abbreviation(at moment: Int64) -> String { period(at: moment).kind.name }

    /// What people last called the time without and with daylight saving; the second is nil where there never was any.
    var abbreviations: (standard: String, daylight: String?) {
        if let rule, let daylight = rule.daylight { return (rule.standard.name, daylight.name) }
        let standard = rule?.standard.name ?? changes.last { !$0.to.isDaylight }?.to.name ?? initial.name
        return (standard, changes.last { $0.to.isDaylight }?.to.name)
    }

    /// The stretch around a moment in which the clocks are not changed.
    func period(at moment: Int64) -> Period {
        let moment = min(max(moment, -Self.horizon), Self.horizon)
        // How many changes came before it.
        var low = 0
        var high = changes.count
        while low < high {
            let middle = (low + high) / 2
            if changes[middle].at <= moment { low = middle + 1 } else { high = middle }
        }
        let start = low == 0 ? Int64.min : changes[low - 1].at
        if low < changes.count {
            return Period(start: start, end: changes[low].at, kind: low == 0 ? initial : changes[low - 1].to)
        }
        guard let rule else { return Period(start: start, end: .max, kind: changes.last?.to ?? initial) }
        var period = rule.period(at: moment)
        period.start = max(period.start, start)
        return period
    }

    // MARK: From local time to time

    /// No clock is further from UTC than this, in seconds.
    private static let furthest: Int64 = 26 * 3_600

    /// When the clocks show something.
    enum Reading {
        /// Then, in microseconds since 1970.
        case at(Int64)
        /// Never: they are set past it. What they show next, or showed last, in microseconds as if they were those of
        /// UTC.
        case skipped(resumes: Int64)
        /// Never again, or never before.
        case never
    }

    /// The first moment after `limit` at which the clocks show `local` (all in microseconds); only summer time or only
    /// the other counts if `isDaylight` says so.
    func reading(of local: Int64, after limit: Int64, isDaylight: Bool?) -> Reading {
        let second = floorDivide(local, by: microsecondsPerSecond)
        var period = period(
            at: max(second - Self.furthest, floorDivide(limit &+ 1, by: microsecondsPerSecond))
        )
        while true {
            if second < period.localStart {
                return .skipped(resumes: period.localStart * microsecondsPerSecond)
            }
            if second < period.localEnd {
                let moment = local - Int64(period.kind.offset) * microsecondsPerSecond
                if moment > limit, isDaylight == nil || isDaylight == period.kind.isDaylight { return .at(moment) }
            }
            guard period.end != .max else { return .never }
            period = self.period(at: period.end)
        }
    }

    /// The first moment at which the clocks show `local`, if it is not after `limit`; where there is none, what they
    /// showed last before that.
    func reading(of local: Int64, notAfter limit: Int64, isDaylight: Bool?) -> Reading {
        let second = floorDivide(local, by: microsecondsPerSecond)
        let limitSecond = floorDivide(limit, by: microsecondsPerSecond)
        var period = period(at: second - Self.furthest)
        // What the clocks showed last of the time that counts.
        var last: Int64?
        while period.start <= limitSecond, second >= period.localStart {
            if isDaylight == nil || isDaylight == period.kind.isDaylight {
                let ahead = Int64(period.kind.offset) * microsecondsPerSecond
                if second < period.localEnd, local - ahead <= limit { return .at(local - ahead) }
                let end = period.end > limitSecond ? limit : period.end * microsecondsPerSecond - 1
                last = max(last ?? .min, end + ahead)
            }
            guard period.end != .max else { break }
            period = self.period(at: period.end)
        }
        if let last, last < local { return .skipped(resumes: last) }
        return earlier(than: second - Self.furthest, isDaylight: isDaylight)
    }

    /// The end of the last stretch before a moment that counts.
    private func earlier(than moment: Int64, isDaylight: Bool?) -> Reading {
        var period = period(at: moment)
        while period.start != .min {
            period = self.period(at: period.start - 1)
            if isDaylight == nil || isDaylight == period.kind.isDaylight {
                return .skipped(resumes: period.localEnd * microsecondsPerSecond - 1)
            }
        }
        return .never
    }

    /// The latest that the clocks have shown at a moment or in the hours before it, in microseconds: after they were
    /// set back that is more than they show.
    func latestLocal(at moment: Int64) -> Int64 {
        let second = floorDivide(moment, by: microsecondsPerSecond)
        let now = period(at: second)
        let local = moment + Int64(now.kind.offset) * microsecondsPerSecond
        guard now.start != .min, now.start > second - Self.furthest else { return local }
        return max(local, period(at: now.start - 1).localEnd * microsecondsPerSecond - 1)
    }
}
