// SPDX-License-Identifier: Apache-2.0

public import CalendarTime

/// One timer: computes from its rule and history when it fires next. A value without I/O and clocks.
public struct TimerState: Sendable {
    /// The rule that says when the timer fires.
    public private(set) var rule: TimerRule
    /// When the timer has fired so far, and since when it exists.
    public private(set) var history: TimerHistory
    /// The timer fires only for calendar times after this time, which is in microseconds since 1970.
    private var calendarBase: Int64
    /// The next calendar time with its random delay, in microseconds since 1970; nil if there is none.
    private var calendarDue: Int64?
    /// Whether the timer fires next, or has fired, to make up for work that was cut off.
    private var makesUp = false

    /// - Parameter goesOn: whether an earlier torpord already had the timer in this boot, so that the timer continues
    ///   unchanged.
    public init(_ rule: TimerRule, _ history: TimerHistory?, goesOn: Bool, now: ClockPair) {
        self.rule = rule
        var history = history ?? TimerHistory(now: now)
        if !goesOn, rule.every != nil, rule.afterBoot == nil, rule.afterStart == nil { history.anchor = now.running }
        let known = history.lastWall ?? history.sinceWall
        if !goesOn, rule.isPersistent, rule.every != nil, history.anchor != nil || history.lastWall != nil {
            // The current interval began when the timer last fired. If the clock was set back since, the interval
            // begins now: otherwise the timer would have to wait until the clock has caught up.
            history.anchor = now.running - .microseconds(max(0, now.wall - known))
        }
        if !goesOn, !rule.isPersistent, let every = rule.every, let anchor = history.anchor, anchor < now.running {
            history.anchor = Self.latest(anchor, every, notAfter: now.running)
        }
        self.history = history
        calendarBase = goesOn || rule.isPersistent ? min(known, now.wall) : now.wall
        findCalendarDue()
        if !goesOn, rule.isPersistent, history.isUnfinished {
            calendarDue = now.wall
            makesUp = true
            self.history.isUnfinished = false
        }
    }

    /// Records that the timer has begun some work, whose end ``workEnded()`` tells. If that never comes, a persistent
    /// timer fires once more after the next start of torpord or the machine. Work that makes up for work is not made up
    /// for: it may be what restarts the machine.
    public mutating func workBegins() {
        history.isUnfinished = rule.isPersistent && !makesUp
        makesUp = false
    }

    /// Records that the work has come to an end.
    public mutating func workEnded() { history.isUnfinished = false }

    /// The last time that is `begin` plus a multiple of `every`, and not after `time`.
    private static func latest(_ begin: Duration, _ every: Duration, notAfter time: Duration) -> Duration {
        let whole = max(1, every.wholeMicroseconds)
        return begin + .microseconds((time - begin).wholeMicroseconds / whole * whole)
    }

    private mutating func findCalendarDue() {
        calendarDue = rule.calendar.compactMap { $0.next(after: calendarBase) }.min().map {
            $0 + rule.delay(of: $0).wholeMicroseconds
        }
    }

    /// When the timer fires next, as time since boot; nil for never.
    public func due(now: ClockPair) -> Duration? {
        var due: Duration?
        func consider(_ time: Duration?) {
            guard let time else { return }
            due = due.map { min($0, time) } ?? time
        }
        consider(calendarDue.map { now.running(atWall: $0) })
        consider(everyDue)
        consider(bootDue)
        consider(startDue)
        return due
    }

    private var everyDue: Duration? {
        guard let every = rule.every, let anchor = history.anchor else { return nil }
        return anchor + every + rule.delay(of: anchor.wholeMicroseconds)
    }

    private var bootDue: Duration? {
        guard let time = rule.afterBoot, !history.cameAfterBoot else { return nil }
        return time + rule.delay(of: 1)
    }

    private var startDue: Duration? {
        guard let time = rule.afterStart, !history.cameAfterStart else { return nil }
        return history.since + time + rule.delay(of: history.since.wholeMicroseconds)
    }

    /// Fires the timer now, once for all its times that are due.
    public mutating func fire(now: ClockPair) {
        if let time = bootDue, time <= now.running { history.cameAfterBoot = true }
        if let time = startDue, time <= now.running { history.cameAfterStart = true }
        if let every = rule.every {
            if let anchor = history.anchor {
                if let due = everyDue, due <= now.running {
                    // Keep the phase of earlier intervals, however late the timer fires.
                    history.anchor = max(Self.latest(anchor, every, notAfter: now.running), anchor + every)
                }
            } else {
                history.anchor = now.running
            }
        }
        history.lastWall = now.wall
        calendarBase = now.wall
        findCalendarDue()
    }

    /// Applies a step of the wall clock: calendar times follow the new time.
    ///
    /// If the clock was set back, times repeat. If it was set forward by at most an hour, the timer fires now for times
    /// that were skipped. If it was set forward by more, skipped times are dropped, unless the timer is persistent.
    public mutating func clockWasSet(by step: Duration, now: ClockPair) {
        guard !rule.calendar.isEmpty else { return }
        if step > Self.littleStep, !rule.isPersistent { calendarBase = now.wall }
        calendarBase = min(calendarBase, now.wall)
        findCalendarDue()
    }

    private static let littleStep = Duration.seconds(3_600)

    /// Applies a new time zone of the machine, in which the calendar expressions mean other times.
    public mutating func zoneChanged(_ calendar: [CalendarExpression], now: ClockPair) {
        rule.calendar = calendar
        calendarBase = now.wall
        findCalendarDue()
    }
}
