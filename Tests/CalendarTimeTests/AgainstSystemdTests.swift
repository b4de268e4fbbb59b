// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import Testing

@Suite("Calendar expressions are read as systemd reads them")
struct AgainstSystemdTests {
    /// A zone and moments in it, in seconds since 1970, around which clocks are changed or a leap day comes.
    struct Place: Sendable, CustomTestStringConvertible {
        var zone: String
        var moments: [Int64]
        var testDescription: String { zone }
    }

    static let places = [
        // 2024-02-28 12:00, 2096-02-28 and 2100-02-27: 2100 has no leap day.
        Place(zone: "UTC", moments: [1_709_121_600, 3_981_268_800, 4_107_412_800]),
        // The days before the clocks go forward and back, and the second of the two hours from two to three.
        Place(zone: "Europe/Berlin", moments: [1_711_800_000, 1_729_944_000, 1_729_991_400]),
        Place(zone: "America/New_York", moments: [1_709_985_600, 1_730_548_800]),
        Place(zone: "Asia/Kolkata", moments: [1_709_121_600]),
        // There it is half an hour, and winter lies in our summer.
        Place(zone: "Australia/Lord_Howe", moments: [1_728_126_000, 1_743_854_400]),
    ]

    @Test("Normal form, validity and the next elapses are the same", arguments: places)
    func agrees(place: Place) throws {
        let zones = try ZonesElsewhere(place.zone)
        var mismatches: [String] = []
        var compared = 0
        for moment in place.moments {
            let expected = try SystemdAnalyze.calendar(expressions, zone: place.zone, after: moment, iterations: 4)
            for (text, expected) in zip(expressions, expected) {
                let found = Self.analysed(text, zones, after: moment, iterations: 4)
                compared += 1
                guard found != expected else { continue }
                let shown = [expected, found].map { $0.map(\.description) ?? "refused" }
                mismatches.append("\"\(text)\" after \(moment): expected \(shown[0]), found \(shown[1])")
            }
        }
        #expect(compared >= 200 * place.moments.count)
        #expect(mismatches.isEmpty, "\(mismatches.joined(separator: "\n"))")
    }

    @Test("Half a year's name stands for the machine's zone, and its times come in that half only")
    func abbreviations() throws {
        let zones = try ZonesElsewhere("Europe/Berlin")
        // systemd finds no time outside the half of the year in which it looks.
        for (texts, moment) in [
            (["12:00 CEST", "*:0/30 cest", "Mon 02:30 CEST"], Int64(1_717_243_200)),
            (["12:00 CET", "*:0/30 cet", "Mon 02:30 CET", "weekly CET"], 1_704_110_400),
        ] {
            let expected = try SystemdAnalyze.calendar(texts, zone: "Europe/Berlin", after: moment, iterations: 3)
            #expect(texts.map { Self.analysed($0, zones, after: moment, iterations: 3) } == expected)
        }
        let winter = try CalendarExpression("12:00 CET", zones: zones)
        // 2024-06-01 12:00 UTC; the 27th of October is the first day whose noon is in winter time.
        #expect(winter.next(after: 1_717_243_200_000_000) == 1_730_026_800_000_000)
        #expect(winter.latest(notAfter: 1_717_243_200_000_000) == 1_711_796_400_000_000)
    }

    /// What systemd-analyze would say, from what the module says.
    static func analysed(
        _ text: String,
        _ zones: ZonesElsewhere,
        after moment: Int64,
        iterations: Int
    ) -> Analysed? {
        guard let expression = try? CalendarExpression(text, zones: zones) else { return nil }
        var elapses: [Int64] = []
        var last = moment * 1_000_000
        while elapses.count < iterations, let next = expression.next(after: last) {
            elapses.append(next / 1_000_000)
            last = next
        }
        return Analysed(normal: expression.description, elapses: elapses)
    }
}
