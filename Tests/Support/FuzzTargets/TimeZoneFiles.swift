// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import WireText

/// A file of the time zone database; or, if it begins with none of its letters, the rule in its last line, as TZ has it.
enum TimeZoneFiles: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        if let zone = TimeZone(file: bytes) { try look(zone) }
        if let text = String(validWire: bytes), let zone = TimeZone(rule: text) { try look(zone) }
    }

    private static func look(_ zone: TimeZone) throws(Finding) {
        for moment: Int64 in [-1 << 43, -1 << 33, 0, 1_700_000_000, 1_719_000_000, 1 << 33, 1 << 43] {
            // tzfile(5): from -25 to 26 hours; as a rule has it, a week.
            let offset = zone.offset(at: moment)
            try expect(abs(offset) <= 8 * 86_400, "\(offset) s at \(moment)")
            _ = zone.abbreviation(at: moment)
        }
        guard let expression = try? CalendarExpression("*-*-* 02:30", zones: SystemTimeZones().with(local: zone))
        else { throw Finding("a plain expression cannot be read") }
        var moment: Int64 = 1_700_000_000_000_000
        for _ in 0..<4 {
            guard let next = expression.next(after: moment) else { break }
            try expect(next > moment, "02:30 comes at \(next), which is not after \(moment)")
            moment = next
        }
        if let latest = expression.latest(notAfter: moment) {
            try expect(latest <= moment, "02:30 was at \(latest), which is after \(moment)")
        }
    }
}
