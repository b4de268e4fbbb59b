// SPDX-License-Identifier: Apache-2.0

/// What is wrong with a calendar expression.
public struct CalendarError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A sentence that says what to write instead.
    public var description: String
}

/// Recurring times by the calendar, such as `Mon..Fri 08:00` or `*-*~1 22:00 Europe/Berlin`, in the syntax of
/// systemd.time(7), "Calendar events".
///
/// Local time works as in systemd 252: a time that is skipped when clocks are set forward does not occur on that day; a
/// time that occurs twice when clocks are set back counts only the first time.
public struct CalendarExpression: Sendable, Hashable {
    /// The weekdays as bits, from bit 0 for Monday; all bits are set if the expression names no weekday.
    var weekdays: UInt8
    var years: CalendarField
    var months: CalendarField
    var days: CalendarField
    var isFromEndOfMonth: Bool
    var hours: CalendarField
    var minutes: CalendarField
    /// The seconds of the time of day, in microseconds.
    var seconds: CalendarField
    /// The time zone as written.
    var suffix: Suffix
    /// The time zone that the times are in.
    let zone: TimeZone

    /// The expression's fields as bit masks. They are computed once, because every search uses them.
    let monthMask: UInt64
    let dayMask: UInt64
    let hourMask: UInt64
    let minuteMask: UInt64

    /// The time zone that an expression names.
    enum Suffix: Hashable, Sendable {
        /// The expression names no zone: the machine's zone applies.
        case none
        case utc
        case named(String)
        /// The machine's zone, but only in the part of the year in which this abbreviation applies, such as `CET`.
        case local(isDaylight: Bool, name: String)
    }

    /// Parses an expression.
    ///
    /// - Parameter zones: the known zones, and the local zone, which applies if the expression names none.
    /// - Throws: ``CalendarError`` when the text is not a valid expression.
    public init(_ text: String, zones: some TimeZones = SystemTimeZones()) throws(CalendarError) {
        let parsed = try CalendarParser.parse(text, zones: zones)
        weekdays = parsed.weekdays == 0 ? Self.everyWeekday : parsed.weekdays
        years = parsed.years
        months = parsed.months
        days = parsed.days
        isFromEndOfMonth = parsed.isFromEndOfMonth
        hours = parsed.hours
        minutes = parsed.minutes
        seconds = parsed.seconds
        suffix = parsed.suffix
        zone = parsed.zone
        // Months begin at bit 1.
        monthMask = months.mask(limit: 12) & ~1
        dayMask = days.mask(limit: 31)
        hourMask = hours.mask(limit: 23)
        minuteMask = minutes.mask(limit: 59)
    }

    static let everyWeekday: UInt8 = 0b111_1111

    /// Whether only daylight saving time counts (true) or only standard time (false); nil for both.
    var isDaylight: Bool? {
        guard case .local(let isDaylight, _) = suffix else { return nil }
        return isDaylight
    }
}

extension CalendarExpression: CustomStringConvertible {
    /// The normal form, as `systemd-analyze calendar` prints it: `Mon..Fri *-*-* 08:00:00`.
    public var description: String {
        var text = weekdays == Self.everyWeekday ? "" : weekdayText + " "
        text += years.text(at: .year) + "-" + months.text(at: .month)
        text += isFromEndOfMonth ? "~" + days.text(at: .dayFromEnd) : "-" + days.text(at: .day)
        text += " " + hours.text(at: .hour) + ":" + minutes.text(at: .minute) + ":" + seconds.text(at: .second)
        switch suffix {
        case .none: return text
        case .utc: return text + " UTC"
        case .named(let name), .local(_, let name): return text + " " + name
        }
    }

    /// Three or more days in a row are written as a range.
    private var weekdayText: String {
        var parts: [String] = []
        var day = 0
        while day < 7 {
            guard weekdays & 1 << day != 0 else {
                day += 1
                continue
            }
            let first = day
            while day < 7, weekdays & 1 << day != 0 { day += 1 }
            switch day - first {
            case 1: parts.append(Self.weekdayNames[first])
            case 2: parts += [Self.weekdayNames[first], Self.weekdayNames[day - 1]]
            default: parts.append(Self.weekdayNames[first] + ".." + Self.weekdayNames[day - 1])
            }
        }
        return parts.joined(separator: ",")
    }

    static let weekdayNames = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
}
