// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// One line of a log.
public struct StampedLine: Hashable, Sendable {
    /// When the line was written, microseconds since 1970; nil if the line has no time stamp.
    public var time: Int64?
    /// The line without time stamp and newline; invalid UTF-8 is replaced.
    public var text: String

    init(parsing bytes: some Collection<UInt8>) {
        let time = TimeStamp.parse(bytes)
        let rest = bytes.dropFirst(time == nil ? 0 : TimeStamp.length)
        self.time = time
        text = String(wire: time != nil && rest.first == 0x20 ? rest.dropFirst() : rest)
    }

    /// The line as it is in the file, with its time stamp.
    public var description: String {
        time.map { TimeStamp.string(microseconds: $0) + " " + text } ?? text
    }
}

/// Selects lines of a log. All conditions must be met.
public struct LogQuery: Hashable, Sendable {
    /// The number of last lines to select; nil for all, up to `LogReader.mostLines`.
    public var count: Int?
    /// Select only lines written at or after this time, microseconds since 1970.
    public var since: Int64?
    /// Select only lines that contain this text.
    public var grep: String? { didSet { search = grep.map(TextSearch.init) } }
    /// Whether to leave out an unfinished last line. A reader that continues at `LogPage.next` gets that line once it
    /// is complete.
    public var onlyWhole: Bool
    /// The maximum number of bytes of the selected lines as they are in the file; nil for any. The newest lines are
    /// selected.
    public var bytes: Int?
    private var search: TextSearch?

    /// Creates a query.
    public init(count: Int? = nil, since: Int64? = nil, grep: String? = nil, onlyWhole: Bool = false) {
        self.count = count
        self.since = since
        self.grep = grep
        self.onlyWhole = onlyWhole
        search = grep.map(TextSearch.init)
    }

    /// Whether the query has no condition except `count`.
    fileprivate var acceptsAll: Bool { since == nil && (grep ?? "").isEmpty }

    func accepts(_ line: StampedLine) -> Bool {
        if let since, let time = line.time, time < since { return false }
        return search?.isFound(in: line.text) ?? true
    }
}

/// Searches for a text with the algorithm of Knuth, Morris and Pratt. Apps write the lines and clients choose the
/// text: with a naive search they could block the event loop for a time that is quadratic in the length.
struct TextSearch: Hashable, Sendable {
    private let text: [UInt8]
    /// For each prefix of the text, the length of its longest proper prefix that is also its suffix.
    private let borders: [Int32]

    /// The maximum length of a text, in bytes; longer texts are never found.
    static let longest = 64 << 10

    init(_ text: String) {
        let bytes = Array(text.utf8)
        self.text = bytes
        guard bytes.count <= Self.longest else {
            borders = []
            return
        }
        var borders = [Int32](repeating: 0, count: bytes.count)
        var length = 0
        for index in bytes.indices.dropFirst() {
            while length > 0, bytes[index] != bytes[length] { length = Int(borders[length - 1]) }
            if bytes[index] == bytes[length] { length += 1 }
            borders[index] = Int32(length)
        }
        self.borders = borders
    }

    func isFound(in line: String) -> Bool {
        guard !text.isEmpty else { return true }
        guard line.utf8.count >= text.count, !borders.isEmpty else { return false }
        var line = line
        return line.withUTF8 { bytes in
            var length = 0
            for byte in bytes {
                while length > 0, byte != text[length] { length = Int(borders[length - 1]) }
                if byte == text[length] { length += 1 }
                if length == text.count { return true }
            }
            return false
        }
    }
}

/// Lines of a log, and the position at which to continue.
public struct LogPage: Sendable {
    /// The lines, oldest first.
    public var lines: [StampedLine]
    /// The position for the next call of `follow`.
    public var next: LogPosition
    /// Whether more lines are left to read: call again with `next`.
    public var more: Bool
}

/// The search for the lines that a query selects. It goes backwards from the end of the log, a limited number of
/// bytes at a time, since matching lines may be far from the end.
public struct LogSearch: Sendable {
    /// The query.
    public let query: LogQuery
    /// The end of the last complete line at the time when the search began.
    public let end: LogPosition
    /// The offset in the current file up to which lines are returned. With `onlyWhole`, this is the offset of `end`;
    /// otherwise it is the file's size, so that an unfinished last line is returned too.
    let size: UInt64
    /// The position of the oldest matching line found so far; the end if none was found yet.
    public fileprivate(set) var start: LogPosition
    /// The position of the oldest line that was inspected.
    fileprivate var reached: LogPosition
    /// Whether the search has ended: enough lines were found, or no older line can match.
    public fileprivate(set) var isDone: Bool
    /// Whether an older line matches too, and was left out because of ``LogQuery/bytes``.
    public fileprivate(set) var isCut = false
    /// How many matching lines were found, from `start` on.
    fileprivate var found = 0
    /// How many bytes these lines have.
    fileprivate var foundBytes = 0
}

/// Reads logs including their rotated files, from the end and only as far back as needed.
public struct LogReader {
    /// The maximum length in bytes of a text that can be searched for.
    public static let longestText = TextSearch.longest
    /// The maximum number of lines in one answer.
    public static let mostLines = 100_000
    /// The maximum number of bytes that are read for one answer, so that a query cannot block torpord for long.
    public static let mostBytes = 32 << 20
    /// The length in bytes above which a line is returned in pieces.
    static let longestLine = 128 << 10
    private static let block = 64 << 10
    private static let mostFiles = 1_001

    private let path: String

    /// Creates a reader for the log whose current file is at `path`.
    public init(path: String) {
        self.path = path
    }

    /// The last lines that match the query, as many as fit into one answer, including an unfinished last line.
    public func read(_ query: LogQuery) -> LogPage {
        var query = query
        query.count = min(query.count ?? LogReader.mostLines, LogReader.mostLines)
        var search = search(query)
        // Most apps have never written anything.
        if search.isDone, search.end.inode == 0 { return LogPage(lines: [], next: search.start, more: false) }
        lookBack(&search, limit: LogReader.mostBytes)
        return follow(from: search.start, query, to: search, limit: .max)
    }

    /// Starts the search for the lines that a query selects.
    public func search(_ query: LogQuery) -> LogSearch {
        var end = LogPosition(time: Clock.realtimeMicroseconds() / 1000 * 1000)
        guard let (file, status) = open(0) else {
            return LogSearch(query: query, end: end, size: 0, start: end, reached: end, isDone: true)
        }
        end.inode = status.inode
        end.offset = endOfLines(file, status.size)
        end.began = began(file)
        let size = query.onlyWhole ? end.offset : status.size
        var start = end
        start.offset = size
        let isDone = query.count.map { $0 <= 0 } ?? false
        return LogSearch(query: query, end: end, size: size, start: start, reached: start, isDone: isDone)
    }

    /// Continues the search backwards for about `limit` bytes.
    public func lookBack(_ search: inout LogSearch, limit: Int) {
        guard !search.isDone else { return }
        // If the file of `reached` was removed, no older lines exist, and the search ends here.
        search.isDone = true
        guard var number = number(of: search.reached) else { return }
        search.isDone = false
        let query = search.query
        let wanted = query.count ?? .max
        var rest = limit
        while let (file, status) = open(number) {
            let began = began(file)
            if !search.reached.isIn(status, began) {
                search.reached.inode = status.inode
                search.reached.offset = status.size
                search.reached.began = began
            }
            backward(file, search.reached.offset, &rest) { bytes, offset in
                let time = TimeStamp.parse(bytes)
                if let since = query.since, let time, time < since {
                    search.isDone = true
                } else {
                    search.reached.offset = offset
                    if let time { search.reached.time = time }
                    if query.acceptsAll || query.accepts(StampedLine(parsing: bytes)) {
                        search.foundBytes += bytes.count
                        if let most = query.bytes, search.foundBytes > most, search.found > 0 {
                            search.isDone = true
                            search.isCut = true
                            return false
                        }
                        search.start = search.reached
                        search.found += 1
                        search.isDone = search.found >= wanted
                    }
                }
                return !search.isDone
            }
            if search.isDone || rest <= 0 { return }
            number += 1
        }
        search.isDone = true
    }

    /// Returns the complete lines after a position, about `limit` bytes of them, in the order in which they were
    /// written.
    ///
    /// - Parameter search: if set, stop where the log ended when this search began.
    public func follow(
        from position: LogPosition,
        _ query: LogQuery = LogQuery(),
        to search: LogSearch? = nil,
        limit: Int = 1 << 20
    ) -> LogPage {
        var page = LogPage(lines: [], next: position, more: false)
        // The file of the position may have been renamed or removed. If there is no current file either, the next
        // line that the app writes will create it.
        guard let there = number(of: position).map({ ($0, position) }) ?? since(position.time) else { return page }
        var number = there.0
        page.next = there.1
        var rest = limit
        while rest > 0, let (file, status) = open(number) {
            let began = began(file)
            let isLast = search?.end.isIn(status, began) ?? false
            let size = isLast ? min(status.size, search?.size ?? 0) : status.size
            var offset = page.next.inode == status.inode ? page.next.offset : 0
            if offset > status.size { offset = 0 }
            offset = forward(file, offset, size, finished: isLast || number > 0, &rest) { line in
                if let time = line.time { page.next.time = time }
                if query.accepts(line) { page.lines.append(line) }
            }
            page.next.inode = status.inode
            page.next.offset = offset
            page.next.began = began
            if offset < size, rest <= 0 {
                page.more = true
                return page
            }
            if isLast, let search {
                // The next call begins at the end of the last complete line, so that an unfinished line is returned
                // again once it is complete. Pieces of a very long line are not returned again.
                if !search.query.onlyWhole { page.next.offset = search.end.offset }
                return page
            }
            if number == 0 { return page }
            number -= 1
        }
        page.more = rest <= 0
        return page
    }

    // MARK: -

    /// The number of the file that contains a position: 0 is the current file, 1 the newest rotated one. nil if the
    /// file was removed.
    private func number(of position: LogPosition) -> Int? {
        var number = 0
        while number < LogReader.mostFiles, let (file, status) = open(number) {
            if position.isIn(status, began(file)) { return number }
            number += 1
        }
        return nil
    }

    /// The position of the first line written at or after a time, and the number of its file; nil if the log has no
    /// file.
    private func since(_ time: Int64) -> (Int, LogPosition)? {
        var oldest: (Int, LogPosition)?
        var number = 0
        while number < LogReader.mostFiles, let (file, status) = open(number) {
            let began = began(file)
            var place = LogPosition(inode: status.inode, offset: 0, began: began, time: time)
            oldest = (number, place)
            if began > 0, began < time {
                place.offset = status.size
                var rest = Int.max
                backward(file, status.size, &rest) { bytes, offset in
                    if let written = TimeStamp.parse(bytes), written < time { return false }
                    place.offset = offset
                    return true
                }
                return (number, place)
            }
            number += 1
        }
        return oldest
    }

    private func open(_ number: Int) -> (Descriptor, FileStatus)? {
        let name = number == 0 ? path : "\(path).\(number)"
        guard let file = try? File.open(name, [.read, .noFollow, .nonBlocking]),
            let status = try? File.status(descriptor: file.raw), status.kind == .regular
        else { return nil }
        return (file, status)
    }

    /// The time of the file's first line; 0 if the file is empty.
    private func began(_ file: Descriptor) -> Int64 {
        TimeStamp.parse(bytes(file, 0, TimeStamp.length)) ?? 0
    }

    private func bytes(_ file: Descriptor, _ offset: UInt64, _ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, got in
            got = (try? File.read(file.raw, at: offset, into: UnsafeMutableRawBufferPointer(buffer))) ?? 0
        }
    }

    /// The offset of the end of the last complete line.
    private func endOfLines(_ file: Descriptor, _ size: UInt64) -> UInt64 {
        var end = size
        while end > 0 {
            let start = end - min(end, UInt64(LogReader.block))
            let part = bytes(file, start, Int(end - start))
            if let newline = part.withUnsafeBytes({ $0.lastNewline }) {
                return start + UInt64(newline) + 1
            }
            end = start
        }
        return 0
    }

    /// Visits lines backwards from `end`, each with its offset: about `rest` bytes of them, but at least one line.
    private func backward(
        _ file: Descriptor,
        _ end: UInt64,
        _ rest: inout Int,
        _ body: (ArraySlice<UInt8>, UInt64) -> Bool
    ) {
        var start = end
        // The end of a line whose beginning is in the block that is read next.
        var tail: [UInt8] = []
        var isAny = false
        while start > 0, rest > 0 || !isAny {
            let stop = start
            start -= min(start, UInt64(LogReader.block))
            var part = bytes(file, start, Int(stop - start))
            guard part.count == Int(stop - start) else { return }
            rest -= part.count
            if stop == end, part.last == UInt8(ascii: "\n") { part.removeLast() }
            part.append(contentsOf: tail)
            var lineEnd = part.count
            while let newline = part.withUnsafeBytes({
                UnsafeRawBufferPointer(rebasing: $0[..<lineEnd]).lastNewline
            }) {
                if !body(part[(newline + 1)..<lineEnd], start + UInt64(newline) + 1) { return }
                lineEnd = newline
                isAny = true
            }
            tail = Array(part[..<lineEnd])
            if start == 0 || tail.count > LogReader.longestLine {
                if !body(tail[...], start) { return }
                tail = []
                isAny = true
            }
        }
    }

    /// Visits lines forwards. Returns the offset after the last line that was visited.
    private func forward(
        _ file: Descriptor,
        _ from: UInt64,
        _ size: UInt64,
        finished: Bool,
        _ rest: inout Int,
        _ body: (StampedLine) -> Void
    ) -> UInt64 {
        var offset = from
        while offset < size, rest > 0 {
            var part = bytes(file, offset, Int(min(size - offset, UInt64(LogReader.block))))
            if part.withUnsafeBytes({ $0.firstNewline }) == nil {
                part = bytes(file, offset, Int(min(size - offset, UInt64(LogReader.longestLine))))
            }
            if part.isEmpty { return offset }
            var start = 0
            while let newline = part.withUnsafeBytes({
                UnsafeRawBufferPointer(rebasing: $0[start...]).firstNewline
            }) {
                body(StampedLine(parsing: part[start..<(start + newline)]))
                start += newline + 1
            }
            if start == 0 {
                // Visit a piece of a very long line, and the unfinished last line of a file to which nothing more is
                // written.
                guard part.count >= LogReader.longestLine || finished else { return offset }
                body(StampedLine(parsing: part))
                start = part.count
            }
            offset += UInt64(start)
            rest -= start
        }
        return offset
    }
}
