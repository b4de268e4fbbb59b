// SPDX-License-Identifier: Apache-2.0

import WireText

/// The time at the beginning of each line of a log: RFC 3339 in UTC with milliseconds, such as
/// `2026-01-31T12:00:00.123Z`.
public enum TimeStamp {
    /// The length of a time stamp in bytes, without the space after it.
    public static let length = 24

    /// Formats a time in microseconds since 1970 as a time stamp, for the years 0 to 9999.
    public static func format(microseconds: Int64) -> [UInt8] {
        let second = Int64(1_000_000)
        let seconds = floorDivide(microseconds, second)
        let milliseconds = (microseconds - seconds * second) / 1_000
        let days = floorDivide(seconds, 86_400)
        let inDay = seconds - days * 86_400
        let date = civil(fromDays: days)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length)
        append(&bytes, max(0, min(9_999, date.year)), 4)
        bytes.append(UInt8(ascii: "-"))
        append(&bytes, date.month, 2)
        bytes.append(UInt8(ascii: "-"))
        append(&bytes, date.day, 2)
        bytes.append(UInt8(ascii: "T"))
        append(&bytes, inDay / 3_600, 2)
        bytes.append(UInt8(ascii: ":"))
        append(&bytes, inDay / 60 % 60, 2)
        bytes.append(UInt8(ascii: ":"))
        append(&bytes, inDay % 60, 2)
        bytes.append(UInt8(ascii: "."))
        append(&bytes, milliseconds, 3)
        bytes.append(UInt8(ascii: "Z"))
        return bytes
    }

    /// The time stamp as text.
    public static func string(microseconds: Int64) -> String {
        String(wire: format(microseconds: microseconds))
    }

    /// Parses the time stamp at the beginning of `bytes` to microseconds since 1970; nil if there is no time stamp.
    public static func parse(_ bytes: some Collection<UInt8>) -> Int64? {
        let text = Array(bytes.prefix(length))
        guard text.count == length else { return nil }
        for (index, mark) in [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"), (19, "."), (23, "Z")] {
            guard text[index] == mark.utf8.first else { return nil }
        }
        func number(_ start: Int, _ digits: Int) -> Int64? {
            var value: Int64 = 0
            for byte in text[start..<(start + digits)] {
                guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
                value = value * 10 + Int64(byte - UInt8(ascii: "0"))
            }
            return value
        }
        guard let year = number(0, 4), let month = number(5, 2), let day = number(8, 2),
            let hour = number(11, 2), let minute = number(14, 2), let second = number(17, 2),
            let millisecond = number(20, 3),
            (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 61
        else { return nil }
        let seconds = days(year: year, month: month, day: day) * 86_400 + hour * 3_600 + minute * 60 + second
        return (seconds * 1_000 + millisecond) * 1_000
    }

    private static func append(_ bytes: inout [UInt8], _ value: Int64, _ digits: Int) {
        var divisor: Int64 = 1
        for _ in 1..<digits { divisor *= 10 }
        while divisor > 0 {
            bytes.append(UInt8(ascii: "0") + UInt8(value / divisor % 10))
            divisor /= 10
        }
    }

    private static func floorDivide(_ value: Int64, _ by: Int64) -> Int64 {
        let quotient = value / by
        return value % by < 0 ? quotient - 1 : quotient
    }

    /// Converts days since 1970 to a date of the proleptic Gregorian calendar. The calculation uses eras of 400 years
    /// that start in March.
    private static func civil(fromDays days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = floorDivide(shifted, 146_097)
        let inEra = shifted - era * 146_097
        let yearInEra = (inEra - inEra / 1_460 + inEra / 36_524 - inEra / 146_096) / 365
        let inYear = inEra - (365 * yearInEra + yearInEra / 4 - yearInEra / 100)
        let fromMarch = (5 * inYear + 2) / 153
        let month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
        return (yearInEra + era * 400 + (month <= 2 ? 1 : 0), month, inYear - (153 * fromMarch + 2) / 5 + 1)
    }

    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = floorDivide(shifted, 400)
        let inEra = shifted - era * 400
        let inYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + inEra * 365 + inEra / 4 - inEra / 100 + inYear - 719_468
    }
}
