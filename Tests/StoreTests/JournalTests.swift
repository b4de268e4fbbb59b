// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import Testing

@testable import Store

@Suite("What is not stored yet")
struct JournalTests {
    private func event(_ number: Int, _ text: String) -> StoredEvent {
        var event = Bench.event(text, at: Int64(number), app: number % 2 == 0 ? nil : "web")
        event.sequence = Int64(number)
        event.incarnation = number % 3 == 0 ? nil : 7
        event.from = "active"
        event.reason = ""
        event.details = #"{"ü":1}"#
        return event
    }

    private func reopened(_ journal: StoreJournal) throws -> StoreJournal {
        try #require(StoreJournal(try journal.descriptor.duplicate()))
    }

    @Test("all of it is there again, in order, until it is released")
    func roundTrip() throws {
        let bench = try Bench()
        let journal = try StoreJournal(creating: bench.folder + "/journal")
        #expect(journal.items().isEmpty)
        let report = StoredReport(app: "web", incarnation: 3, at: 4, json: "{}")
        journal.append(event(1, "one"))
        let mark = journal.end
        journal.append(report)
        journal.append(event(2, ""))
        #expect(try reopened(journal).items() == [.event(event(1, "one")), .report(report), .event(event(2, ""))])
        journal.release(through: mark)
        #expect(try reopened(journal).items() == [.report(report), .event(event(2, ""))])
        journal.release(through: journal.end)
        #expect(try reopened(journal).items().isEmpty)
        // A mark of the past changes nothing.
        journal.append(event(3, "three"))
        journal.release(through: mark)
        #expect(try reopened(journal).items().count == 1)
    }

    @Test("when it is full the oldest go, and it goes round for ever")
    func wraps() throws {
        let bench = try Bench()
        let journal = try StoreJournal(creating: bench.folder + "/journal", capacity: 4_096)
        var seed: UInt64 = 7
        var sizes: [Int] = []
        for number in 1...20_000 {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let size = Int(seed >> 33) % 700
            sizes.append(size)
            journal.append(event(number, String(repeating: "x", count: size)))
            if number % 50 == 0 { journal.release(through: journal.end) }
            guard number % 37 == 0 else { continue }
            let items = try reopened(journal).items()
            let first = number - items.count + 1
            let expected = (first..<(number + 1)).map {
                StoreJournal.Item.event(event($0, String(repeating: "x", count: sizes[$0 - 1])))
            }
            #expect(items == expected)
            #expect(!items.isEmpty || number % 50 == 0)
        }
        // What would not leave room for others is not taken.
        journal.release(through: journal.end)
        journal.append(event(1, String(repeating: "x", count: 2_000)))
        #expect(journal.items().isEmpty)
    }

    @Test("an app that was removed stays removed, also when the disk had not taken that")
    func removal() throws {
        let bench = try Bench()
        let journal = try StoreJournal(creating: bench.folder + "/journal")
        let disk = FaultyDisk()
        let first = bench.store(vfs: disk.name, journal: journal)
        for name in ["web", "db"] {
            var row = AppRow(name: name)
            row.isStopped = true
            first.save(row)
        }
        #expect(try bench.flush(first))
        disk.set(.hangs)
        first.remove(app: "web")
        #expect(journal.items() == [.removal(app: "web")])
        try bench.turn("the disk hangs") { disk.isBlocking }
        try File.write(bench.folder + "/journal2", try File.read(bench.folder + "/journal"))
        disk.set(.fails(10))
        #expect(!first.close())

        // Also before anything is written: it may be an upgrade that is not settled.
        let second = bench.store(
            journal: StoreJournal(try File.open(bench.folder + "/journal2", .readWrite)),
            holdsWrites: true
        )
        #expect(try bench.load(second).apps.keys.sorted() == ["db"])
        second.releaseWrites()
        #expect(try bench.flush(second))
        #expect(second.close(within: Bench.patience))
        let third = bench.store()
        #expect(try bench.load(third).apps.keys.sorted() == ["db"])
    }

    @Test("a file of another boot, of somebody else or cut short is none, and any bytes are harmless")
    func damaged() throws {
        let bench = try Bench()
        let path = bench.folder + "/journal"
        let journal = try StoreJournal(creating: path, capacity: 4_096)
        for number in 1...20 { journal.append(event(number, "some text")) }
        #expect(StoreJournal(try journal.descriptor.duplicate(), boot: "another") == nil)
        let sound = try File.read(path)
        for size in [0, 10, 63, 64, 4_000, 4_159] {
            try File.write(bench.folder + "/short", Array(sound.prefix(size)))
            #expect(StoreJournal(try File.open(bench.folder + "/short", .readWrite)) == nil)
        }
        var seed: UInt64 = 1
        func next(_ bound: Int) -> Int {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(seed >> 33) % bound
        }
        for _ in 0..<3_000 {
            var bytes = sound
            for _ in 0...next(5) { bytes[next(3) == 0 ? next(64) : next(bytes.count)] = UInt8(next(256)) }
            try File.write(bench.folder + "/damaged", bytes)
            guard let damaged = StoreJournal(try File.open(bench.folder + "/damaged", .readWrite)) else { continue }
            #expect(damaged.items().count <= 600)
            damaged.append(event(99, "goes on"))
            damaged.release(through: damaged.end)
            damaged.append(event(100, "goes on"))
            #expect(damaged.items() == [.event(event(100, "goes on"))])
        }
    }

    @Test("what the journal of a killed torpord holds is stored, each once, also what was stored in its last moment")
    func replay() throws {
        let bench = try Bench()
        let journal = try StoreJournal(creating: bench.folder + "/journal")
        let disk = FaultyDisk()
        let first = bench.store(vfs: disk.name, journal: journal)
        let now = Clock.realtimeMicroseconds()
        let report = { StoredReport(app: "web", incarnation: $0, at: now, json: "{}") }
        first.append(Bench.event("1", at: now))
        first.append(report(1))
        #expect(try bench.flush(first))
        // Stored, and the journal does not know yet.
        #expect(journal.items().count == 2)
        first.append(Bench.event("2", at: now))
        #expect(try bench.flush(first))
        disk.set(.hangs)
        first.append(Bench.event("3", at: now))
        first.append(report(2))
        // Event 2 was told of as stored with the next push.
        #expect(journal.items().count == 2)
        try bench.turn("the disk hangs") { disk.isBlocking }
        first.append(Bench.event("4", at: now - 1_000))
        let bytes = try File.read(bench.folder + "/journal")
        disk.set(.fails(10))
        #expect(!first.close())

        try File.write(bench.folder + "/journal2", bytes)
        let second = bench.store(
            journal: StoreJournal(try File.open(bench.folder + "/journal2", .readWrite))
        )
        #expect(second.replayed == 3)
        second.append(Bench.event("5", at: now - 1_000))
        #expect(try bench.events(second).map(\.text) == ["1", "2", "3", "4", "5"])
        #expect(try bench.events(second).map(\.sequence) == Array(now...(now + 4)))
        #expect(try bench.reports(second).map(\.incarnation) == [2, 1])
        #expect(second.close(within: Bench.patience))

        // The same journal once more, as if that one had been killed before it could release it.
        try File.write(bench.folder + "/journal3", bytes)
        let third = bench.store(
            journal: StoreJournal(try File.open(bench.folder + "/journal3", .readWrite))
        )
        #expect(try bench.events(third).map(\.text) == ["1", "2", "3", "4", "5"])
        #expect(try bench.reports(third).count == 2)
    }
}
