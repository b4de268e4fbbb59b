import Linux

/// A line of a log.
public struct StampedLine: Hashable, Sendable {
    /// When it was written, microseconds since 1970; nil for a line without a stamp.
    public var time: Int64?
    /// What the app wrote, without stamp and newline; bytes that are no UTF-8 are replaced.
    public var text: String

    init(parsing bytes: some Collection<UInt8>) {
        let time = TimeStamp.parse(bytes)
        let rest = bytes.dropFirst(time == nil ? 0 : TimeStamp.length)
        self.time = time
        text = String(decoding: time != nil && rest.first == 0x20 ? rest.dropFirst() : rest, as: UTF8.self)
    }

    /// The line as it stands in the file.
    public var description: String {
        time.map { TimeStamp.string(microseconds: $0) + " " + text } ?? text
    }
}

/// Which lines are asked for.
public struct LogQuery: Hashable, Sendable {
    /// So many of the last; nil: all, within `LogReader.mostLines`.
    public var count: Int?
    /// Not older than this, microseconds since 1970.
    public var since: Int64?
    /// Only lines with this text in them.
    public var grep: String?
    /// Without a last line that has no end yet: for those who go on from `LogPage.next`, where it will come whole.
    public var onlyWhole: Bool

    /// A question.
    public init(count: Int? = nil, since: Int64? = nil, grep: String? = nil, onlyWhole: Bool = false) {
        self.count = count
        self.since = since
        self.grep = grep
        self.onlyWhole = onlyWhole
    }

    func accepts(_ line: StampedLine) -> Bool {
        if let since, let time = line.time, time < since { return false }
        if let grep, !grep.isEmpty, !line.text.utf8.contains(grep.utf8) { return false }
        return true
    }
}

extension String.UTF8View {
    fileprivate func contains(_ other: String.UTF8View) -> Bool {
        guard let first = other.first else { return true }
        var start = startIndex
        while let hit = self[start...].firstIndex(of: first) {
            if self[hit...].starts(with: other) { return true }
            start = index(after: hit)
        }
        return false
    }
}

/// Lines, and where the next ones begin.
public struct LogPage: Sendable {
    /// The lines, the oldest first.
    public var lines: [StampedLine]
    /// For `follow`.
    public var next: LogPosition
    /// There is more than was read: ask again from `next`.
    public var more: Bool
}

/// Reads logs back, the rotated files included, from the end and not further than is asked for.
public struct LogReader {
    /// The most lines that one answer holds.
    public static let mostLines = 100_000
    /// The most bytes that one answer is taken from, so that a question cannot hold the daemon up.
    public static let mostBytes = 32 << 20
    /// A line longer than this comes in pieces.
    static let longestLine = 64 << 10
    private static let block = 64 << 10

    private let path: String

    /// A reader of the log whose current file is at `path`.
    public init(path: String) {
        self.path = path
    }

    /// The last lines that the query accepts. A last line without its newline yet is among them.
    public func read(_ query: LogQuery) -> LogPage {
        let wanted = min(query.count ?? LogReader.mostLines, LogReader.mostLines)
        var newestFirst: [StampedLine] = []
        var next = LogPosition(time: Clock.realtimeMicroseconds() / 1000 * 1000)
        var budget = LogReader.mostBytes
        var number = 0
        while let (file, status) = open(number) {
            var size = status.size
            if number == 0 {
                next.inode = status.inode
                next.offset = endOfLines(file, status.size)
                next.began = began(file)
                if query.onlyWhole { size = next.offset }
            }
            number += 1
            var done = wanted <= 0
            if !done {
                backward(file, size, &budget) { line in
                    if let since = query.since, let time = line.time, time < since {
                        done = true
                    } else if query.accepts(line) {
                        newestFirst.append(line)
                        done = newestFirst.count >= wanted
                    }
                    return !done
                }
            }
            if done || budget <= 0 { break }
        }
        return LogPage(lines: newestFirst.reversed(), next: next, more: budget <= 0)
    }

    /// The complete lines after a position, about `limit` bytes of them; rotated files are finished first.
    public func follow(from position: LogPosition, _ query: LogQuery = LogQuery(), limit: Int = 1 << 20) -> LogPage {
        var page = LogPage(lines: [], next: position, more: false)
        // The file of the position may have another name by now.
        var number = 0
        while let (file, status) = open(number), !position.isIn(status, began(file)), number < 1_000 { number += 1 }
        var earliest: Int64?
        if open(number) == nil {
            // Not even a current file: the next line will make one.
            guard number > 0 else { return page }
            // It was removed: what all the others have that is not older than the last line.
            number -= 1
            earliest = position.time
            page.next.inode = 0
        }
        var rest = limit
        while rest > 0, let (file, status) = open(number) {
            var offset = page.next.inode == status.inode ? page.next.offset : 0
            if offset > status.size { offset = 0 }
            let before = rest
            offset = forward(file, offset, status.size, finished: number > 0, &rest) { line in
                if let earliest, let time = line.time, time < earliest { return }
                if let time = line.time { page.next.time = time }
                if query.accepts(line) { page.lines.append(line) }
            }
            page.next.inode = status.inode
            page.next.offset = offset
            page.next.began = began(file)
            if offset < status.size, rest <= 0 {
                page.more = true
                return page
            }
            if number == 0 { return page }
            number -= 1
            if rest == before, offset < status.size { continue }
        }
        page.more = rest <= 0
        return page
    }

    // MARK: -

    private func open(_ number: Int) -> (Descriptor, FileStatus)? {
        let name = number == 0 ? path : "\(path).\(number)"
        guard let file = try? File.open(name, [.read, .noFollow, .nonBlocking]),
            let status = try? File.status(descriptor: file.raw), status.kind == .regular
        else { return nil }
        return (file, status)
    }

    /// The time of its first line, 0 where there is none.
    private func began(_ file: Descriptor) -> Int64 {
        TimeStamp.parse(bytes(file, 0, TimeStamp.length)) ?? 0
    }

    private func bytes(_ file: Descriptor, _ offset: UInt64, _ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, got in
            got = (try? File.read(file.raw, at: offset, into: UnsafeMutableRawBufferPointer(buffer))) ?? 0
        }
    }

    /// The end of the last complete line.
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

    private func backward(_ file: Descriptor, _ size: UInt64, _ budget: inout Int, _ body: (StampedLine) -> Bool) {
        var end = size
        // The beginning of a line whose end was in the block behind.
        var tail: [UInt8] = []
        while end > 0, budget > 0 {
            let start = end - min(end, UInt64(LogReader.block))
            var part = bytes(file, start, Int(end - start))
            guard part.count == Int(end - start) else { return }
            budget -= part.count
            if end == size, part.last == UInt8(ascii: "\n") { part.removeLast() }
            end = start
            part.append(contentsOf: tail)
            var stop = part.count
            while let newline = part.withUnsafeBytes({
                UnsafeRawBufferPointer(rebasing: $0[..<stop]).lastNewline
            }) {
                if !body(StampedLine(parsing: part[(newline + 1)..<stop])) { return }
                stop = newline
            }
            tail = Array(part[..<stop])
            if tail.count > LogReader.longestLine, start > 0 {
                if !body(StampedLine(parsing: tail)) { return }
                tail = []
            }
            if start == 0 { _ = body(StampedLine(parsing: tail)) }
        }
    }

    /// Returns the offset behind the last line that was given on.
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
            let part = bytes(file, offset, Int(min(size - offset, UInt64(LogReader.block))))
            if part.isEmpty { return offset }
            var start = 0
            while let newline = part.withUnsafeBytes({
                UnsafeRawBufferPointer(rebasing: $0[start...]).firstNewline
            }) {
                body(StampedLine(parsing: part[start..<(start + newline)]))
                start += newline + 1
            }
            if start == 0 {
                // A piece of a very long line, or the open end of a file that will not grow any more.
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
