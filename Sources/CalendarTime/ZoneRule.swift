// SPDX-License-Identifier: Apache-2.0

/// A zone's rule for times after its table, as in the variable TZ and at the end of a zone file, such as
/// `CET-1CEST,M3.5.0,M10.5.0/3` (POSIX.1, with the larger hours of RFC 9636, section 3.3.1).
struct ZoneRule: Sendable, Hashable {
    var standard: TimeZone.Kind
    /// The kind of time during daylight saving time; nil if the zone has none.
    var daylight: TimeZone.Kind?
    /// When daylight saving time begins and ends, each in the local time before the change.
    private var begin = Day(on: .week(3, 2, 0), time: 7_200)
    private var end = Day(on: .week(11, 1, 0), time: 7_200)

    /// A day of each year, and seconds from its midnight, which may reach into another day.
    private struct Day: Hashable {
        var on: Date
        var time: Int
    }

    private enum Date: Hashable {
        /// The day of the year, from 1 to 365; February 29 is not counted.
        case julian(Int)
        /// The day of the year, from 0 to 365; February 29 is counted.
        case ordinal(Int)
        /// Month, week (5 is the last) and weekday from 0 for Sunday.
        case week(Int, Int, Int)
    }

    /// Returns nil if the text is not a rule.
    init?(_ text: String) {
        var scanner = Scanner(text)
        guard let name = Self.name(&scanner), let offset = Self.seconds(&scanner, hours: 24) else { return nil }
        standard = TimeZone.Kind(offset: -offset, isDaylight: false, name: name)
        guard !scanner.isAtEnd else { return }
        guard let name = Self.name(&scanner) else { return nil }
        var summer = -offset + 3_600
        if let next = scanner.next, next != UInt8(ascii: ",") {
            guard let offset = Self.seconds(&scanner, hours: 24) else { return nil }
            summer = -offset
        }
        daylight = TimeZone.Kind(offset: summer, isDaylight: true, name: name)
        // If the rule has no dates, those of the United States apply.
        guard !scanner.isAtEnd else { return }
        guard scanner.take(","), let begin = Self.day(&scanner) else { return nil }
        guard scanner.take(","), let end = Self.day(&scanner), scanner.isAtEnd else { return nil }
        self.begin = begin
        self.end = end
    }

    /// The period of constant offset that contains a moment, in seconds since 1970.
    func period(at moment: Int64) -> TimeZone.Period {
        guard let daylight else { return TimeZone.Period(start: .min, end: .max, kind: standard) }
        let year = CivilDate(dayNumber: Int(floorDivide(moment + Int64(standard.offset), by: 86_400))).year
        var changes: [(at: Int64, to: TimeZone.Kind)] = []
        for year in (year - 1)...(year + 1) {
            let begins = (at: Self.local(begin, year) - Int64(standard.offset), to: daylight)
            let ends = (at: Self.local(end, year) - Int64(daylight.offset), to: standard)
            changes += begins.at <= ends.at ? [begins, ends] : [ends, begins]
        }
        // With daylight saving time all year, end and begin coincide: the last change at a moment applies.
        let index = changes.lastIndex { $0.at <= moment } ?? 0
        let next = index + 1 < changes.count ? changes[index + 1].at : .max
        return TimeZone.Period(start: changes[index].at, end: next, kind: changes[index].to)
    }

    /// The moment in seconds since 1970, as if local time were UTC.
    private static func local(_ day: Day, _ year: Int) -> Int64 {
        let first = CivilDate(year: year, month: 1, day: 1).dayNumber
        let number: Int
        switch day.on {
        case .julian(let n): number = first + n - 1 + (CivilDate.isLeap(year) && n >= 60 ? 1 : 0)
        case .ordinal(let n): number = first + n
        case .week(let month, let week, let weekday):
            let start = CivilDate(year: year, month: month, day: 1).dayNumber
            // Sunday is 0 in rules and 6 in `weekday`.
            var found = start + remainder((weekday + 6) % 7 - CivilDate.weekday(dayNumber: start), by: 7)
            found += (week - 1) * 7
            if found >= start + CivilDate.days(inMonth: month, of: year) { found -= 7 }
            number = found
        }
        return Int64(number * 86_400 + day.time)
    }

    // MARK: Reading

    private static func name(_ scanner: inout Scanner) -> String? {
        if scanner.take("<") {
            let name = scanner.take { $0 != UInt8(ascii: ">") }
            return scanner.take(">") && name.count >= 3 ? name : nil
        }
        let name = scanner.take { isLetter($0) }
        return name.count >= 3 ? name : nil
    }

    /// Reads `[+-]hh[:mm[:ss]]`.
    private static func seconds(_ scanner: inout Scanner, hours limit: Int) -> Int? {
        let isNegative = scanner.take("-")
        if !isNegative { _ = scanner.take("+") }
        guard let hours = scanner.number(limit: limit) else { return nil }
        var seconds = hours * 3_600
        for unit in [60, 1] {
            guard scanner.take(":") else { break }
            guard let number = scanner.number(limit: 59) else { return nil }
            seconds += number * unit
        }
        return isNegative ? -seconds : seconds
    }

    private static func day(_ scanner: inout Scanner) -> Day? {
        let date: Date
        if scanner.take("J") {
            guard let number = scanner.number(limit: 365), number >= 1 else { return nil }
            date = .julian(number)
        } else if scanner.take("M") {
            guard let month = scanner.number(limit: 12), month >= 1, scanner.take("."),
                let week = scanner.number(limit: 5), week >= 1, scanner.take("."),
                let weekday = scanner.number(limit: 6)
            else { return nil }
            date = .week(month, week, weekday)
        } else {
            guard let number = scanner.number(limit: 365) else { return nil }
            date = .ordinal(number)
        }
        guard scanner.take("/") else { return Day(on: date, time: 7_200) }
        guard let time = seconds(&scanner, hours: 167) else { return nil }
        return Day(on: date, time: time)
    }
}
