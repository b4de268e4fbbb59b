// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import TorporPolicyKit

/// A window of each day, such as `08:00-18:00`. A window that ends before it begins spans midnight.
struct DailyWindow {
    /// The begin and the end of the window, in minutes of the day; the end is exclusive.
    private let start: Int
    private let end: Int

    private static let minutesOfDay = 24 * 60
    private static let microsecondsOfMinute: Int64 = 60_000_000

    /// Reads the windows of an option.
    static func windows(_ options: Options, _ key: String) throws(PolicyError) -> [DailyWindow] {
        var windows: [DailyWindow] = []
        for text in try options.strings(key) {
            guard let window = DailyWindow(text) else {
                throw options.error(key, "must have windows such as \"08:00-18:00\": it has \"\(text)\"")
            }
            windows.append(window)
        }
        guard timeLeft(in: windows, at: 0) < .seconds(86_400) else {
            throw options.error(key, "covers the whole day: use protect for apps that are always left alone")
        }
        return windows
    }

    private init?(_ text: String) {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let start = Self.minute(ends[0]), let end = Self.minute(ends[1]),
            start != end, start < Self.minutesOfDay
        else { return nil }
        self.start = start
        self.end = end
    }

    /// The minutes of the day for a text from `00:00` to `24:00`; nil if the text is invalid.
    private static func minute(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.count == 2, parts[1].utf8.count == 2, let hour = UInt8(parts[0]),
            let minute = UInt8(parts[1]), minute < 60, Int(hour) * 60 + Int(minute) <= minutesOfDay
        else { return nil }
        return Int(hour) * 60 + Int(minute)
    }

    /// The time until no window is open; a whole day if the windows together cover the day.
    static func timeLeft(in windows: [DailyWindow], at microsecondsOfDay: Int64) -> Duration {
        let day = Int64(minutesOfDay) * microsecondsOfMinute
        var time = microsecondsOfDay
        while time < microsecondsOfDay + day {
            let left = windows.map { $0.timeLeft(at: time % day) }.max() ?? 0
            if left == 0 { break }
            time += left
        }
        return .microseconds(min(time - microsecondsOfDay, day))
    }

    /// How long the window stays open; 0 if it is closed.
    private func timeLeft(at time: Int64) -> Int64 {
        let start = Int64(start) * Self.microsecondsOfMinute
        let end = Int64(end) * Self.microsecondsOfMinute
        if start < end { return time >= start && time < end ? end - time : 0 }
        if time < end { return end - time }
        return time >= start ? Int64(Self.minutesOfDay) * Self.microsecondsOfMinute - time + end : 0
    }
}

/// The local time in a time zone.
struct LocalClock {
    private let zone: TimeZone

    /// Reads the time zone of the option `timezone` when the policy starts: a policy in its own process may not be
    /// able to open files later.
    init(_ options: Options) throws(PolicyError) {
        guard options.has("timezone") else {
            zone = SystemTimeZones().local
            return
        }
        let name = try options.string("timezone", default: "")
        guard let zone = SystemTimeZones().zone(named: name) else {
            throw options.error(
                "timezone",
                "is \"\(name)\", which is not a time zone known to this system: "
                    + "write for instance Europe/Berlin or UTC"
            )
        }
        self.zone = zone
    }

    /// - Parameter moment: microseconds since 1970.
    func microsecondsOfDay(at moment: Int64) -> Int64 {
        let day: Int64 = 86_400_000_000
        let second = moment / 1_000_000
        let local = moment.addingReportingOverflow(Int64(zone.offset(at: second)) * 1_000_000).partialValue
        return (local % day + day) % day
    }
}
