// SPDX-License-Identifier: Apache-2.0

public import CalendarTime

/// When a timer fires: at each of the given times.
public struct TimerRule: Sendable, Hashable {
    /// At times of the calendar.
    public var calendar: [CalendarExpression] = []
    /// At this interval. The first time is counted from when the supervisor loaded the timer, or from `afterBoot` or
    /// `afterStart`.
    public var every: Duration?
    /// Once, this long after boot; at once if that has passed.
    public var afterBoot: Duration?
    /// Once, this long after the supervisor started.
    public var afterStart: Duration?
    /// How much later it may fire, so as to fire together with others.
    public var accuracy: Duration = .zero
    /// Each time is delayed at random by up to this.
    public var randomDelay: Duration = .zero
    /// Whether it fires once for all times missed while the supervisor did not run, for `calendar` and `every`.
    public var isPersistent = false
    /// Makes its random delays differ from those of other timers and machines.
    public var seed: UInt64 = 0

    /// A timer that never fires.
    public init() {}

    /// The random delay of a time; always the same for the same time.
    func delay(of time: Int64) -> Duration {
        let whole = randomDelay.wholeMicroseconds
        guard whole > 0 else { return .zero }
        // SplitMix64: similar times must not give similar delays.
        var bits = seed &+ UInt64(bitPattern: time) &* 0x9e37_79b9_7f4a_7c15
        bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
        bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
        bits ^= bits >> 31
        return .microseconds(Int64(bits % UInt64(whole)))
    }
}

/// The state of a timer that another supervisor needs to continue it.
public struct TimerHistory: Sendable, Hashable {
    /// When it last fired, in microseconds since 1970; nil if never.
    public var lastWall: Int64?
    /// When it was first known, in microseconds since 1970: earlier times do not count as missed.
    public var sinceWall: Int64
    /// When the supervisor loaded it, since boot.
    public var since: Duration
    /// What `every` counts from, since boot; nil before the first time.
    public var anchor: Duration?
    /// Whether `afterBoot` has fired since boot.
    public var cameAfterBoot = false
    /// Whether `afterStart` has fired since the supervisor started.
    public var cameAfterStart = false

    /// A new timer.
    public init(now: ClockPair) {
        sinceWall = now.wall
        since = now.running
    }

    /// The state after a restart of the supervisor, or a reboot.
    public func restarted(sameBoot: Bool, now: ClockPair) -> TimerHistory {
        var next = TimerHistory(now: now)
        next.lastWall = lastWall
        next.sinceWall = sinceWall
        next.cameAfterBoot = sameBoot && cameAfterBoot
        // Intervals counted from boot keep their phase.
        if next.cameAfterBoot { next.anchor = anchor }
        return next
    }
}
