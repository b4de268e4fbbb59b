// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Store

@Suite("Texts that are given to SQLite")
struct BoundTextTests {
    private func table() throws -> Database {
        let database = try Database(path: ":memory:", mode: .readWrite, vfs: nil)
        try database.run("CREATE TABLE texts (id INTEGER PRIMARY KEY, a TEXT, b TEXT, c TEXT)")
        return database
    }

    private func rows(_ database: Database) throws -> [[String?]] {
        let statement = try database.prepare("SELECT a, b, c FROM texts ORDER BY id")
        defer { statement.reset() }
        var rows: [[String?]] = []
        while try statement.step() { rows.append((0..<3).map { statement.text($0) }) }
        return rows
    }

    @Test("are stored as they are, whatever their length, and one that is missing is no empty one")
    func lengths() throws {
        let database = try table()
        let most = BoundTexts.capacity
        let lengths = [nil, 0, 1, 15, 16, most / 2, most - 1, most, most + 1, 3 * most]
        let insert = try database.prepare("INSERT INTO texts (a, b, c) VALUES (?, ?, ?)")
        var expected: [[String?]] = []
        for first in lengths {
            for second in lengths {
                let texts = [
                    first.map { String(repeating: "a", count: $0) },
                    second.map { "ü" + String(repeating: "b", count: $0) }, "end",
                ]
                for (index, text) in texts.enumerated() { insert.bind(Int32(index + 1), text) }
                try insert.run()
                expected.append(texts)
            }
        }
        #expect(try rows(database) == expected)
    }

    @Test("stay as they are while another statement runs, and are gone when their own is reset")
    func twoAtOnce() throws {
        let database = try table()
        let insert = try database.prepare("INSERT INTO texts (a, b) VALUES (?, ?)")
        let select = try database.prepare("SELECT ?1, ?2, ?3")
        for round in 0..<3 {
            select.bind(1, "first \(round)")
            insert.bind(1, "row \(round)")
            select.bind(2, "second")
            insert.bind(2, "other")
            try insert.run()
            select.bind(3, "third")
            #expect(try select.step())
            #expect((0..<3).map { select.text($0) } == ["first \(round)", "second", "third"])
            select.reset()
            #expect(try select.step())
            #expect((0..<3).map { select.text($0) } == [nil, nil, nil])
            select.reset()
        }
        #expect(try rows(database) == (0..<3).map { ["row \($0)", "other", nil] })
    }

    @Test("need no memory of their own, unless those of another statement have the place")
    func place() throws {
        let texts = BoundTexts()
        let (one, other) = (try #require(OpaquePointer(bitPattern: 8)), try #require(OpaquePointer(bitPattern: 16)))
        func copy(_ text: String, _ statement: OpaquePointer) -> String? {
            var text = text
            return text.withUTF8 { bytes in
                texts.copy(bytes, for: statement).map { copy in
                    String(decoding: UnsafeRawBufferPointer(start: copy, count: bytes.count), as: UTF8.self)
                }
            }
        }
        #expect(copy("a", one) == "a" && copy("", one)?.isEmpty == true)
        #expect(copy("b", other) == nil)
        texts.release(from: other)
        #expect(copy("b", other) == nil)
        #expect(copy(String(repeating: "c", count: BoundTexts.capacity), one) == nil)
        #expect(copy(String(repeating: "c", count: BoundTexts.capacity - 1), one) != nil)
        texts.release(from: one)
        #expect(copy("b", other) == "b")
    }
}
