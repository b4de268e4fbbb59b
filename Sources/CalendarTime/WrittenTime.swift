// SPDX-License-Identifier: Apache-2.0

/// A date and time as people and programs write it: RFC 3339 with an offset, or the same without an offset, as a local
/// time in a zone that must be known from elsewhere.
public struct WrittenTime: Sendable, Hashable {
    /// The written date and time, in microseconds since 1970 as if it were UTC.
    public let local: Int64
    /// Seconds ahead of UTC; nil if none was written.
    public let offset: Int?

    /// Parses `2026-03-29T02:30:00+01:00`. Seconds, fractions and the offset may be missing, `T` may be a space, and the
    /// offset may be `+0100`.
    public init?(_ text: some StringProtocol) {
        var scanner = DigitScanner(Array(text.utf8))
        guard let year = scanner.number(4), scanner.skip("-"), let month = scanner.number(2), scanner.skip("-"),
            let day = scanner.number(2), scanner.skip("T") || scanner.skip("t") || scanner.skip(" "),
            let hour = scanner.number(2), scanner.skip(":"), let minute = scanner.number(2),
            (1970...2199).contains(year), (1...12).contains(month),
            (1...CivilDate.days(inMonth: month, of: year)).contains(day), hour < 24, minute < 60
        else { return nil }
        var seconds = Int64(CivilDate(year: year, month: month, day: day).dayNumber) * 86_400
        seconds += Int64(hour * 3_600 + minute * 60)
        var fraction: Int64 = 0
        if scanner.skip(":") {
            // A leap second is written as second 60. Read it as the first second of the next minute.
            guard let second = scanner.number(2), second <= 60 else { return nil }
            seconds += Int64(second)
            if scanner.skip(".") {
                guard let parsed = scanner.fraction() else { return nil }
                fraction = parsed
            }
        }
        local = seconds * microsecondsPerSecond + fraction
        if scanner.isAtEnd {
            offset = nil
            return
        }
        if scanner.skip("Z") || scanner.skip("z") {
            offset = 0
        } else {
            let isAhead = scanner.skip("+")
            guard isAhead || scanner.skip("-"), let hours = scanner.number(2) else { return nil }
            _ = scanner.skip(":")
            guard let minutes = scanner.number(2), hours < 24, minutes < 60 else { return nil }
            offset = (hours * 3_600 + minutes * 60) * (isAhead ? 1 : -1)
        }
        guard scanner.isAtEnd else { return nil }
    }

    /// The moment in microseconds since 1970. If no offset was written, it is the moment at which clocks of `zone` show
    /// the written time (``TimeZone/moment(ofLocal:)``).
    public func moment(in zone: TimeZone) -> Int64 {
        if let offset { return local - Int64(offset) * microsecondsPerSecond }
        return zone.moment(ofLocal: local)
    }

}

/// A time of the day as people write it: `14:30`, `9:55` or `09:55:30`.
public struct WrittenTimeOfDay: Sendable, Hashable {
    /// The time of the day in microseconds since midnight.
    public let sinceMidnight: Int64

    /// Parses a time of the day; nil if `text` is not a time of the day.
    public init?(_ text: some StringProtocol) {
        var scanner = DigitScanner(Array(text.utf8))
        guard let hour = scanner.number(2) ?? scanner.number(1), scanner.skip(":"), let minute = scanner.number(2),
            hour < 24, minute < 60
        else { return nil }
        var second = 0
        if scanner.skip(":") {
            guard let written = scanner.number(2), written < 60 else { return nil }
            second = written
        }
        guard scanner.isAtEnd else { return nil }
        sinceMidnight = Int64(hour * 3_600 + minute * 60 + second) * microsecondsPerSecond
    }

    /// The date and time at which clocks of `zone` next show this time of day, today or tomorrow: in microseconds since
    /// 1970, as if the local time were UTC.
    ///
    /// - Parameter moment: the present time, in microseconds since 1970.
    public func next(notBefore moment: Int64, in zone: TimeZone) -> Int64 {
        let day = Int64(86_400) * microsecondsPerSecond
        let today = Int64(LocalTime(moment, in: zone).dayNumber) * day + sinceMidnight
        return zone.moment(ofLocal: today) >= moment ? today : today + day
    }
}

/// Reads digits and single characters from the start.
private struct DigitScanner {
    private let bytes: [UInt8]
    private var place = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { place == bytes.count }

    /// Reads exactly `count` digits; nil, with nothing read, if there are fewer.
    mutating func number(_ count: Int) -> Int? {
        guard place + count <= bytes.count else { return nil }
        var value = 0
        for byte in bytes[place..<place + count] {
            guard isDigit(byte) else { return nil }
            value = value * 10 + Int(byte - UInt8(ascii: "0"))
        }
        place += count
        return value
    }

    /// Digits after a point, in microseconds; further ones are ignored.
    mutating func fraction() -> Int64? {
        var value: Int64 = 0
        var weight: Int64 = 100_000
        let start = place
        while place < bytes.count, isDigit(bytes[place]), place - start < 32 {
            value += Int64(bytes[place] - UInt8(ascii: "0")) * weight
            weight /= 10
            place += 1
        }
        return place == start ? nil : value
    }

    mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard place < bytes.count, bytes[place] == UInt8(ascii: character) else { return false }
        place += 1
        return true
    }
}

extension TimeZone {
    /// When clocks show a local time, in microseconds since 1970; `local` is in microseconds as if it were UTC.
    ///
    /// If clocks are set back and show the time twice, the result is the first moment. If clocks are set forward and
    /// skip the time, the result is the moment at which they are set.
    public func moment(ofLocal local: Int64) -> Int64 {
        switch reading(of: local, after: -1, isDaylight: nil) {
        case .at(let moment): return moment
        case .skipped(let resumes):
            guard case .at(let moment) = reading(of: resumes, after: -1, isDaylight: nil) else { break }
            return moment
        case .never: break
        }
        return local - Int64(offset(at: floorDivide(local, by: microsecondsPerSecond))) * microsecondsPerSecond
    }
}
