// SPDX-License-Identifier: Apache-2.0

public import CalendarTime

/// One timer: when it comes next, from what it says and what has become of it. A value without I/O and clocks.
public struct TimerState: Sendable {
    /// What it says.
    public private(set) var rule: TimerRule
    /// What has become of it.
    public private(set) var history: TimerHistory
    /// From when on times of the calendar count.
    private var calendarBase: Int64
    /// The next time of the calendar, with its delay; by the wall.
    private var calendarDue: Int64?

    /// - Parameters:
    ///   - startedAt: when the supervisor was started, since the boot.
    ///   - goesOn: an earlier supervisor had it in this boot, and this one goes on where that was.
    public init(_ rule: TimerRule, _ history: TimerHistory?, goesOn: Bool, now: ClockPair) {
        self.rule = rule
        var history = history ?? TimerHistory(now: now)
        if !goesOn, rule.every != nil, rule.afterBoot == nil, rule.afterStart == nil { history.anchor = now.running }
        let known = history.lastWall ?? history.sinceWall
        if !goesOn, rule.isPersistent, rule.every != nil, history.anchor != nil || history.lastWall != nil {
            // A clock that was set back must not put it off for long.
            history.anchor = now.running - .microseconds(max(0, now.wall - known))
        }
        if !goesOn, !rule.isPersistent, let every = rule.every, let anchor = history.anchor, anchor < now.running {
            history.anchor = Self.latest(anchor, every, notAfter: now.running)
        }
        self.history = history
        calendarBase = goesOn || rule.isPersistent ? min(known, now.wall) : now.wall
        findCalendarDue()
    }

    /// The last point in time, so many intervals after another.
    private static func latest(_ begin: Duration, _ every: Duration, notAfter time: Duration) -> Duration {
        let whole = max(1, every.wholeMicroseconds)
        return begin + .microseconds((time - begin).wholeMicroseconds / whole * whole)
    }

    private mutating func findCalendarDue() {
        calendarDue = rule.calendar.compactMap { $0.next(after: calendarBase) }.min().map {
            $0 + rule.delay(of: $0).wholeMicroseconds
        }
    }

    /// When it comes, since the boot; nil for never.
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

    /// It comes now: whatever of it is due has come, and once.
    public mutating func fire(now: ClockPair) {
        if let time = bootDue, time <= now.running { history.cameAfterBoot = true }
        if let time = startDue, time <= now.running { history.cameAfterStart = true }
        if let every = rule.every {
            if let anchor = history.anchor {
                if let due = everyDue, due <= now.running {
                    // In step with the times before, however late it is.
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

    /// Somebody set the clock, by so much: times of the calendar come by the new one.
    ///
    /// Set back, they come again. Set forward by little, what was jumped over comes now; by much, it was not missed but
    /// never was, except for a timer that makes up for what it missed.
    public mutating func clockWasSet(by step: Duration, now: ClockPair) {
        guard !rule.calendar.isEmpty else { return }
        if step > Self.littleStep, !rule.isPersistent { calendarBase = now.wall }
        calendarBase = min(calendarBase, now.wall)
        findCalendarDue()
    }

    private static let littleStep = Duration.seconds(3_600)

    /// The machine is in another time zone: the same expressions mean other times.
    public mutating func zoneChanged(_ calendar: [CalendarExpression], now: ClockPair) {
        rule.calendar = calendar
        calendarBase = now.wall
        findCalendarDue()
    }
}
