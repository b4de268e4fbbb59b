// SPDX-License-Identifier: Apache-2.0

import Testing
import TopView

@Suite("Text as cells of a terminal") struct DisplayTextTests {
    @Test("no control character is left, of C0, C1 or a separator of lines")
    func harmless() {
        for value in Array(0..<0x20) + Array(0x7f...0x9f) + [0x2028, 0x2029] {
            guard let scalar = Unicode.Scalar(UInt32(value)) else { continue }
            let pieces = DisplayText.pieces("a\(scalar)b")
            let text = pieces.map(\.text).joined()
            #expect(!text.unicodeScalars.contains { $0.value < 0x20 || (0x7f...0x9f).contains($0.value) }, "\(value)")
            #expect(pieces.count == 3)
        }
        #expect(DisplayText.pieces("\u{1b}[2J\u{9b}2J").map(\.text).joined() == "\u{fffd}[2J\u{fffd}2J")
    }

    @Test("what turns the direction or joins is left out, so that nothing seems to be what it is not")
    func steering() {
        #expect(DisplayText.pieces("a\u{202e}b\u{200d}c\u{2066}d\u{feff}e").map(\.text).joined() == "abcde")
        #expect(DisplayText.width("❤\u{fe0f}") == 1)
    }

    @Test("wide characters take two columns, combining ones none")
    func widths() {
        #expect(DisplayText.width("日本") == 4)
        #expect(DisplayText.width("e\u{301}") == 1)
        #expect(DisplayText.width("🚀x") == 3)
        #expect(DisplayText.pieces("e\u{301}").count == 1)
        // A pile of marks is cut.
        let zalgo = "a" + String(repeating: "\u{301}", count: 100)
        #expect((DisplayText.pieces(zalgo).first?.text.unicodeScalars.count ?? 0) <= 5)
        // Marks without a letter are nothing.
        #expect(DisplayText.width("\u{301}\u{301}") == 0)
    }

    @Test("ASCII only has nothing else, and our own signs have words")
    func ascii() {
        #expect(DisplayText.pieces("‘日’ … é", .ascii).map(\.text).joined() == "'?' ... ?")
    }

    @Test("text that does not fit ends with a sign, and never with half a character")
    func clipping() {
        var grid = StyledGrid(columns: 6, rows: 1)
        #expect(grid.put("abcdefgh", row: 0, column: 0) == 6)
        #expect(grid.text(ofRow: 0) == "abcde…")
        grid = StyledGrid(columns: 6, rows: 1)
        #expect(grid.put("日本語日本", row: 0, column: 0) <= 6)
        #expect(grid.text(ofRow: 0) == "日本…")
        grid = StyledGrid(columns: 6, rows: 1)
        grid.put("日本語", row: 0, column: 0)
        grid.put("x", row: 0, column: 1)
        #expect(grid.row(0).map(\.text) == [" ", "x", "本", "", "語", ""])
        // Outside there is nothing, and nothing falls.
        grid.put("x", row: 5, column: 0)
        grid.put("x", row: 0, column: -1)
        grid.put("x", row: 0, column: 99)
        grid.put("x", row: 0, column: 0, width: 0)
    }

    @Test("a sentence is cut at spaces")
    func wrapping() {
        let text = "the supervisor does not answer: start torpord, or name the socket of a running one"
        let lines = DisplayText.wrapped(text, to: 30)
        #expect(lines.allSatisfy { DisplayText.width($0) <= 30 })
        #expect(lines.map { $0.drop { $0 == " " } }.joined(separator: " ") == text)
        #expect(DisplayText.wrapped("short", to: 30) == ["short"])
    }

    @Test("amounts are short")
    func memory() {
        #expect(Amounts.memory(0) == "0B")
        #expect(Amounts.memory(999) == "999B")
        #expect(Amounts.memory(1000) == "1.0K")
        #expect(Amounts.memory(10 << 20) == "10M")
        #expect(Amounts.memory(1 << 40) == "1.0T")
        #expect(Amounts.duration(seconds: 192) == "3m12s")
        #expect(Amounts.age(seconds: 192) == "3m")
    }

    @Test("no amount, however odd, is wider than its column")
    func oddAmounts() {
        for bytes in [Int64.min, -1, 1023, 1024, 1 << 20, (1 << 20) - 1, (1 << 30) - 1, Int64.max] as [Int64] {
            #expect(Amounts.memory(bytes).count <= 5, "\(bytes)")
        }
        for seconds in [-1, 0, 0.9999, 9.96, 59.99, 3599, 86_399, 1e7, .infinity, .nan] as [Double] {
            #expect(Amounts.duration(seconds: seconds).count <= 6, "\(seconds)")
            #expect(Amounts.age(seconds: seconds).count <= 4, "\(seconds)")
            #expect(Amounts.percent(seconds).count <= 8)
        }
    }
}
