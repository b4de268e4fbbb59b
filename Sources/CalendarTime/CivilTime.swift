// SPDX-License-Identifier: Apache-2.0

/// A date of the proleptic Gregorian calendar.
struct CivilDate: Hashable, Sendable {
    var year: Int
    /// From 1.
    var month: Int
    /// From 1.
    var day: Int

    init(year: Int, month: Int, day: Int) {
        self.year = year
        self.month = month
        self.day = day
    }

    /// The date `number` days after 1970-01-01.
    ///
    /// The computation counts years from March, so that the leap day is the last day of its year, in eras of 400
    /// years, which all have equal length.
    init(dayNumber number: Int) {
        let fromEra = number + 719_468
        let era = floorDivide(fromEra, by: 146_097)
        let dayOfEra = fromEra - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let fromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * fromMarch + 2) / 5 + 1
        month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// The date as the number of days since 1970-01-01.
    var dayNumber: Int {
        let fromMarch = month > 2 ? year : year - 1
        let era = floorDivide(fromMarch, by: 400)
        let yearOfEra = fromMarch - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    /// The weekday of a day, from 0 for Monday.
    static func weekday(dayNumber: Int) -> Int {
        // 1970-01-01 was a Thursday.
        remainder(dayNumber + 3, by: 7)
    }

    static func isLeap(_ year: Int) -> Bool {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    }

    static func days(inMonth month: Int, of year: Int) -> Int {
        switch month {
        case 2: isLeap(year) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

/// The quotient rounded down, also for negative values (times before 1970).
func floorDivide<T: BinaryInteger>(_ value: T, by divisor: T) -> T {
    let (quotient, rest) = value.quotientAndRemainder(dividingBy: divisor)
    return rest < 0 ? quotient - 1 : quotient
}

/// The remainder of ``floorDivide(_:by:)``: never negative.
func remainder<T: BinaryInteger>(_ value: T, by divisor: T) -> T {
    let rest = value % divisor
    return rest < 0 ? rest + divisor : rest
}

let microsecondsPerSecond: Int64 = 1_000_000
let microsecondsPerDay: Int64 = 86_400 * microsecondsPerSecond
