// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI

@testable import TopView

@Suite("The picture of torpor top") struct TopLayoutTests {
    @Test("the list shows each state with a sign and a word of its own")
    func states() {
        let grid = TopLayout.frame(Models.model())
        #expect(grid.line(of: "web")?.contains("● active") == true)
        #expect(grid.line(of: "player")?.contains("◐ inactive") == true)
        #expect(grid.line(of: "search")?.contains("○ background") == true)
        #expect(grid.line(of: "mail")?.contains("☾ suspended") == true)
        #expect(grid.line(of: "notes")?.contains("· not running") == true)
        #expect(grid.line(of: "thumbs")?.contains("✖ failed") == true)
        #expect(grid.line(of: "web")?.contains("61M") == true)
        for glyphs in [Glyphs.unicode, .ascii] {
            #expect(Set(ShownState.allCases.map(glyphs.sign)).count == ShownState.allCases.count)
            #expect(Set(ShownState.allCases.map { glyphs.lane($0) }).count == ShownState.allCases.count)
        }
    }

    @Test("what happened last to the selected app stands whole above the keys, where nothing else has to be said")
    func lastEvent() {
        var model = Models.model()
        let text = "was woken by a connection at 127.0.0.1:8000 after 2.51 ms"
        model.take(events: [Models.event(1, "mail", "wake", at: model.now, text: text)])
        #expect(TopLayout.frame(model).text.contains("mail: \(text)"))
        model.say("it failed", .error)
        #expect(!TopLayout.frame(model).text.contains("mail: \(text)"))
    }

    @Test("in ASCII there is nothing else")
    func ascii() {
        var model = Models.model([Models.app("caf\u{e9}"), Models.app("日本", "suspended")] + Models.fleet)
        model.characters = .ascii
        model.glyphs = .ascii
        for mode: Character in ["t", "t", "i", "l", "e", "?"] {
            #expect(TopLayout.frame(model).text.utf8.allSatisfy { $0 < 0x80 })
            model.press(.character(mode))
            if model.mode == .help { model.press(.escape) }
        }
        #expect(TopLayout.frame(model).text.utf8.allSatisfy { $0 < 0x80 })
    }

    @Test(
        "it fits every size: all rows are as wide as the screen, cell by cell",
        arguments: [(80, 24), (40, 10), (200, 50), (132, 43), (20, 5), (1, 1), (61, 17), (40, 12), (500, 4)]
    )
    func sizes(columns: Int, rows: Int) {
        var model = Models.model(columns: columns, rows: rows)
        model.memory = MemoryStatus(
            level: "critical",
            totalBytes: 8 << 30,
            availableBytes: 1 << 30,
            swapTotalBytes: 1 << 30,
            swapFreeBytes: 0
        )
        model.say(String(repeating: "a long sentence that says what to do ", count: 12), .error)
        for key: TopKey in [
            .character("t"), .character("q"), .enter, .character("l"), .character("e"), .character("?"), .escape,
            .character("q"), .character("/"),
        ] {
            let grid = TopLayout.frame(model)
            #expect(grid.cells.count == max(1, columns) * max(1, rows))
            for row in 0..<grid.rows {
                let cells = Array(grid.row(row))
                for (index, cell) in cells.enumerated() {
                    #expect(DisplayText.width(cell.text) == (cell.text.isEmpty ? 0 : cell.isWide ? 2 : 1))
                    #expect(!cell.isWide || (index + 1 < cells.count && cells[index + 1].text.isEmpty))
                }
            }
            _ = model.press(key)
        }
    }

    @Test("columns come by their worth: more of them on wider screens, name and state on all")
    func columns() {
        let model = Models.model()
        func chosen(_ width: Int) -> [ListColumn] { ListColumn.chosen(model, columns: width).map(\.column) }
        #expect(chosen(40) == [.name, .state, .memory, .processor])
        #expect(chosen(80).contains(.last))
        #expect(chosen(80).contains(.spark))
        #expect(chosen(120) == [.name, .state, .pid, .memory, .processor, .spark, .uptime, .restarts, .last])
        for width in 1...260 {
            let all = ListColumn.chosen(model, columns: width)
            #expect(all.first?.column == .name)
            if width > 28 { #expect(1 + all.reduce(0) { $0 + $1.width + 1 } <= width + 1, "\(width)") }
            #expect(all.allSatisfy { $0.width > 0 })
        }
    }

    @Test("names and texts from outside neither move columns nor bring control characters")
    func outside() throws {
        let name = "日本\u{1b}[31m\u{301}\u{202e}x"
        var model = Models.model([Models.app(name, "suspended"), Models.app("plain", "suspended")])
        model.now += 1_000_000
        model.take(events: [
            Models.event(1, name, "notice", at: model.now, text: "said \u{7}\u{9b}2J 日本\u{0}")
        ])
        let grid = TopLayout.frame(model)
        let columns = try (0..<grid.rows).filter { grid.text(ofRow: $0).contains("suspended") && $0 > 3 }.map { row in
            try #require(grid.row(row).firstIndex { $0.text == "☾" }) - row * grid.columns
        }
        #expect(columns.count == 2)
        #expect(Set(columns).count == 1)
        #expect(
            !grid.text.unicodeScalars.contains { $0 != "\n" && ($0.value < 0x20 || (0x7f...0x9f).contains($0.value)) }
        )
        for key: Character in ["i", "l", "e", "t"] {
            model.press(.character(key))
            model.details = ["a\u{1b}[2J", "\u{9b}"]
            model.take(log: [LogLine(at: nil, stream: nil, text: "\u{1b}]0;x\u{7}")], isFirst: true)
            let text = TopLayout.frame(model).text
            #expect(
                !text.unicodeScalars.contains { $0 != "\n" && ($0.value < 0x20 || (0x7f...0x9f).contains($0.value)) }
            )
        }
    }

    /// A PNG of that size, as far as anybody looks.
    private static func png(_ width: UInt32, _ height: UInt32) -> [UInt8] {
        func bytes(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }
        return [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]
            + bytes(width) + bytes(height)
    }

    @Test("what an app showed last is on its page, where there is room, and nothing of it moves the cursor")
    func snapshot() {
        func page(_ kind: SnapshotKind, _ data: [UInt8], columns: Int = 140) -> TopModel {
            var model = Models.model(columns: columns, rows: 40)
            model.press(.enter)
            model.details = ["mail"]
            let info = SnapshotInfo(kind: kind, bytes: Int64(data.count), at: model.now - 180_000_000, incarnation: 1)
            model.snapshot = model.subject.map { TopSnapshot(app: $0, info, data) }
            return model
        }
        let text = TopLayout.frame(page(.text, Array("one\n\u{1b}[2Jtwo".utf8))).text
        #expect(text.contains("showed 3m ago (text, 11B)") && text.contains("one") && text.contains("[2Jtwo"))
        #expect(!text.contains("\u{1b}"))
        #expect(!TopLayout.frame(page(.text, Array("one".utf8), columns: 100)).text.contains("showed"))
        // A picture is drawn where the terminal can, else told of.
        var model = page(.png, Self.png(1_600, 400))
        #expect(model.picturePlace == nil && TopLayout.frame(model).text.contains("a picture: torpor snapshot"))
        model.drawsPictures = true
        #expect(!TopLayout.frame(model).text.contains("a picture"))
        #expect(model.picturePlace == PicturePlace(row: 5, column: 98, rows: 5, columns: 40))
        model.snapshot = TopSnapshot(app: "another", model.snapshot!.info, Self.png(10, 10))
        #expect(model.picturePlace == nil)
        for data in [Self.png(0, 10), Self.png(10, 1 << 30), Array(Self.png(10, 10).prefix(20)), []] {
            model = page(.png, data)
            model.drawsPictures = true
            #expect(model.picturePlace == nil)
        }
    }

    @Test("the selected app is on the screen, wherever it is among a thousand")
    func scrolling() {
        let apps = (0..<1000).map { Models.app("app-\($0 + 1000)") }
        var model = Models.model(apps, columns: 80, rows: 24)
        for key: TopKey in [.pageDown, .pageDown, .end, .up, .home, .end, .pageUp] {
            model.press(key)
            #expect(TopLayout.frame(model).line(of: model.selected ?? "-") != nil)
        }
        model.size = .init(columns: 80, rows: 8)
        #expect(TopLayout.frame(model).line(of: model.selected ?? "-") != nil)
        #expect(TopLayout.frame(model).text.contains("▼"))
    }

    @Test("the header counts states and says how memory is, and who may only look")
    func header() {
        var model = Models.model(columns: 120)
        var memory = MemoryStatus(
            level: "warning",
            totalBytes: 8 << 30,
            availableBytes: 2 << 30,
            swapTotalBytes: 4 << 30,
            swapFreeBytes: 3 << 30
        )
        (memory.somePercent, memory.fullPercent) = (12.34, 1)
        model.memory = memory
        model.mayChange = false
        let lines = TopLayout.frame(model).lines
        #expect(lines[0].contains("read-only"))
        #expect(lines[1] == " ● 1 active  ◐ 1 inactive  ○ 1 background  ☾ 1 suspended  · 1 not running  ✖ 1 failed")
        #expect(lines[2].contains("2.0G of 8.0G available"))
        #expect(lines[2].contains("pressure warning 12.3 %, full 1.0 %"))
        #expect(lines[2].contains("swap 1.0G of 4.0G"))
    }

    @Test("a sparkline has the newest at its right, the most of each column, and gaps where nothing is known")
    func sparkline() {
        let glyphs = Glyphs.unicode
        #expect(glyphs.sparkline([nil, 0, 50, 100], columns: 4, top: 100) == " ▁▅█")
        #expect(glyphs.sparkline([0, 100, 0, 0], columns: 2, top: 100) == "█▁")
        #expect(glyphs.sparkline([1, 2], columns: 0, top: 1) == "")
        #expect(glyphs.sparkline([.infinity, -5], columns: 2, top: 1) == "█▁")
        #expect(DisplayText.width(glyphs.sparkline([1], columns: 7, top: 1)) == 7)
    }
}
