// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import WireText

/// A calendar expression.
enum Calendars: FuzzedParser {
    /// The machine's zone is always the same.
    private struct Zones: TimeZones {
        let local = TimeZone(rule: "CET-1CEST,M3.5.0,M10.5.0/3") ?? .utc

        func zone(named name: String) -> TimeZone? { SystemTimeZones().zone(named: name) }
    }

    static func run(_ bytes: [UInt8]) throws(Finding) {
        let zones = Zones()
        guard let text = String(validWire: bytes),
            let expression = try? CalendarExpression(text, zones: zones)
        else { return }
        let written = expression.description
        guard let again = try? CalendarExpression(written, zones: zones) else {
            throw Finding("\(text) is written as \(written), which cannot be read")
        }
        try expect(again.description == written, "\(written) is \(again.description) the second time")
        var moment: Int64 = 1_700_000_000_000_000
        for _ in 0..<3 {
            guard let next = expression.next(after: moment) else { break }
            try expect(next > moment, "\(written) comes at \(next), which is not after \(moment)")
            try expect(again.next(after: moment) == next, "\(text) and \(written) come at different times")
            try expect(expression.latest(notAfter: next) == next, "\(written) comes at \(next), and did not")
            moment = next
        }
    }
}
