// SPDX-License-Identifier: Apache-2.0

import Configuration
import KernelFiles
import Linux
import Testing

@testable import EventSources

@Suite("Where regions were") struct LocationLedgerTests {
    private func region(_ name: String, radius: Double = 200) -> RegionSpecification {
        var region = RegionSpecification()
        region.name = name
        region.latitude = 52.5
        region.radius = radius
        return region
    }

    @Test(
        "What was noted is known to the next torpord, whatever regions are called",
        arguments: [
            "home", "", "\"\\\n\t", "日本/../x", "\u{0}", "e\u{301}",
        ]
    )
    func names(_ name: String) throws {
        let folder = try KernelFiles()
        var ledger = LocationLedger(folder.root)
        ledger.note("web", region(name), isInside: true)
        ledger.note("db", region(name), isInside: false)
        let next = LocationLedger(folder.root)
        #expect(next.isInside("web", region(name)) == true && next.isInside("db", region(name)) == false)
        #expect(next.isInside("web", region(name, radius: 201)) == nil)
        ledger.note("web", region(name), isInside: nil)
        #expect(LocationLedger(folder.root).isInside("web", region(name)) == nil)
    }

    @Test(
        "What is no ledger is an empty one",
        arguments: ["", "{", "[true]", "null", "{\"web/home/52.5,0.0,200.0\": 1}"]
    )
    func garbage(_ text: String) throws {
        let folder = try KernelFiles()
        try folder.write("/regions.json", text)
        var ledger = LocationLedger(folder.root)
        #expect(ledger.isInside("web", region("home")) == nil)
        ledger.note("web", region("home"), isInside: true)
        #expect(LocationLedger(folder.root).isInside("web", region("home")) == true)
    }

    @Test("Where nothing can be written it is known for as long as torpord runs") func unwritable() {
        var ledger = LocationLedger("/nonexistent")
        ledger.note("web", region("home"), isInside: true)
        #expect(ledger.isInside("web", region("home")) == true)
    }
}
