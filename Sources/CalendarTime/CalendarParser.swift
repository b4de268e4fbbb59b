// SPDX-License-Identifier: Apache-2.0

import WireText

/// Reads calendar expressions.
struct CalendarParser {
    /// The weekdays as bits, from bit 0 for Monday; no bit is set if the expression names no weekday.
    var weekdays: UInt8 = 0
    var years = CalendarField.any
    var months = CalendarField.any
    var days = CalendarField.any
    var isFromEndOfMonth = false
    var hours = CalendarField.only(0)
    var minutes = CalendarField.only(0)
    var seconds = CalendarField.only(0)
    var suffix = CalendarExpression.Suffix.none
    var zone: TimeZone

    private var scanner: Scanner

    /// The most values in a list, as in systemd.
    private static let listLimit = 241

    static func parse(_ text: String, zones: some TimeZones) throws(CalendarError) -> CalendarParser {
        let (rest, suffix, zone) = splitZone(text, zones)
        var parser = CalendarParser(zone: zone, scanner: Scanner(rest))
        parser.suffix = suffix
        do throws(CalendarError) {
            try parser.read()
        } catch {
            throw cron(text) ?? unknownZone(text, zones) ?? error
        }
        return parser
    }

    private init(zone: TimeZone, scanner: Scanner) {
        self.zone = zone
        self.scanner = scanner
    }

    // MARK: Zones

    private static func splitZone(
        _ text: String,
        _ zones: some TimeZones
    ) -> (rest: String, suffix: CalendarExpression.Suffix, zone: TimeZone) {
        if let rest = without(" UTC", at: text) { return (rest, .utc, .utc) }
        let local = zones.local
        let names = local.abbreviations
        if let rest = without(" " + names.standard, at: text) {
            return (rest, .local(isDaylight: false, name: names.standard), local)
        }
        if let name = names.daylight, let rest = without(" " + name, at: text) {
            return (rest, .local(isDaylight: true, name: name), local)
        }
        if let space = text.lastIndex(of: " ") {
            let name = String(text[text.index(after: space)...])
            if let zone = zones.zone(named: name) { return (String(text[..<space]), .named(name), zone) }
        }
        return (text, .none, local)
    }

    /// The text without `end` at its end, ignoring case; nil if the text does not end with `end`.
    private static func without(_ end: String, at text: String) -> String? {
        let ending = text.utf8.suffix(end.utf8.count)
        guard ending.count == end.utf8.count, zip(ending, end.utf8).allSatisfy({ lowered($0) == lowered($1) }) else {
            return nil
        }
        return String(wire: text.utf8.dropLast(end.utf8.count))
    }

    /// The error for a text in the format of crontab(5); nil for any other text.
    private static func cron(_ text: String) -> CalendarError? {
        guard let times = CronTimes.calendar(text) else { return nil }
        let list = times.map { "\"\($0)\"" }.joined(separator: ", ")
        return CalendarError(
            description: "this is how cron writes a time: write \(times.count > 1 ? "[\(list)]" : list)"
        )
    }

    /// The error for a text in which only the last word, which should be a time zone, is wrong; nil for any other text.
    private static func unknownZone(_ text: String, _ zones: some TimeZones) -> CalendarError? {
        guard let space = text.lastIndex(of: " ") else { return nil }
        let name = String(text[text.index(after: space)...])
        guard let first = name.utf8.first, isLetter(first) else { return nil }
        var parser = CalendarParser(zone: .utc, scanner: Scanner(String(text[..<space])))
        do throws(CalendarError) { try parser.read() } catch { return nil }
        return CalendarError(
            description: "\"\(name)\" is not a time zone known to this system: write for instance Europe/Berlin or UTC"
        )
    }

    // MARK: The whole

    private mutating func read() throws(CalendarError) {
        guard !scanner.isAtEnd else { throw error("it is empty: write for instance \"Mon..Fri 08:00\"") }
        if !takeShorthand() {
            try readWeekdays()
            if scanner.next == UInt8(ascii: "@") {
                try readTimestamp()
            } else {
                try readDateAndTime()
            }
        }
        if days.components.isEmpty { isFromEndOfMonth = false }
        try settle(&years, .year)
        try settle(&months, .month)
        try settle(&days, isFromEndOfMonth ? .dayFromEnd : .day)
        try settle(&hours, .hour)
        try settle(&minutes, .minute)
        try settle(&seconds, .second)
    }

    private func settle(_ field: inout CalendarField, _ place: CalendarField.Place) throws(CalendarError) {
        if place == .year {
            for index in field.components.indices {
                field.components[index].start = Self.fullYear(field.components[index].start)
                field.components[index].stop = field.components[index].stop.map(Self.fullYear)
            }
        }
        field.normalise()
        if let problem = field.problem(at: place) { throw error(problem) }
    }

    /// Completes a year of two digits: 12 is 2012, 89 is 1989.
    private static func fullYear(_ year: Int) -> Int {
        switch year {
        case 0..<70: year + 2000
        case 70..<100: year + 1900
        default: year
        }
    }

    private mutating func takeShorthand() -> Bool {
        switch String(wire: scanner.bytes.map(lowered)) {
        case "minutely":
            hours = .any
            minutes = .any
        case "hourly":
            hours = .any
        case "daily":
            break
        case "weekly":
            weekdays = 1
        case "monthly":
            days = .only(1)
        case "quarterly":
            months = .only(1, 4, 7, 10)
            days = .only(1)
        case "semiannually", "semi-annually", "biannually", "bi-annually":
            months = .only(1, 7)
            days = .only(1)
        // "anually" is a misspelling that systemd accepts.
        case "yearly", "annually", "anually":
            months = .only(1)
            days = .only(1)
        default:
            return false
        }
        return true
    }

    /// Reads `@` and seconds since 1970, with nothing after them.
    private mutating func readTimestamp() throws(CalendarError) {
        _ = scanner.take("@")
        // The last second of 2199.
        guard let moment = scanner.number(limit: 7_258_118_399), scanner.isAtEnd else {
            throw error("after the @ come seconds since 1970, before the year 2200, and nothing else")
        }
        let date = CivilDate(dayNumber: moment / 86_400)
        years = .only(date.year)
        months = .only(date.month)
        days = .only(date.day)
        hours = .only(moment / 3_600 % 24)
        minutes = .only(moment / 60 % 60)
        seconds = .only(moment % 60 * Int(microsecondsPerSecond))
        suffix = .utc
        zone = .utc
    }

    // MARK: Weekdays

    private static let weekdayNames: [(name: StaticString, day: Int)] = [
        ("Monday", 0), ("Mon", 0), ("Tuesday", 1), ("Tue", 1), ("Wednesday", 2), ("Wed", 2), ("Thursday", 3),
        ("Thu", 3), ("Friday", 4), ("Fri", 4), ("Saturday", 5), ("Sat", 5), ("Sunday", 6), ("Sun", 6),
    ]

    private mutating func takeWeekday() -> Int? {
        for (name, day) in Self.weekdayNames where scanner.take(name) { return day }
        return nil
    }

    /// Reads weekdays and ranges up to a space; there may be none.
    private mutating func readWeekdays() throws(CalendarError) {
        guard var first = takeWeekday() else { return }
        while true {
            var last = first
            let isRange = scanner.take("..") || scanner.take("-")
            if isRange {
                guard let end = takeWeekday() else {
                    throw error("a range of weekdays needs its last day, as in \"Mon..Fri\"")
                }
                last = end
            }
            guard first <= last else {
                let names = CalendarExpression.weekdayNames
                let start = last == 0 ? "Mon" : "Mon..\(names[last])"
                let end = first == 6 ? "Sun" : "\(names[first])..Sun"
                throw error(
                    "\(names[first])..\(names[last]) runs backwards: weeks begin on Monday; write \(start),\(end)"
                )
            }
            for day in first...last { weekdays |= 1 << day }
            if scanner.isAtEnd || skipSpaces() { return }
            guard scanner.take(",") else {
                throw error("after a weekday comes a comma, a range such as \"Mon..Fri\", a space or the end")
            }
            if scanner.isAtEnd || skipSpaces() { return }
            guard let next = takeWeekday() else {
                throw error("after the comma comes a weekday, as in \"Mon,Fri\"; before a time comes a space")
            }
            first = next
        }
    }

    /// Skips spaces. Returns false if there was none.
    private mutating func skipSpaces() -> Bool {
        !scanner.take { $0 == UInt8(ascii: " ") }.isEmpty
    }

    // MARK: Date and time

    /// The first number belongs to a date if `-` or `~` follows, otherwise it is the hour.
    private mutating func readDateAndTime() throws(CalendarError) {
        guard !scanner.isAtEnd else { return }
        let start = scanner
        let first = try readField(isSecond: false)
        if scanner.isAtEnd {
            throw error("\(start.rest) is neither date nor time: write \"12:00\" for a time, \"10-12\" for a date")
        }
        guard scanner.next != UInt8(ascii: ":") else {
            scanner = start
            return try readTime()
        }
        try readSeparator()
        let second = try readField(isSecond: false)
        if scanner.isAtEnd || skipSpaces() {
            months = first
            days = second
        } else {
            guard !isFromEndOfMonth else { throw error("the ~ stands before the day, as in \"*-02~01\"") }
            try readSeparator()
            years = first
            months = second
            days = try readField(isSecond: false)
            guard scanner.isAtEnd || skipSpaces() else {
                throw error("between date and time is a space, as in \"*-10-12 08:00\"")
            }
        }
        if !scanner.isAtEnd { try readTime() }
    }

    private mutating func readSeparator() throws(CalendarError) {
        if scanner.take("~") {
            isFromEndOfMonth = true
        } else if !scanner.take("-") {
            throw error("a date is written as in \"2030-10-12\", \"*-*-01\" or \"10-12\", a time as in \"08:00\"")
        }
    }

    private mutating func readTime() throws(CalendarError) {
        hours = try readField(isSecond: false)
        guard scanner.take(":") else { throw error("a time is written as in \"08:00\" or \"08:00:30\"") }
        minutes = try readField(isSecond: false)
        if scanner.isAtEnd { return }
        guard scanner.take(":") else { throw error("a time is written as in \"08:00\" or \"08:00:30\"") }
        seconds = try readField(isSecond: true)
        guard scanner.isAtEnd else { throw error("nothing but a time zone can follow a time, after one space") }
    }

    private mutating func readField(isSecond: Bool) throws(CalendarError) -> CalendarField {
        if scanner.take("*") {
            guard scanner.next != UInt8(ascii: "/") else {
                throw error("a repetition needs where it begins: write \"0/5\" where you wrote \"*/5\"")
            }
            return isSecond ? CalendarField(components: [CalendarField.everySecond]) : .any
        }
        var field = CalendarField.any
        repeat {
            guard field.components.count < Self.listLimit else {
                throw error("a list can have \(Self.listLimit) values at most")
            }
            field.components.append(try readComponent(isSecond: isSecond))
        } while scanner.take(",")
        return field
    }

    private mutating func readComponent(isSecond: Bool) throws(CalendarError) -> CalendarComponent {
        var component = CalendarComponent(start: try readNumber(isSecond: isSecond))
        let usual = isSecond ? Int(microsecondsPerSecond) : 1
        if scanner.take("..") {
            component.stop = try readNumber(isSecond: isSecond)
            component.step = usual
        }
        if scanner.take("/") {
            component.step = try readNumber(isSecond: isSecond)
            guard component.step > 0 else { throw error("a repetition cannot have the step 0: write 1 or more") }
        } else if isSecond, let stop = component.stop, stop - component.start < usual {
            throw error("a range of less than a second needs a step, as in \"0..0.5/0.1\"")
        }
        return component
    }

    /// Reads a number. Seconds may have decimals and are returned in microseconds.
    private mutating func readNumber(isSecond: Bool) throws(CalendarError) -> Int {
        // The limit of systemd's parser; larger values are out of range in every field.
        let limit = Int(Int32.max)
        guard let next = scanner.next, isDigit(next) else {
            let found = scanner.isAtEnd ? "the end" : "\"\(scanner.rest)\""
            throw error("a number or * is missing before \(found)")
        }
        guard let whole = scanner.number(limit: isSecond ? limit / Int(microsecondsPerSecond) : limit) else {
            throw error("\(scanner.take(while: isDigit)) is too large")
        }
        guard isSecond else { return whole }
        // Two dots mean a range, not a decimal point.
        var behind = scanner
        var value = whole * Int(microsecondsPerSecond)
        guard behind.take("."), behind.next != UInt8(ascii: ".") else { return value }
        let decimals = behind.take(while: isDigit)
        guard !decimals.isEmpty else { throw error("digits are missing after the decimal point") }
        scanner = behind
        var unit = Int(microsecondsPerSecond)
        for (index, digit) in decimals.utf8.prefix(7).enumerated() {
            let number = Int(digit - UInt8(ascii: "0"))
            unit /= 10
            value += index < 6 ? number * unit : number >= 5 ? 1 : 0
        }
        return value
    }

    private func error(_ sentence: String) -> CalendarError { CalendarError(description: sentence) }
}
