// SPDX-License-Identifier: Apache-2.0

/// The local date and time at a moment.
public struct LocalTime: Sendable, Hashable {
    /// The year.
    public let year: Int
    /// The month, from 1.
    public let month: Int
    /// The day of the month, from 1.
    public let day: Int
    /// The weekday, from 0 for Monday.
    public let weekday: Int
    /// The hour, from 0.
    public let hour: Int
    /// The minute, from 0.
    public let minute: Int
    /// The second, from 0.
    public let second: Int
    /// Days since 1970-01-01; the difference of two such values is the number of days between two dates.
    public let dayNumber: Int

    /// The local time in `zone`.
    ///
    /// - Parameter moment: microseconds since 1970.
    public init(_ moment: Int64, in zone: TimeZone) {
        let universal = floorDivide(moment, by: microsecondsPerSecond)
        let local = Int(universal) + zone.offset(at: universal)
        dayNumber = floorDivide(local, by: 86_400)
        let date = CivilDate(dayNumber: dayNumber)
        year = date.year
        month = date.month
        day = date.day
        weekday = CivilDate.weekday(dayNumber: dayNumber)
        let time = local - dayNumber * 86_400
        hour = time / 3_600
        minute = time / 60 % 60
        second = time % 60
    }
}
