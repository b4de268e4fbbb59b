// SPDX-License-Identifier: Apache-2.0

package import CalendarTime
import Linux

/// Times and amounts for people.
package enum Times {
    /// The current time in microseconds since 1970.
    package static var now: Int64 { Clock.realtimeMicroseconds() }

    /// The time zone for input and output.
    package static let zone: CalendarTime.TimeZone =
        CommandLineArguments.isGiven("--utc") ? .utc : SystemTimeZones().local

    /// Parses `2026-01-31T12:34:56` in ``zone``, or with `Z` or an offset such as `+01:00` after it. The seconds are
    /// optional, and a space may replace the T. Returns microseconds since 1970.
    package static func parse(_ text: String) -> Int64? {
        if text.hasSuffix("Z") { return universal(text.dropLast()) }
        if let sign = text.dropFirst(11).lastIndex(where: { $0 == "+" || $0 == "-" }) {
            let parts = text[sign...].dropFirst().split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 2, parts.allSatisfy({ $0.utf8.count == 2 }), let hours = Int64(parts[0]),
                let minutes = Int64(parts[1]), (0..<24).contains(hours), (0..<60).contains(minutes)
            else { return nil }
            let ahead = (hours * 60 + minutes) * 60_000_000
            return universal(text[..<sign]).map { text[sign] == "+" ? $0 - ahead : $0 + ahead }
        }
        guard let local = universal(text[...]) else { return nil }
        // Find the offset at that local time in two guesses: the second moment is so close to the right one that it has
        // the same offset.
        func ahead(_ moment: Int64) -> Int64 { Int64(zone.offset(at: moment / 1_000_000)) * 1_000_000 }
        return local - ahead(local - ahead(local))
    }

    /// Parses a time as UTC.
    private static func universal(_ text: Substring) -> Int64? {
        let halves = text.split(maxSplits: 1, omittingEmptySubsequences: false) { $0 == "T" || $0 == " " }
        let date = halves[0].split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
        guard date.count == 3, let year = date[0], let month = date[1], let day = date[2],
            (1970...9999).contains(year), (1...12).contains(month), (1...31).contains(day)
        else { return nil }
        var seconds = days(year, month, day) * 86_400
        if halves.count == 2 {
            let time = halves[1].split(separator: ":", omittingEmptySubsequences: false)
            guard (2...3).contains(time.count), let hour = Int64(time[0]), let minute = Int64(time[1]),
                (0..<24).contains(hour), (0..<60).contains(minute)
            else { return nil }
            seconds += hour * 3600 + minute * 60
            if time.count == 3 {
                guard let second = Double(time[2]), (0..<61).contains(second) else { return nil }
                return seconds * 1_000_000 + Int64(second * 1_000_000)
            }
        }
        return seconds * 1_000_000
    }

    /// The start of today, or of yesterday.
    package static func midnight(isYesterdays: Bool) -> Int64? {
        guard let today = parse(date(now)), isYesterdays else { return parse(date(now)) }
        // Go back by half a day only: the day before may have had 23, 24 or 25 hours.
        return parse(date(today - 12 * 3_600_000_000))
    }

    /// The local date, as `2026-01-31`.
    package static func date(_ microseconds: Int64) -> String { String(local(microseconds).text.prefix { $0 != "T" }) }

    /// Days since 1970-01-01 (the algorithm of Howard Hinnant's days_from_civil).
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// A duration as text, such as `850ms`, `3.2s`, `3m12s`, `5h07m` or `12d4h`.
    package static func duration(seconds: Double) -> String {
        if seconds < 0 || !seconds.isFinite || seconds > 1e12 { return "-" }
        if seconds < 1 { return "\(Int(seconds * 1000))ms" }
        if seconds < 10 { return "\(tenths(seconds))s" }
        let whole = Int(seconds)
        func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
        if whole < 60 { return "\(whole)s" }
        if whole < 3600 { return "\(whole / 60)m\(two(whole % 60))s" }
        if whole < 86_400 { return "\(whole / 3600)h\(two(whole % 3600 / 60))m" }
        return "\(whole / 86_400)d\(whole % 86_400 / 3600)h"
    }

    /// A duration, given in milliseconds, in the form of ``duration(seconds:)``.
    package static func duration(milliseconds: Int64) -> String { duration(seconds: Double(milliseconds) / 1000) }

    /// `512 B`, `12.3 MiB`.
    package static func memory(bytes: Int64) -> String {
        var value = Double(bytes)
        if value < 1024 { return "\(bytes) B" }
        for unit in ["KiB", "MiB", "GiB", "TiB"] {
            value /= 1024
            if value < 1023.95 || unit == "TiB" { return "\(tenths(value)) \(unit)" }
        }
        return "\(bytes) B"
    }

    private static func tenths(_ value: Double) -> String {
        let scaled = Int((value * 10).rounded())
        return "\(scaled / 10).\(scaled % 10)"
    }

    /// A time as text: `2026-01-31T12:34:56.789+01:00`, or with `Z` at an offset of 0.
    package static func timestamp(_ microseconds: Int64) -> String {
        let (local, ahead) = local(microseconds)
        guard ahead != 0 else { return local + "Z" }
        func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let minutes = abs(ahead) / 60
        return local + (ahead < 0 ? "-" : "+") + two(minutes / 60) + ":" + two(minutes % 60)
    }

    /// A time to the second, for tables: on a terminal `2026-01-31 12:34:56`, elsewhere like ``timestamp(_:)``.
    package static func brief(_ microseconds: Int64) -> String {
        guard Terminal.columns != nil else {
            let text = timestamp(microseconds)
            return String(text.prefix { $0 != "." } + text.drop { $0 != "." }.dropFirst(4))
        }
        return String(local(microseconds).text.prefix { $0 != "." }).replacing("T", with: " ")
    }

    /// The local time, and its offset from UTC in seconds.
    private static func local(_ microseconds: Int64) -> (text: String, ahead: Int) {
        let ahead = zone.offset(at: Int64((Double(microseconds) / 1e6).rounded(.down)))
        let text = TimeStamp.string(microseconds: microseconds + Int64(ahead) * 1_000_000)
        return (String(text.dropLast()), ahead)
    }
}
