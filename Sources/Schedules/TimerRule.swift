// SPDX-License-Identifier: Apache-2.0

public import CalendarTime

/// When a timer fires: at all times that the properties name.
public struct TimerRule: Sendable, Hashable {
    /// The timer fires at these times of the calendar.
    public var calendar: [CalendarExpression] = []
    /// The timer fires at this interval. The first interval begins at the time of `afterBoot` or `afterStart`; if both
    /// are nil, it begins when torpord loads the timer.
    public var every: Duration?
    /// The timer fires once, this long after boot, or at once if that time has passed.
    public var afterBoot: Duration?
    /// The timer fires once, this long after torpord started.
    public var afterStart: Duration?
    /// How much later the timer may fire, so that it can fire together with other timers and fetches.
    public var accuracy: Duration = .zero
    /// The maximum random delay, which is added to each time at which the timer fires.
    public var randomDelay: Duration = .zero
    /// Whether the timer fires once for all times of `calendar` and `every` that it missed while torpord did not run.
    public var isPersistent = false
    /// Makes the timer's random delays differ from those of other timers and other machines.
    public var seed: UInt64 = 0

    /// Creates a rule without times: its timer never fires.
    public init() {}

    /// The random delay that is added to `time` (microseconds since 1970); always the same for the same time.
    func delay(of time: Int64) -> Duration {
        let whole = randomDelay.wholeMicroseconds
        guard whole > 0 else { return .zero }
        // SplitMix64 is used because similar times must not give similar delays.
        var bits = seed &+ UInt64(bitPattern: time) &* 0x9e37_79b9_7f4a_7c15
        bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
        bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
        bits ^= bits >> 31
        return .microseconds(Int64(bits % UInt64(whole)))
    }
}

/// The stored state of a timer, from which a later torpord continues the timer.
public struct TimerHistory: Sendable, Hashable {
    /// When the timer last fired, in microseconds since 1970; nil if never.
    public var lastWall: Int64?
    /// When a torpord first had the timer, in microseconds since 1970. Earlier times do not count as missed.
    public var sinceWall: Int64
    /// When torpord loaded the timer, as time since boot.
    public var since: Duration
    /// The start of the current interval of `every`, as time since boot; nil before the first interval.
    public var anchor: Duration?
    /// Whether the timer has fired for `afterBoot` in this boot.
    public var cameAfterBoot = false
    /// Whether the timer has fired for `afterStart` since torpord started.
    public var cameAfterStart = false
    /// Whether the work that the timer has begun is not known to have come to an end.
    public var isUnfinished = false

    /// Creates the history of a new timer.
    public init(now: ClockPair) {
        sinceWall = now.wall
        since = now.running
    }

    /// The history after a restart of torpord, or after a reboot.
    public func restarted(sameBoot: Bool, now: ClockPair) -> TimerHistory {
        var next = TimerHistory(now: now)
        next.lastWall = lastWall
        next.sinceWall = sinceWall
        next.isUnfinished = isUnfinished
        next.cameAfterBoot = sameBoot && cameAfterBoot
        // Intervals that began with `after_boot` continue when torpord restarts, so that they keep their phase.
        if next.cameAfterBoot { next.anchor = anchor }
        return next
    }
}
