// SPDX-License-Identifier: Apache-2.0

public import CalendarTime

/// When a timer comes: whenever one of the times comes that it names.
public struct TimerRule: Sendable, Hashable {
    /// By the calendar.
    public var calendar: [CalendarExpression] = []
    /// So long after the last time. The first is so long after the supervisor began with it, or after what `afterBoot`
    /// or `afterStart` say.
    public var every: Duration?
    /// Once, so long after the machine was booted; at once if that is past.
    public var afterBoot: Duration?
    /// Once, so long after the supervisor was started.
    public var afterStart: Duration?
    /// It may come so much later, to come together with others.
    public var accuracy: Duration = .zero
    /// It comes later by up to this, each time by another part of it.
    public var randomDelay: Duration = .zero
    /// Whether it comes once for all the times that were missed while nobody was there to see them: by the calendar, and
    /// by `every`.
    public var isPersistent = false
    /// Makes its random delays other ones than those of other timers and machines.
    public var seed: UInt64 = 0

    /// One that never comes.
    public init() {}

    /// The part of the random delay that belongs to a time: always the same one.
    func delay(of time: Int64) -> Duration {
        let whole = randomDelay.wholeMicroseconds
        guard whole > 0 else { return .zero }
        // SplitMix64: neighbours in time must not be neighbours in the result.
        var bits = seed &+ UInt64(bitPattern: time) &* 0x9e37_79b9_7f4a_7c15
        bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
        bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
        bits ^= bits >> 31
        return .microseconds(Int64(bits % UInt64(whole)))
    }
}

/// What has become of a timer so far, and must be known when another supervisor goes on with it.
public struct TimerHistory: Sendable, Hashable {
    /// When it came last, by the wall; nil for never.
    public var lastWall: Int64?
    /// Since when it is known, by the wall: what was before was not missed.
    public var sinceWall: Int64
    /// When the supervisor began with it, since the boot.
    public var since: Duration
    /// What `every` is counted from, since the boot; nil while it waits for the first time.
    public var anchor: Duration?
    /// `afterBoot` has come in this boot.
    public var cameAfterBoot = false
    /// `afterStart` has come since this start.
    public var cameAfterStart = false

    /// A timer that is new.
    public init(now: ClockPair) {
        sinceWall = now.wall
        since = now.running
    }

    /// What is left of it at another start of the supervisor, or in another boot.
    public func restarted(sameBoot: Bool, now: ClockPair) -> TimerHistory {
        var next = TimerHistory(now: now)
        next.lastWall = lastWall
        next.sinceWall = sinceWall
        next.cameAfterBoot = sameBoot && cameAfterBoot
        // What is counted from the boot goes on in step.
        if next.cameAfterBoot { next.anchor = anchor }
        return next
    }
}
