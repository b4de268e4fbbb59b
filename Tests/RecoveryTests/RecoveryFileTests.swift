// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import SystemPackage
import Testing

@testable import Recovery

/// The file that a torpord leaves to the next one.
@Suite("The recovery file")
final class RecoveryFileTests {
    let folder: String

    init() throws {
        folder = NSTemporaryDirectory() + "recovery-" + UUID().uuidString
        try File.makeDirectory(folder)
    }

    deinit { try? File.removeTree(folder) }

    var path: String { folder + "/recovery" }

    func fresh(recordBytes: Int = 64, capacity: Int = 4) throws -> RecoveryFile {
        try RecoveryFile(creating: path, recordBytes: recordBytes, capacity: capacity)
    }

    func again() throws -> RecoveryFile { try RecoveryFile(File.open(path, .readWrite)) }

    func write(_ file: RecoveryFile, _ slot: Int, _ text: String, undone: UInt32 = 0) {
        file.write(slot, undone: undone) { memory in
            let bytes = Array(text.utf8)
            memory.copyBytes(from: bytes)
            return bytes.count
        }
    }

    func texts(_ file: RecoveryFile) -> [String: String] {
        var result: [String: String] = [:]
        for entry in file.entries {
            result[entry.name] = entry.record.map { String(decoding: $0, as: UTF8.self) } ?? "-"
        }
        return result
    }

    /// Changes bytes of the file behind its back.
    func poke(_ offset: UInt64, _ bytes: [UInt8]) throws {
        let file = try File.open(path, .readWrite)
        try File.write(file.raw, at: offset, bytes)
    }

    @Test("who looks at a record while it is written sees one that was whole", .timeLimit(.minutes(1)))
    func lookedAt() throws {
        // One thread writes, and nobody else uses this mapping meanwhile.
        nonisolated(unsafe) let file = try fresh(recordBytes: 3000)
        let slot = try file.add("web")
        let fill = { @Sendable (byte: UInt8) in
            file.write(slot, undone: 0) { memory in
                for i in 0..<2900 { memory[i] = byte }
                return 2900
            }
        }
        fill(0)
        let other = try RecoveryFile(File.open(path), isWritable: false)
        let isOver = Monitor(false)
        let writer = Thread {
            for round in 0..<60_000 { fill(UInt8(truncatingIfNeeded: round)) }
            isOver.withLock { $0 = true }
            isOver.wake()
        }
        writer.start()
        var seen: Set<UInt8> = []
        while !isOver.withLock({ $0 }) {
            let record = try #require(other.snapshot(slot))
            #expect(record.count == 2900)
            seen.formUnion(record)
            try #require(record.allSatisfy { $0 == record[0] }, "parts of two")
        }
        #expect(seen.count > 1, "nothing was written meanwhile")
    }

    @Test("a file of an earlier run of the same container is none, and its owner's number is kept")
    func otherRun() throws {
        let file = try fresh()
        #expect(file.verdict == 0)
        file.verdict = 144
        #expect(try again().verdict == 144)
        file.person = 1001
        #expect(try again().person == 1001 && again().verdict == 144)
        #expect(file.place == 0)
        let now = RecoveryFile.firstProcess
        #expect(now != 0, "process 1 can be looked at here")
        #expect(throws: RecoveryFile.Refusal.otherBoot) {
            try RecoveryFile(File.open(self.path, .readWrite), firstProcess: now + 1)
        }
        // Where nobody can tell, and in files of a torpord that did not write it, it does not count.
        _ = try RecoveryFile(File.open(path, .readWrite), firstProcess: 0)
        try poke(80, [0, 0, 0, 0, 0, 0, 0, 0])
        _ = try RecoveryFile(File.open(path, .readWrite), firstProcess: now + 1)
    }

    @Test("what was written last is read again, app by app")
    func roundTrip() throws {
        let file = try fresh()
        let web = try file.add("web")
        let db = try file.add("db")
        _ = try file.add("new")
        write(file, web, "one")
        write(file, web, "two", undone: 5)
        write(file, db, "three")
        file.nextEvent = 77
        file.flags = 3
        let next = try again()
        #expect(texts(next) == ["web": "two", "db": "three", "new": "-"])
        #expect(next.entries.first { $0.name == "web" }?.undone == 5)
        #expect(next.nextEvent == 77)
        #expect(next.flags == 3)
        next.setUndone(web, 0)
        next.remove(db)
        #expect(texts(try again()) == ["web": "two", "new": "-"])
        #expect(try again().entries.first { $0.name == "web" }?.undone == 0)
    }

    @Test("one whose name is gone goes on in a new file: the same numbers, and no app yet")
    func goesOn() throws {
        let file = try fresh()
        write(file, try file.add("web"), "first")
        (file.flags, file.keeper, file.verdict, file.person, file.nextEvent) = (5, 77, 3, 9, 12)
        let place: UInt64 = 0xfedc_ba98_7654_3210
        file.place = place
        let old = file.descriptor
        try File.remove(path)
        try file.goOn(at: path, recordBytes: 200, capacity: 40)
        #expect(file.descriptor !== old)
        #expect(file.capacity == 40)
        #expect(file.entries.isEmpty)
        write(file, try file.add("mail"), String(repeating: "x", count: 200))
        let read = try again()
        #expect((read.flags, read.keeper, read.verdict, read.nextEvent) == (5, 77, 3, 12) && read.person == 9)
        #expect(read.place == place)
        #expect(texts(read) == ["mail": String(repeating: "x", count: 200)])
    }

    @Test("one that cannot be made leaves the old one as it was")
    func staysWhereItIs() throws {
        let file = try fresh()
        write(file, try file.add("web"), "first")
        #expect(throws: Errno.noSuchFileOrDirectory) {
            try file.goOn(at: folder + "/none/recovery", recordBytes: 64, capacity: 4)
        }
        #expect(texts(file) == ["web": "first"])
    }

    @Test("there is room for more apps than there was at first, and those before stay")
    func growing() throws {
        let file = try fresh(capacity: 16)
        for number in 0..<1_000 {
            let slot = try file.add("app\(number)")
            write(file, slot, "\(number)")
        }
        let all = texts(try again())
        #expect(all.count == 1_000)
        #expect((0..<1_000).allSatisfy { all["app\($0)"] == "\($0)" })
    }

    @Test("a record that was cut off in the midst is not taken: the one before counts, and a damaged one is none")
    func tornWrite() throws {
        let file = try fresh()
        let slot = try file.add("web")
        write(file, slot, "whole")
        // The next record goes into the header; whoever is killed before it counts has changed only that.
        try poke(136 + 8, Array("torn".utf8))
        #expect(texts(try again()) == ["web": "whole"])
        try poke(4096 + 80 + 8, Array("x".utf8))
        #expect(texts(try again()) == ["web": "-"])
    }

    @Test("a record that counts and was not copied to its slot is read, and the copy is finished")
    func halfCopied() throws {
        let file = try fresh()
        let slot = try file.add("web")
        write(file, slot, "first")
        write(file, slot, "second", undone: 6)
        // As it is in the midst of the copy: the header still has the record, the slot half of it.
        try poke(128, [UInt8(slot + 1), 0, 0, 0])
        try poke(UInt64(4096 + slot * (80 + 72)) + 68, [0, 0, 0, 0])
        try poke(UInt64(4096 + slot * (80 + 72)) + 80 + 8, Array("fi".utf8))
        let looked = try RecoveryFile(File.open(path, .read), isWritable: false)
        #expect(texts(looked) == ["web": "second"])
        #expect(looked.entries.first?.undone == 6)
        let next = try again()
        #expect(texts(next) == ["web": "second"])
        #expect(next.entries.first?.undone == 6)
        write(next, slot, "third")
        #expect(texts(try again()) == ["web": "third"])
        #expect(try again().entries.first?.undone == 6)
    }

    @Test("a byte that was added to a record ends with it, even if an older torpord writes the next one")
    func amended() throws {
        let file = try fresh()
        func byte() throws -> UInt8? { try again().entries.first { $0.name == "web" }?.amendment }
        let slot = try file.add("web")
        #expect(!file.amend(slot, 3), "there is no record yet")
        write(file, slot, "first", undone: 6)
        #expect(try byte() == nil)
        #expect(file.amend(slot, 3))
        #expect(try byte() == 3)
        #expect(file.amend(slot, 255))
        #expect(try byte() == 255)
        #expect(texts(try again()) == ["web": "first"])
        #expect(try again().entries.first?.undone == 6)
        // Nothing removes the byte: it does not belong to this record.
        write(file, slot, "second")
        #expect(try byte() == nil)
        // The record is in the header only: a kill has interrupted its copy to the slot.
        #expect(file.amend(slot, 7))
        write(file, slot, "third")
        #expect(file.amend(slot, 9))
        try poke(UInt64(4096 + slot * (80 + 72)) + 80, [0, 0, 0, 0])
        #expect(try byte() == nil, "the record is damaged")
        try poke(128, [UInt8(slot + 1), 0, 0, 0])
        let looked = try RecoveryFile(File.open(path, .read), isWritable: false)
        #expect(looked.entries.first?.amendment == 9)
        #expect(try byte() == 9)
        let first = try RecoveryFile(creating: path, recordBytes: 64, capacity: 4, version: 1)
        let old = try first.add("web")
        write(first, old, "one")
        write(first, old, "two")
        #expect(first.amend(old, 4))
        #expect(try byte() == 4)
    }

    @Test("a file of the first version is gone on with as it is")
    func firstVersion() throws {
        let file = try RecoveryFile(creating: path, recordBytes: 64, capacity: 4, version: 1)
        let slot = try file.add("web")
        write(file, slot, "one")
        write(file, slot, "two", undone: 1)
        let next = try again()
        #expect(texts(next) == ["web": "two"])
        write(next, slot, "three")
        #expect(texts(try again()) == ["web": "three"])
        #expect(try again().entries.first?.undone == 1)
        // Two records, the older one beside it.
        try poke(4096 + 64, [1, 0, 0, 0])
        #expect(texts(try again()) == ["web": "three"])
        try poke(4096 + 64, [2, 0, 0, 0])
        #expect(texts(try again()) == ["web": "two"])
    }

    @Test("names that are too long or empty are refused")
    func names() throws {
        let file = try fresh()
        #expect(throws: Errno.invalidArgument) { try file.add("") }
        #expect(throws: Errno.invalidArgument) { try file.add(String(repeating: "n", count: 64)) }
        _ = try file.add(String(repeating: "n", count: 63))
        #expect(try again().entries.first?.name.count == 63)
    }

    @Test("what is no such file, of a newer version, or from another boot, is refused and says which")
    func refused() throws {
        _ = try fresh()
        #expect(throws: RecoveryFile.Refusal.otherBoot) {
            try RecoveryFile(File.open(path, .readWrite), boot: "00000000-0000-0000-0000-000000000000")
        }
        try poke(8, [9, 0, 0, 0])
        #expect(throws: RecoveryFile.Refusal.newer(9)) { try again() }
        try poke(8, [1, 0, 0, 0])
        _ = try again()
        try poke(12, [255, 255, 255, 255])
        #expect(throws: RecoveryFile.Refusal.unusable) { try again() }
        try poke(0, Array("garbage!".utf8))
        #expect(throws: RecoveryFile.Refusal.unusable) { try again() }
        let file = try File.open(path, .readWrite)
        try File.truncate(file.raw, to: 100)
        #expect(throws: RecoveryFile.Refusal.unusable) { try again() }
    }

    @Test("any bytes in it are read without harm")
    func garbage() throws {
        let file = try fresh()
        for number in 0..<4 { write(file, try file.add("app\(number)"), "record \(number)") }
        let size = try File.status(path).size
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<500 {
            let offset = UInt64.random(in: 0..<size, using: &generator)
            try poke(offset, (0..<4).map { _ in UInt8.random(in: 0...255, using: &generator) })
            if let next = try? again() { _ = texts(next) }
        }
    }
}
