// SPDX-License-Identifier: Apache-2.0

import CalendarTime

/// Formats moments for users.
enum ClockText {
    private static let weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]

    /// Formats a time as `18:00` if it is today, `Mon 08:00` within a week, else `2030-12-24 08:00`. Both times are
    /// in microseconds since 1970.
    static func text(_ moment: Int64, at now: Int64, in zone: TimeZone) -> String {
        let local = LocalTime(moment, in: zone)
        let today = LocalTime(now, in: zone)
        var text = "\(padded(local.hour)):\(padded(local.minute))"
        if local.second != 0 { text += ":" + padded(local.second) }
        switch local.dayNumber - today.dayNumber {
        case 0: return text
        case 1...6: return "\(weekdays[local.weekday]) \(text)"
        default: return "\(local.year)-\(padded(local.month))-\(padded(local.day)) \(text)"
        }
    }

    private static func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
