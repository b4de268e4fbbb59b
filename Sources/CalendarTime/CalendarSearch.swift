// SPDX-License-Identifier: Apache-2.0

/// When an expression's times occur.
///
/// Fields are searched as bit masks, and only within the years of the expression. A search takes at most a few thousand
/// steps for any expression, and usually only a few.
extension CalendarExpression {
    /// The first time after a moment, both in microseconds since 1970; nil if there is none before the year 2200.
    public func next(after moment: Int64) -> Int64? {
        // Expressions match no times before 1970, so begin there at the earliest.
        let moment = max(moment, -1)
        guard moment < Self.end else { return nil }
        let second = floorDivide(moment + 1, by: microsecondsPerSecond)
        var local = moment + 1 + Int64(zone.offset(at: second)) * microsecondsPerSecond
        while let found = nextLocal(from: local) {
            switch zone.reading(of: found, after: moment, isDaylight: isDaylight) {
            case .at(let time): return time
            case .skipped(let resumes): local = resumes
            case .never: return nil
            }
        }
        return nil
    }

    /// The last time that is not after a moment, both in microseconds since 1970; nil if there is none since 1970.
    public func latest(notAfter moment: Int64) -> Int64? {
        guard moment >= 0 else { return nil }
        let moment = min(moment, Self.end)
        var local = zone.latestLocal(at: moment)
        while let found = previousLocal(from: local) {
            switch zone.reading(of: found, notAfter: moment, isDaylight: isDaylight) {
            case .at(let time): return time >= 0 ? time : nil
            case .skipped(let resumes): local = resumes
            case .never: return nil
            }
        }
        return nil
    }

    /// A few days into the year 2200.
    private static let end: Int64 = 84_010 * microsecondsPerDay

    // MARK: Dates and times as the clocks show them, in microseconds as if they were those of UTC

    private func nextLocal(from local: Int64) -> Int64? {
        let today = Int(floorDivide(local, by: microsecondsPerDay))
        guard let day = nextDay(from: today) else { return nil }
        if day == today, let time = nextTime(from: Int(local - Int64(day) * microsecondsPerDay)) {
            return Int64(day) * microsecondsPerDay + Int64(time)
        }
        guard let day = day > today ? day : nextDay(from: today + 1), let time = nextTime(from: 0) else { return nil }
        return Int64(day) * microsecondsPerDay + Int64(time)
    }

    private func previousLocal(from local: Int64) -> Int64? {
        let today = Int(floorDivide(local, by: microsecondsPerDay))
        let lastTime = Int(microsecondsPerDay) - 1
        guard let day = previousDay(from: today) else { return nil }
        if day == today, let time = previousTime(from: Int(local - Int64(day) * microsecondsPerDay)) {
            return Int64(day) * microsecondsPerDay + Int64(time)
        }
        guard let day = day < today ? day : previousDay(from: today - 1), let time = previousTime(from: lastTime) else {
            return nil
        }
        return Int64(day) * microsecondsPerDay + Int64(time)
    }

    /// The first day that matches, from day `number` on; both in days since 1970.
    private func nextDay(from number: Int) -> Int? {
        let range = CalendarField.Place.year.range
        var date = CivilDate(dayNumber: number)
        if date.year < range.lowerBound { date = CivilDate(year: range.lowerBound, month: 1, day: 1) }
        while let year = years.next(from: date.year, limit: range.upperBound) {
            if year != date.year { date = CivilDate(year: year, month: 1, day: 1) }
            while let month = Self.first(in: monthMask, from: date.month) {
                if month != date.month { date = CivilDate(year: year, month: month, day: 1) }
                if let day = Self.first(in: days(inMonth: month, of: year), from: date.day) {
                    return CivilDate(year: year, month: month, day: day).dayNumber
                }
                date = CivilDate(year: year, month: month + 1, day: 1)
            }
            date = CivilDate(year: year + 1, month: 1, day: 1)
        }
        return nil
    }

    private func previousDay(from number: Int) -> Int? {
        let range = CalendarField.Place.year.range
        var date = CivilDate(dayNumber: number)
        if date.year > range.upperBound { date = CivilDate(year: range.upperBound, month: 12, day: 31) }
        while let year = years.previous(from: date.year, limit: range.upperBound), year >= range.lowerBound {
            if year != date.year { date = CivilDate(year: year, month: 12, day: 31) }
            while let month = Self.last(in: monthMask, from: date.month) {
                if month != date.month { date = CivilDate(year: year, month: month, day: 31) }
                if let day = Self.last(in: days(inMonth: month, of: year), from: date.day) {
                    return CivilDate(year: year, month: month, day: day).dayNumber
                }
                date = CivilDate(year: year, month: month - 1, day: 31)
            }
            date = CivilDate(year: year - 1, month: 12, day: 31)
        }
        return nil
    }

    /// The matching days of a month, as bits from 1.
    private func days(inMonth month: Int, of year: Int) -> UInt64 {
        let count = CivilDate.days(inMonth: month, of: year)
        var mask = isFromEndOfMonth ? daysFromEnd(count) : dayMask
        mask &= (2 << UInt64(count)) - 2
        guard weekdays != Self.everyWeekday else { return mask }
        let first = CivilDate.weekday(dayNumber: CivilDate(year: year, month: month, day: 1).dayNumber)
        // The weekdays of the expression as bits, repeated for six weeks. Below they are shifted, so that bit 1 is the
        // first day of the month.
        var weeks: UInt64 = 0
        for week in 0..<6 { weeks |= UInt64(weekdays) << UInt64(7 * week) }
        return mask & ((weeks >> UInt64(first)) << 1)
    }

    /// The matching days of a month with `count` days, counted from its end; repetitions run towards the end.
    private func daysFromEnd(_ count: Int) -> UInt64 {
        let turned = days.components.map { component in
            CalendarComponent(
                start: count + 1 - (component.stop ?? component.start),
                stop: component.stop == nil ? nil : count + 1 - component.start,
                step: component.step
            )
        }
        return CalendarField(components: turned).mask(limit: count)
    }

    /// The first time of day that matches, from `time` on; both in microseconds since midnight.
    private func nextTime(from time: Int) -> Int? {
        let limit = CalendarField.Place.second.range.upperBound
        let (hour, minute, second) = Self.parts(time)
        guard let firstSecond = seconds.next(from: 0, limit: limit) else { return nil }
        guard let foundHour = Self.first(in: hourMask, from: hour) else { return nil }
        if foundHour == hour, let foundMinute = Self.first(in: minuteMask, from: minute) {
            if foundMinute > minute { return Self.time(hour, foundMinute, firstSecond) }
            if let found = seconds.next(from: second, limit: limit) { return Self.time(hour, minute, found) }
            if let next = Self.first(in: minuteMask, from: minute + 1) { return Self.time(hour, next, firstSecond) }
        }
        guard let next = foundHour > hour ? foundHour : Self.first(in: hourMask, from: hour + 1),
            let firstMinute = Self.first(in: minuteMask, from: 0)
        else { return nil }
        return Self.time(next, firstMinute, firstSecond)
    }

    private func previousTime(from time: Int) -> Int? {
        let limit = CalendarField.Place.second.range.upperBound
        let (hour, minute, second) = Self.parts(time)
        guard let lastSecond = seconds.previous(from: limit, limit: limit) else { return nil }
        guard let foundHour = Self.last(in: hourMask, from: hour) else { return nil }
        if foundHour == hour, let foundMinute = Self.last(in: minuteMask, from: minute) {
            if foundMinute < minute { return Self.time(hour, foundMinute, lastSecond) }
            if let found = seconds.previous(from: second, limit: limit) { return Self.time(hour, minute, found) }
            if let next = Self.last(in: minuteMask, from: minute - 1) { return Self.time(hour, next, lastSecond) }
        }
        guard let next = foundHour < hour ? foundHour : Self.last(in: hourMask, from: hour - 1),
            let lastMinute = Self.last(in: minuteMask, from: 59)
        else { return nil }
        return Self.time(next, lastMinute, lastSecond)
    }

    private static func parts(_ time: Int) -> (hour: Int, minute: Int, microseconds: Int) {
        let minute = 60 * Int(microsecondsPerSecond)
        return (time / (60 * minute), time / minute % 60, time % minute)
    }

    private static func time(_ hour: Int, _ minute: Int, _ microseconds: Int) -> Int {
        (hour * 60 + minute) * 60 * Int(microsecondsPerSecond) + microseconds
    }

    // MARK: Bits

    private static func first(in mask: UInt64, from bit: Int) -> Int? {
        let left = bit > 63 ? 0 : (mask >> UInt64(bit)) << UInt64(bit)
        return left == 0 ? nil : left.trailingZeroBitCount
    }

    private static func last(in mask: UInt64, from bit: Int) -> Int? {
        let left = bit < 0 ? 0 : mask & (UInt64.max >> UInt64(63 - bit))
        return left == 0 ? nil : 63 - left.leadingZeroBitCount
    }
}
