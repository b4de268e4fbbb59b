// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import Testing

@testable import Output

@Suite struct LogReaderTests {
    private let folder = Folder()

    @Test("the last lines are read across rotated files, with what they were asked to contain")
    func lastLines() throws {
        let rig = try Rig(folder, limits: LogLimits(maxSize: 500, maxFiles: 5), loop: EventLoop())
        for number in 0..<60 { try rig.write("line \(number)\n") }
        let reader = LogReader(path: rig.log.path)
        #expect(reader.read(LogQuery(count: 30)).lines.map(\.text) == (30..<60).map { "line \($0)" })
        #expect(rig.capture.lastLines(2).map(\.text) == ["line 58", "line 59"])
        #expect(reader.read(LogQuery(count: 2, grep: "e 4")).lines.map(\.text) == ["line 48", "line 49"])
        #expect(reader.read(LogQuery(count: 0)).lines.isEmpty)
        #expect(reader.read(LogQuery(since: Clock.realtimeMicroseconds() + 1_000_000)).lines.isEmpty)
        #expect(reader.read(LogQuery(since: 0)).lines.count >= 60)
        #expect(LogReader(path: folder.path + "/none").read(LogQuery(count: 5)).lines.isEmpty)
    }

    @Test("an app that has not written anything has no last lines, and looking for them keeps no log in memory")
    func noLastLines() throws {
        let rig = try Rig(folder, loop: EventLoop())
        rig.capture.endLine()
        #expect(rig.capture.lastLines(5) == [] && rig.capture.log == nil)
        try rig.write("one\n")
        #expect(rig.capture.lastLines(5).map(\.text) == ["one"])
        // Nothing was read in this run, but there is a log of an earlier supervisor.
        let other = try Rig(folder, "other", loop: EventLoop())
        try File.write(other.log.path, "of an earlier supervisor")
        other.capture.endLine()
        #expect(other.capture.lastLines(5).map(\.text) == ["of an earlier supervisor"])
    }

    @Test("of lines that have too many bytes together the newest are read, at least one")
    func bytes() throws {
        let rig = try Rig(folder, limits: LogLimits(maxSize: 500, maxFiles: 5), loop: EventLoop())
        for number in 10..<40 { try rig.write("line \(number)\n") }
        let reader = LogReader(path: rig.log.path)
        // A time stamp and a blank have 25 bytes.
        for (bytes, count) in [(1, 1), (63, 1), (64, 2), (32 * 20, 20), (1 << 20, 30)] {
            var query = LogQuery(count: 100)
            query.bytes = bytes
            var search = reader.search(query)
            reader.lookBack(&search, limit: .max)
            let page = reader.follow(from: search.start, query, to: search, limit: .max)
            #expect(page.lines.map(\.text) == ((40 - count)..<40).map { "line \($0)" }, "\(bytes)")
            #expect(search.isCut == (count < 30), "\(bytes)")
        }
    }

    @Test("a text is found where it stands, and repeats in it and in the lines cost no more than others")
    func search() {
        let texts = ["", "a", "ab", "aab", "abab", "aba", "b", "abaabab", "ä", "a\u{301}"]
        for text in texts {
            let search = TextSearch(text)
            for line in texts + ["aabaab", "abaababab", "xä", "aaaa", "ba\u{301}b"] {
                let bytes = Array(line.utf8)
                let isThere = (0...bytes.count).contains { bytes[$0...].starts(with: text.utf8) }
                #expect(search.isFound(in: line) == isThere, "\(text) in \(line)")
            }
        }
        // By comparing each byte with each it would be minutes.
        let search = TextSearch(String(repeating: "a", count: 8000) + "b")
        let line = String(repeating: "a", count: 16_000)
        for _ in 0..<100 { #expect(!search.isFound(in: line)) }
        #expect(search.isFound(in: line + "b"))
        #expect(!TextSearch(String(repeating: "a", count: 1 << 20)).isFound(in: line))
    }

    @Test("since a time means from that line on")
    func since() throws {
        let stamps = (0..<5).map { TimeStamp.string(microseconds: 1_769_860_800_000_000 + Int64($0) * 1_000_000) }
        try stamps.map { "\($0) at \($0)\n" }.joined().write(
            toFile: folder.path + "/app.log",
            atomically: false,
            encoding: .utf8
        )
        let page = LogReader(path: folder.path + "/app.log").read(LogQuery(since: 1_769_860_803_000_000))
        #expect(page.lines.map(\.text) == ["at \(stamps[3])", "at \(stamps[4])"])
        #expect(page.lines.first?.description == "\(stamps[3]) at \(stamps[3])")
    }

    @Test("following gives each line once, through every rotation")
    func follow() throws {
        let loop = try EventLoop()
        let rig = try Rig(folder, limits: LogLimits(maxSize: 700, maxFiles: 8), loop: loop)
        try rig.write("before\n")
        let reader = LogReader(path: rig.log.path)
        var next = reader.read(LogQuery(count: 0)).next
        var seen: [String] = []
        let before = rig.arrivals
        for number in 0..<100 {
            try rig.write("line \(number)\npart")
            try rig.write("ial \(number)\n")
            if number % 7 == 0 {
                let page = reader.follow(from: next)
                seen += page.lines.map(\.text)
                next = page.next
            }
        }
        seen += reader.follow(from: next).lines.map(\.text)
        #expect(seen == (0..<100).flatMap { ["line \($0)", "partial \($0)"] })
        #expect(rig.arrivals == before + 200, "those who follow are told of each batch")
    }

    @Test("a page is bounded and says that there is more; lines without end come in pieces")
    func bounded() throws {
        let rig = try Rig(folder, loop: EventLoop())
        try rig.write((0..<3_000).map { "line \($0)\n" }.joined())
        let reader = LogReader(path: rig.log.path)
        var page = reader.follow(from: LogPosition(inode: 0, offset: 0), limit: 10_000)
        var count = page.lines.count
        #expect(page.more && count < 3_000)
        while page.more {
            page = reader.follow(from: page.next, limit: 10_000)
            count += page.lines.count
        }
        #expect(count == 3_000)
        let endless = [UInt8](repeating: 0x61, count: 300_000) + [0x0a]
        for start in stride(from: 0, to: endless.count, by: 30_000) {
            try rig.write(String(decoding: endless[start..<min(start + 30_000, endless.count)], as: UTF8.self))
        }
        let pieces = reader.follow(from: page.next)
        #expect(
            pieces.lines.map(\.text.utf8.count).reduce(0, +) == 300_000 + TimeStamp.length + 1 - TimeStamp.length - 1
        )
        #expect(rig.capture.lastLines(3).allSatisfy { $0.text.utf8.count < 200_000 })
    }
}

@Suite("What is looked for in a log") struct LogSearchTests {
    private let folder = Folder()

    /// All that a query asks for, in steps of so many bytes.
    private func all(
        _ query: LogQuery,
        _ reader: LogReader,
        step: Int,
        between: () throws -> Void = {}
    ) throws -> [String] {
        var search = reader.search(query)
        var steps = 0
        while !search.isDone {
            reader.lookBack(&search, limit: step)
            steps += 1
            try between()
        }
        var lines: [String] = []
        var position = search.start
        while true {
            let page = reader.follow(from: position, query, to: search, limit: step)
            lines += page.lines.map(\.text)
            position = page.next
            try between()
            guard page.more else { break }
            steps += 1
        }
        let isAtEnd = position.inode == search.end.inode && position.offset == search.end.offset
        #expect(isAtEnd, "it ends where the next ones begin")
        #expect(steps > 1 || lines.count < 3, "in several steps")
        return lines
    }

    @Test("step by step it is the same as at once, through rotated files, whatever is asked for")
    func steps() throws {
        let rig = try Rig(folder, limits: LogLimits(maxSize: 5_000, maxFiles: 50), loop: EventLoop())
        for number in 0..<3_000 { try rig.write("\(number % 7 == 0 ? "seven" : "line") \(number)\n") }
        for _ in 0..<10 { try rig.write(String(repeating: "x", count: 20_000)) }
        try rig.write("\nlast\nopen")
        let reader = LogReader(path: rig.log.path)
        let middle = try #require(reader.read(LogQuery(count: 1_500)).lines.first?.time)
        let queries = [
            LogQuery(), LogQuery(count: 0), LogQuery(count: 1), LogQuery(count: 2), LogQuery(count: 700),
            LogQuery(count: 1_000_000), LogQuery(since: middle), LogQuery(count: 100, grep: "seven"),
            LogQuery(grep: "seven"), LogQuery(grep: "nobody"), LogQuery(count: 50, since: middle, grep: "seven"),
        ]
        for query in queries {
            for onlyWhole in [false, true] {
                var query = query
                query.onlyWhole = onlyWhole
                let page = reader.read(query)
                let step = query.count.map { $0 < 3 ? 50_000 : 3_000 } ?? 3_000
                let lines = try all(query, reader, step: step)
                let isSame = lines == page.lines.map(\.text)
                #expect(isSame, "\(query): \(lines.count) lines, \(page.lines.count) at once")
            }
        }
        let every = try all(LogQuery(), reader, step: 10_000)
        #expect(every.prefix(3_000) == (0..<3_000).map { "\($0 % 7 == 0 ? "seven" : "line") \($0)" }[...])
        #expect(every.suffix(2) == ["last", "open"])
    }

    @Test("what is written meanwhile is not among it, and files that are rotated are found again")
    func meanwhile() throws {
        let rig = try Rig(folder, limits: LogLimits(maxSize: 5_000, maxFiles: 900), loop: EventLoop())
        for number in 0..<2_000 { try rig.write("line \(number)\n") }
        let reader = LogReader(path: rig.log.path)
        let lines = try all(LogQuery(), reader, step: 4_000) {
            try rig.write((0..<100).map { "later \($0)\n" }.joined())
        }
        #expect(lines == (0..<2_000).map { "line \($0)" })
    }

    private func write(_ lines: some Sequence<String>, _ name: String = "app.log") throws {
        let text = lines.enumerated().map { index, line in
            TimeStamp.string(microseconds: 1_769_860_800_000_000 + Int64(index) * 1_000) + " " + line + "\n"
        }
        try text.joined().write(toFile: folder.path + "/" + name, atomically: false, encoding: .utf8)
    }

    @Test("a step looks at about as much as it may, however long the lines are", arguments: [10, 1_000, 100_000])
    func limit(length: Int) throws {
        let line = String(repeating: "x", count: length)
        try write(repeatElement(line, count: 2_000_000 / length))
        let reader = LogReader(path: folder.path + "/app.log")
        var search = reader.search(LogQuery(count: 1_000_000))
        let end = search.start.offset
        reader.lookBack(&search, limit: 300_000)
        #expect(!search.isDone && (200_000...600_000).contains(end - search.start.offset))
    }

    @Test("what is before the first line that is accepted is not read again")
    func start() throws {
        try write((0..<5_000).map { "line \($0)" })
        let reader = LogReader(path: folder.path + "/app.log")
        func start(_ grep: String) -> LogSearch {
            var search = reader.search(LogQuery(grep: grep))
            while !search.isDone { reader.lookBack(&search, limit: 10_000) }
            return search
        }
        let nobody = start("nobody")
        #expect(nobody.start == nobody.end)
        let search = start("line 77")
        let line = StampedLine(parsing: "\(TimeStamp.string(microseconds: search.start.time)) line 77".utf8)
        #expect(reader.follow(from: search.start, limit: 10_000).lines.first == line)
        #expect(reader.follow(from: search.start, search.query, to: search).lines.count == 11)
    }

    @Test("a line of 100,000 bytes is one, backwards and forwards")
    func longLine() throws {
        let long = String(repeating: "long", count: 25_000)
        try write(["one", long, "two", long])
        let reader = LogReader(path: folder.path + "/app.log")
        #expect(reader.read(LogQuery(count: 3)).lines.map(\.text.utf8.count) == [100_000, 3, 100_000])
        #expect(reader.follow(from: LogPosition()).lines.map(\.text.utf8.count) == [3, 100_000, 3, 100_000])
    }

    @Test("who has had pieces of a line without end does not get them again")
    func openPieces() throws {
        let rig = try Rig(folder, loop: EventLoop())
        for _ in 0..<15 { try rig.write(String(repeating: "x", count: 20_000)) }
        let reader = LogReader(path: rig.log.path)
        let place = reader.follow(from: LogPosition()).next
        #expect(place.offset > 200_000)
        let search = reader.search(LogQuery(onlyWhole: true))
        let page = reader.follow(from: place, to: search)
        #expect(page.lines.isEmpty && page.next.offset == place.offset)
    }

    @Test("when the file of a place was removed, no older line comes, however small the pages are")
    func removed() throws {
        try write((0..<500).map { "line \($0)" })
        let reader = LogReader(path: folder.path + "/app.log")
        let place = reader.follow(from: LogPosition(), limit: 8_000).next
        let all = reader.read(LogQuery()).lines
        let last = try #require(all.last { ($0.time ?? 0) <= place.time })
        // Its lines are another file's now.
        try write(all.map(\.text), "app.log.1")
        try File.remove(folder.path + "/app.log")
        let rig = try Rig(folder, loop: EventLoop())
        try rig.write("later\n")
        var position = place
        var lines: [StampedLine] = []
        repeat {
            let page = reader.follow(from: position, limit: 500)
            lines += page.lines
            position = page.next
            if !page.more { break }
        } while lines.count < 1_000
        #expect(lines.first == last && lines.last?.text == "later", "\(lines.count) of \(all.count)")
        #expect(lines.dropLast() == all.suffix(lines.count - 1))
    }

    @Test("what was rotated away meanwhile is missing, and nothing else")
    func rotatedAway() throws {
        let rig = try Rig(folder, limits: LogLimits(maxSize: 5_000, maxFiles: 4), loop: EventLoop())
        for number in 0..<1_000 { try rig.write("line \(number)\n") }
        let reader = LogReader(path: rig.log.path)
        let there = reader.read(LogQuery()).lines.map(\.text)
        var isFirst = true
        let lines = try all(LogQuery(), reader, step: 4_000) {
            guard isFirst else { return }
            isFirst = false
            // Two files go.
            for _ in 0..<2 { try rig.write((0..<400).map { "later \($0)\n" }.joined()) }
        }
        #expect(lines.count > 100 && lines.count < there.count)
        #expect(lines == Array(there.suffix(lines.count)))
    }
}

@Suite("Places in a log") struct LogPositionTests {
    private let folder = Folder()

    @Test("a place survives as text, and nothing else is taken for one")
    func text() {
        let place = LogPosition(inode: .max, offset: 7, began: 1_769_860_800_000_000, time: 3)
        #expect(LogPosition(text: place.text) == place)
        for text in [
            "", "1:2:3", "1:2:3:4:5", "a:2:3:4", "-1:2:3:4", "1:2:-3:4", "1:2::4", "99999999999999999999:1:1:1",
        ] {
            #expect(LogPosition(text: text) == nil, "\(text)")
        }
    }

    @Test("who follows gets no line that has no end yet, and gets it whole when it has one")
    func openLine() throws {
        let rig = try Rig(folder, loop: EventLoop())
        try rig.write("one\ntw")
        let reader = LogReader(path: rig.log.path)
        #expect(reader.read(LogQuery()).lines.map(\.text) == ["one", "tw"])
        let page = reader.read(LogQuery(onlyWhole: true))
        #expect(page.lines.map(\.text) == ["one"])
        try rig.write("o\n")
        let place = try #require(LogPosition(text: page.next.text))
        #expect(reader.follow(from: place).lines.map(\.text) == ["two"])
    }

    @Test("a place before the first line of all goes on with it")
    func beforeAll() throws {
        let reader = LogReader(path: folder.path + "/app.log")
        let place = reader.read(LogQuery(onlyWhole: true)).next
        #expect(reader.follow(from: place).lines.isEmpty && reader.follow(from: place).next == place)
        let rig = try Rig(folder, limits: LogLimits(maxSize: 300, maxFiles: 9), loop: EventLoop())
        for number in 0..<30 { try rig.write("line \(number)\n") }
        #expect(reader.follow(from: place).lines.map(\.text) == (0..<30).map { "line \($0)" })
    }

    @Test("when its file was rotated away, what is left of the later ones comes, each line once")
    func rotatedAway() throws {
        let rig = try Rig(folder, limits: LogLimits(maxSize: 300, maxFiles: 2), loop: EventLoop())
        try rig.write("first\n")
        let reader = LogReader(path: rig.log.path)
        var place = reader.read(LogQuery(onlyWhole: true)).next
        for number in 0..<60 { try rig.write("line \(number)\n") }
        let there = reader.read(LogQuery()).lines.map(\.text)
        #expect(there.count < 50 && there.last == "line 59")
        let page = reader.follow(from: place)
        #expect(page.lines.map(\.text) == there)
        place = page.next
        try rig.write("later\n")
        #expect(reader.follow(from: place).lines.map(\.text) == ["later"])
    }

    @Test("when somebody removed the current file, no line of the older ones comes again")
    func removed() throws {
        let path = folder.path + "/app.log"
        func line(_ second: Int64) -> String {
            TimeStamp.string(microseconds: 1_769_860_800_000_000 + second * 1_000_000) + " at \(second)\n"
        }
        func write(_ seconds: Range<Int64>, _ name: String) throws {
            try seconds.map(line).joined().write(toFile: name, atomically: false, encoding: .utf8)
        }
        try write(0..<5, path + ".1")
        try write(5..<9, path)
        let reader = LogReader(path: path)
        let place = reader.follow(from: LogPosition()).next
        #expect(place.time == 1_769_860_808_000_000)
        try File.remove(path)
        #expect(reader.follow(from: place).next == place)
        try write(9..<12, path)
        let page = reader.follow(from: place)
        #expect(page.lines.map(\.text) == ["at 9", "at 10", "at 11"])
    }

    @Test("of the lines of its own millisecond none is missing, in however many files they are")
    func sameTime() throws {
        let path = folder.path + "/app.log"
        let time: Int64 = 1_769_860_800_000_000
        let stamp = TimeStamp.string(microseconds: time)
        try "\(TimeStamp.string(microseconds: time - 1_000)) a\n\(stamp) b\n".write(
            toFile: path + ".2",
            atomically: false,
            encoding: .utf8
        )
        try "\(stamp) c\n".write(toFile: path + ".1", atomically: false, encoding: .utf8)
        try "\(stamp) d\n".write(toFile: path, atomically: false, encoding: .utf8)
        let page = LogReader(path: path).follow(from: LogPosition(inode: 1, offset: 7, began: 5, time: time))
        #expect(page.lines.map(\.text) == ["b", "c", "d"])
    }

    @Test("a later file with the same inode is not taken for the one of the place")
    func sameInode() throws {
        let path = folder.path + "/app.log"
        let stamps = (0..<3).map { TimeStamp.string(microseconds: 1_769_860_800_000_000 + $0 * 1_000_000) }
        try "\(stamps[0]) a\n\(stamps[0]) b\n".write(toFile: path, atomically: false, encoding: .utf8)
        let reader = LogReader(path: path)
        let place = reader.follow(from: LogPosition()).next
        // Written in place: the inode stays.
        try "\(stamps[1]) c\n\(stamps[2]) d\n\(stamps[2]) e\n".write(toFile: path, atomically: false, encoding: .utf8)
        #expect(reader.follow(from: place).lines.map(\.text) == ["c", "d", "e"])
    }
}
