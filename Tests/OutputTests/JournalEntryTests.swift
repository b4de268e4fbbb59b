// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing

@testable import Output

@Suite("An entry of the journal")
struct JournalEntryTests {
    @Test("has its sentence and its priority first, each field a line")
    func plain() {
        var entry = JournalEntry(message: "web is active", priority: 6)
        entry.add("TORPOR_APP", "web")
        entry.add("EMPTY", "")
        entry.add("EQUALS", "a=b")
        #expect(
            String(decoding: entry.bytes, as: UTF8.self)
                == "MESSAGE=web is active\nPRIORITY=6\nTORPOR_APP=web\nEMPTY=\nEQUALS=a=b\n"
        )
    }

    @Test("has values with newlines by their size")
    func newlines() {
        var entry = JournalEntry(message: "two\nlines\n", priority: 3)
        entry.add("AFTER", "é\n")
        var expected = Array("MESSAGE\n".utf8) + [10, 0, 0, 0, 0, 0, 0, 0] + Array("two\nlines\n\n".utf8)
        expected += Array("PRIORITY=3\nAFTER\n".utf8) + [3, 0, 0, 0, 0, 0, 0, 0] + Array("é\n\n".utf8)
        #expect(entry.bytes == expected)
    }

    @Test("has the size of a long value in every byte of it")
    func long() {
        let text = "\n" + String(repeating: "x", count: 0x12345)
        let entry = JournalEntry(message: text, priority: 6)
        #expect(Array(entry.bytes[8..<16]) == [0x46, 0x23, 0x01, 0, 0, 0, 0, 0])
    }

    @Test(
        "leaves out what the journal would not take of a sender",
        arguments: ["", "_PID", "lower", "1ST", "A B", "A=B", "A\nB", "Ä", String(repeating: "A", count: 65)]
    )
    func names(_ name: String) {
        var entry = JournalEntry(message: "m", priority: 6)
        let before = entry.bytes
        entry.add(name, "value")
        #expect(entry.bytes == before)
        #expect(JournalEntry.isName("A_1") && JournalEntry.isName(String(repeating: "A", count: 64)))
    }
}
