// SPDX-License-Identifier: Apache-2.0

/// The offsets of a time zone: a table of changes, and a rule for the time after the last change.
public struct TimeZone: Sendable, Hashable {
    /// A local time type: its offset and name.
    struct Kind: Sendable, Hashable {
        /// The offset of the local time: seconds ahead of UTC.
        var offset: Int
        var isDaylight: Bool
        /// The abbreviation of the local time, such as `CET`.
        var name: String
    }

    /// A period of constant offset, in seconds since 1970, without its end.
    struct Period {
        var start: Int64
        var end: Int64
        var kind: Kind

        /// Local time when the period begins, in seconds since 1970 as if it were UTC.
        var localStart: Int64 { start == .min ? .min : start + Int64(kind.offset) }
        /// Local time when the period ends.
        var localEnd: Int64 { end == .max ? .max : end + Int64(kind.offset) }
    }

    /// The local time type before the first change.
    private var initial: Kind
    /// The changes, in order.
    private var changes: [Change]
    private var rule: ZoneRule?

    struct Change: Sendable, Hashable {
        var at: Int64
        var to: Kind
    }

    /// Changes further from 1970 than this many seconds (34,000 years) are ignored.
    private static let horizon: Int64 = 1 << 40

    init(initial: Kind, changes: [Change], rule: ZoneRule?) {
        // Some files begin with a change at the time of the Big Bang: drop changes that are that old.
        self.initial = changes.last { $0.at < -Self.horizon }?.to ?? initial
        self.changes = changes.filter { $0.at >= -Self.horizon && $0.at <= Self.horizon }
        self.rule = rule
    }

    /// Coordinated Universal Time.
    public static let utc = TimeZone(initial: Kind(offset: 0, isDaylight: false, name: "UTC"), changes: [], rule: nil)

    /// A zone from a file of the time zone database (``ZoneFile``); nil if the bytes are not such a file.
    package init?(file bytes: [UInt8]) {
        guard let zone = ZoneFile.zone(bytes) else { return nil }
        self = zone
    }

    /// A zone from a rule alone, such as `CET-1CEST,M3.5.0,M10.5.0/3`; nil if the text is not a rule.
    public init?(rule text: String) {
        guard let rule = ZoneRule(text) else { return nil }
        self.init(initial: rule.standard, changes: [], rule: rule)
    }

    /// Seconds that local time is ahead of UTC, at a time in seconds since 1970.
    public func offset(at moment: Int64) -> Int { period(at: moment).kind.offset }

    /// The abbreviation of local time at `moment`, such as `CEST`.
    public func abbreviation(at moment: Int64) -> String { period(at: moment).kind.name }

    /// The latest abbreviations of standard and daylight saving time; `daylight` is nil if the zone never had any.
    var abbreviations: (standard: String, daylight: String?) {
        if let rule, let daylight = rule.daylight { return (rule.standard.name, daylight.name) }
        let standard = rule?.standard.name ?? changes.last { !$0.to.isDaylight }?.to.name ?? initial.name
        return (standard, changes.last { $0.to.isDaylight }?.to.name)
    }

    /// The period of constant offset that contains a moment, in seconds since 1970.
    func period(at moment: Int64) -> Period {
        let moment = min(max(moment, -Self.horizon), Self.horizon)
        // Binary search for the number of changes up to `moment`.
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

    /// The largest difference between local time and UTC, in seconds.
    private static let furthest: Int64 = 26 * 3_600

    /// When clocks show a given local time.
    enum Reading {
        /// At this time, in microseconds since 1970.
        case at(Int64)
        /// Never: clocks skip it. `resumes` is the next local time that they do show (or the last, if searching
        /// backwards), in microseconds as if it were UTC.
        case skipped(resumes: Int64)
        /// Never at any later (or earlier) time.
        case never
    }

    /// The first moment after `limit` at which clocks show `local` (all in microseconds). `isDaylight` restricts the
    /// search to daylight saving time (true) or standard time (false).
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

    /// The first moment at which clocks show `local`, if it is not after `limit`; otherwise the last local time that
    /// they showed before `local`.
    func reading(of local: Int64, notAfter limit: Int64, isDaylight: Bool?) -> Reading {
        let second = floorDivide(local, by: microsecondsPerSecond)
        let limitSecond = floorDivide(limit, by: microsecondsPerSecond)
        var period = period(at: second - Self.furthest)
        // The last local time shown so far in the periods that `isDaylight` allows.
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

    /// The last local time in a period before that of `moment`; ``Reading/never`` if there is none. Only periods that
    /// `isDaylight` allows count.
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

    /// The latest local time that clocks showed at a moment or in the hours before, in microseconds. After clocks were
    /// set back, this is later than the time that they show now.
    func latestLocal(at moment: Int64) -> Int64 {
        let second = floorDivide(moment, by: microsecondsPerSecond)
        let now = period(at: second)
        let local = moment + Int64(now.kind.offset) * microsecondsPerSecond
        guard now.start != .min, now.start > second - Self.furthest else { return local }
        return max(local, period(at: now.start - 1).localEnd * microsecondsPerSecond - 1)
    }
}
