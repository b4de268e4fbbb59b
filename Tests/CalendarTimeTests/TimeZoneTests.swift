// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing

@testable import CalendarTime

@Suite("Time zones")
struct TimeZoneTests {
    private func file(_ name: String) throws -> [UInt8] { try File.read("/usr/share/zoneinfo/" + name) }

    @Test(
        "A rule says the same as the table of a zone that it continues",
        arguments: [
            ("Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3", 1997), ("America/New_York", "EST5EDT,M3.2.0,M11.1.0", 2008),
            ("America/New_York", "EST5EDT", 2008), ("Asia/Kolkata", "IST-5:30", 1946),
            ("Australia/Lord_Howe", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 2009),
            ("America/St_Johns", "NST3:30NDT,M3.2.0,M11.1.0", 2012),
        ]
    )
    func rules(name: String, rule: String, year: Int) throws {
        let zone = try #require(SystemTimeZones().zone(named: name))
        let ruled = try #require(TimeZone(rule: rule))
        let first = Int64(CivilDate(year: year, month: 1, day: 1).dayNumber) * 86_400
        // Every 18 hours or so, up to 2037, where tables end.
        for time in stride(from: first, to: 2_114_380_800, by: 64_007) {
            guard zone.offset(at: time) == ruled.offset(at: time),
                zone.abbreviation(at: time) == ruled.abbreviation(at: time)
            else {
                Issue.record("\(name) differs from its rule at \(time)")
                return
            }
        }
    }

    @Test("Days can be counted with and without the leap day, and hours can lie on other days")
    func kindsOfRules() throws {
        // The 60th day is the 1st of March without the leap day; counted from 0 with it, it is the 29th of February.
        let julian = try #require(TimeZone(rule: "AAA0BBB,J60/0,J365/24"))
        let leap = Int64(CivilDate(year: 2028, month: 3, day: 1).dayNumber) * 86_400
        #expect(julian.abbreviation(at: leap - 1) == "AAA")
        #expect(julian.abbreviation(at: leap) == "BBB")
        let ordinal = try #require(TimeZone(rule: "AAA0BBB,59/-1,J365/24"))
        #expect(ordinal.abbreviation(at: leap - 86_400 - 3_601) == "AAA")
        #expect(ordinal.abbreviation(at: leap - 86_400 - 3_600) == "BBB")
        // Summer all year long.
        let always = try #require(TimeZone(rule: "XXX3EDT4,0/0,J365/23"))
        for day in 0..<800 { #expect(always.abbreviation(at: leap + Int64(day) * 86_400) == "EDT") }
    }

    @Test(
        "What is no rule is none",
        arguments: [
            "", "CE-1", "CET", "CET-25", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0",
            "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,J0,J1", "CET-1CEST,366,1", "CET-1CEST,M3.5.0,M10.5.0/168",
            "CET-1CEST,M3.5.0,M10.5.0 ", "<CET-1", "CET-1:60",
        ]
    )
    func noRules(text: String) {
        #expect(TimeZone(rule: text) == nil)
    }

    @Test("Only what is a zone in the database is one")
    func names() throws {
        let zones = SystemTimeZones()
        for name in ["UTC", "Europe/Berlin", "Etc/GMT+5", "America/Argentina/Buenos_Aires"] {
            #expect(zones.zone(named: name) != nil, "\(name)")
        }
        for name in [
            "", "/", "Europe", "Europe/", "/Europe/Berlin", "Europe//Berlin", "../zoneinfo/Europe/Berlin", "zone.tab",
            "Europe/Berlin\n", "tzdata.zi", "Mars/Olympus",
        ] {
            #expect(zones.zone(named: name) == nil, "\(name)")
        }
        #expect(SystemTimeZones(directory: "/nonexistent").zone(named: "UTC") != nil)
        #expect(SystemTimeZones(directory: "/nonexistent").zone(named: "Europe/Berlin") == nil)
    }

    @Test("What comes before the first change and far off in time has an answer")
    func farOff() throws {
        let zone = try #require(SystemTimeZones().zone(named: "Europe/Berlin"))
        #expect(zone.abbreviation(at: .min) == "LMT")
        #expect(["CET", "CEST"].contains(zone.abbreviation(at: .max)))
        // 2200-07-01.
        #expect(zone.offset(at: 7_273_756_800) == 7_200)
    }

    @Test("A file of the first version, or without what follows its table, is read too")
    func oldFiles() throws {
        let bytes = try file("America/New_York")
        var old = bytes
        old[4] = 0
        // Where it has a table with times of four bytes; some systems leave that empty.
        if bytes[35] > 0 || bytes[34] > 0 {
            #expect(try #require(ZoneFile.zone(old)).offset(at: 1_720_000_000) == -14_400)
        }
        let footer = try #require(bytes.dropLast().lastIndex(of: UInt8(ascii: "\n")))
        #expect(ZoneFile.zone(Array(bytes[..<footer])) != nil)
    }

    @Test("Damaged files are refused or read as something, and harm nobody")
    func damagedFiles() throws {
        let bytes = try file("Europe/Dublin")
        for length in 0..<bytes.count where ZoneFile.zone(Array(bytes[..<length])) != nil {
            // Only the rule at the end may be missing.
            #expect(bytes[length..<bytes.count].count < 64)
        }
        var random = SystemRandomNumberGenerator()
        var refused = 0
        for _ in 0..<1_000 {
            var damaged = bytes
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let near = Bool.random(using: &random) ? 200 : damaged.count
                damaged[Int.random(in: 4..<min(near, damaged.count), using: &random)] = .random(in: 0...255)
            }
            guard let zone = ZoneFile.zone(damaged) else {
                refused += 1
                continue
            }
            let zones = Fixed(local: zone)
            guard let expression = try? CalendarExpression("Mon *-*~1 02:30", zones: zones) else { continue }
            if let next = expression.next(after: 1_700_000_000_000_000) { #expect(next > 1_700_000_000_000_000) }
            _ = expression.latest(notAfter: 1_700_000_000_000_000)
        }
        #expect(refused > 0)
    }

    private struct Fixed: TimeZones {
        var local: TimeZone

        func zone(named name: String) -> TimeZone? { nil }
    }
}
