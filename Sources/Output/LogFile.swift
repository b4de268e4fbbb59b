// SPDX-License-Identifier: Apache-2.0

public import Linux

/// When a log is rotated, and which files are kept.
public struct LogLimits: Hashable, Sendable {
    /// `log_max_size`: the size in bytes (without time stamps) above which a file is rotated; nil for no limit.
    public var maxSize: UInt64?
    /// `log_max_files`: the number of rotated files to keep; `.1` is the newest.
    public var maxFiles: Int
    /// `log_max_age`: a log file is rotated when its first line is older than this, and a rotated file is removed
    /// when its last write is older than this. nil for no limit.
    public var maxAge: Duration?

    /// Creates limits. The defaults are those of the configuration: a file is rotated at 16 MiB, 5 rotated
    /// files are kept, and age does not matter.
    public init(maxSize: UInt64? = 16 << 20, maxFiles: Int = 5, maxAge: Duration? = nil) {
        self.maxSize = maxSize
        self.maxFiles = max(0, maxFiles)
        self.maxAge = maxAge
    }
}

/// One app's log file: appends time-stamped lines, rotates files, and handles disk errors.
///
/// An error is reported once. From then on output is dropped and counted, and writing is retried at intervals. When
/// writing works again, a line in the log and another report say how much output is missing.
public final class LogFile {
    /// The path of the current file; rotated files are `path.1`, `path.2` …
    public let path: String
    /// The limits for rotation.
    public var limits: LogLimits
    /// Called with a sentence when writing starts to fail, and when writing works again.
    public var onTrouble: ((String) -> Void)?
    /// Total bytes of dropped output.
    public private(set) var droppedBytes: UInt64 = 0
    /// The error that prevents writing now; nil if writing works.
    public private(set) var failure: Errno?

    /// The time between retries after an error.
    static let retryInterval: Duration = .milliseconds(250)

    private let permissions: UInt32
    private var file: Descriptor?
    private var identity: (device: UInt64, inode: UInt64) = (0, 0)
    private var length: UInt64 = 0
    /// Whether the last line has no newline yet, so that the next output continues it.
    private var lineOpen = false
    /// The time of the file's first line, microseconds since 1970.
    private var began: Int64?
    private var retryAt: Duration?
    /// Bytes of output that are missing before the next line, which no notice in the log says yet.
    var droppedNow: UInt64 = 0
    /// The value of ``droppedNow`` that the journal file has recorded for the next torpord.
    var recordedLoss: UInt64 = 0
    /// The error that prevents a rotation that is due; nil if there is none.
    public private(set) var rotationFailure: Errno?

    /// Creates a log at a path; the file is opened when the first line is written.
    public init(path: String, limits: LogLimits = LogLimits(), permissions: UInt32 = 0o640) {
        self.path = path
        self.limits = limits
        self.permissions = permissions
    }

    /// The file to which the next write goes, and the file's length in bytes.
    var position: (device: UInt64, inode: UInt64, length: UInt64) { (identity.device, identity.inode, length) }

    /// Prepares for a batch of `count` bytes: opens, reopens or rotates the file if necessary. Returns false while
    /// the file cannot be written.
    func prepare(for count: Int, now: Int64) -> Bool {
        if let retryAt, Clock.monotonic() < retryAt { return false }
        do throws(Errno) {
            try reopenIfMoved()
            rotateIfDue(adding: count, now: now)
            if file == nil { try open() }
            return true
        } catch {
            fail(error)
            return false
        }
    }

    /// Appends a batch of raw output, with a time stamp before each line. Call `prepare` first. `out` is a scratch
    /// buffer.
    func append(_ raw: UnsafeRawBufferPointer, stamp microseconds: Int64, using out: Scratch) {
        guard let file else { return drop(raw.count) }
        let stamp = TimeStamp.format(microseconds: microseconds) + [UInt8(ascii: " ")]
        out.removeAll()
        let startLength = length
        var rest = raw[...]
        // The state after the last successful write: the file's length, whether its last line has no newline yet, and
        // how many bytes of the batch were written.
        var safe = (length: length, open: lineOpen, taken: 0)
        if droppedNow > 0 { appendNotice(to: out, stamp: stamp) }
        func flush() -> Bool {
            let result = Descriptor.writeAll(file.raw, UnsafeRawBufferPointer(out.filled))
            if let failure = result.failure {
                try? File.truncate(file.raw, to: safe.length)
                length = safe.length
                lineOpen = safe.open
                fail(failure)
                drop(raw.count - safe.taken)
                return false
            }
            length += UInt64(result.written)
            safe = (length, lineOpen, raw.count - rest.count)
            out.removeAll()
            return true
        }
        while !rest.isEmpty {
            let line = UnsafeRawBufferPointer(rebasing: rest)
            let newline = line.firstNewline
            // A line longer than the buffer is written in pieces.
            var count = newline.map { $0 + 1 } ?? line.count
            if out.room < stamp.count + min(count, LogFile.longestPiece), !flush() { return }
            count = min(count, out.room - stamp.count)
            if !lineOpen { out.append(stamp) }
            out.append(UnsafeRawBufferPointer(rebasing: line[..<count]))
            lineOpen = newline.map { $0 + 1 } != count
            rest = rest[(rest.startIndex + count)...]
        }
        guard flush() else { return }
        if startLength == 0 { began = microseconds }
        if failure != nil || droppedNow > 0 { recovered() }
    }

    /// After an error, prepares to write although there is no new output, so that a log is known to work before its app
    /// writes the next line. Returns false while the file cannot be written.
    func prepareAgain(now: Int64) -> Bool {
        // A full disk may still have a few bytes free in the last block of the file: that is not enough to try again.
        if failure == .noSpace, let room = try? FilesystemSpace(of: File.parent(of: path) ?? "/").free,
            room < LogFile.leastRoom
        {
            return false
        }
        return prepare(for: 0, now: now)
    }

    /// A filesystem with less than this available, in bytes, counts as full.
    private static let leastRoom: UInt64 = 64 << 10

    /// A line up to this length is never split between two writes.
    private static let longestPiece = 16 << 10

    /// Counts output that was dropped.
    func drop(_ count: Int) {
        droppedBytes += UInt64(count)
        droppedNow += UInt64(count)
    }

    /// Truncates the log to `length`, so that a batch can be appended again. Does nothing if the path now has another
    /// file than the one with this device and inode number, or if the file is not longer than `length`.
    func rewind(to length: UInt64, device: UInt64, inode: UInt64) throws(Errno) {
        if file == nil { try open() }
        guard let file, identity == (device, inode), self.length > length else { return }
        let isOpen = try endsInsideLine(file, length)
        try File.truncate(file.raw, to: length)
        self.length = length
        lineOpen = isOpen
    }

    /// Ends the last line if it has no newline, so that other output begins a line of its own.
    func endLine() {
        guard failure == nil else { return }
        do throws(Errno) {
            try reopenIfMoved()
            if file == nil {
                guard (try? File.kind(path)) == .regular else { return }
                try open()
            }
            guard let file, lineOpen else { return }
            try Descriptor.writeAll(file.raw, [UInt8(ascii: "\n")])
            length += 1
            lineOpen = false
        } catch {
            fail(error)
        }
    }

    /// Whether the file is open.
    var isOpen: Bool { file != nil }

    /// Closes the file; the next line opens it again.
    public func close() {
        file = nil
    }

    // MARK: -

    private func open() throws(Errno) {
        let opened = try openOrCreate()
        let status = try File.status(descriptor: opened.raw)
        guard status.kind == .regular else { throw .invalidArgument }
        identity = (status.device, status.inode)
        length = status.size
        lineOpen = try endsInsideLine(opened, length)
        began = try firstStamp(opened)
        file = opened
    }

    /// Opens the file. If the folder of the logs was removed since torpord has started, makes it again.
    private func openOrCreate() throws(Errno) -> Descriptor {
        let flags: OpenFlags = [.readWrite, .append, .create, .noFollow, .nonBlocking]
        do throws(Errno) {
            return try File.open(path, flags, mode: permissions)
        } catch {
            guard error == .noSuchFileOrDirectory, let folder = File.parent(of: path) else { throw error }
            try File.makeDirectory(folder)
            return try File.open(path, flags, mode: permissions)
        }
    }

    private func endsInsideLine(_ file: Descriptor, _ length: UInt64) throws(Errno) -> Bool {
        guard length > 0 else { return false }
        let last = try File.read(file.raw, at: length - 1, maximum: 1).first
        return last != nil && last != UInt8(ascii: "\n")
    }

    private func firstStamp(_ file: Descriptor) throws(Errno) -> Int64? {
        TimeStamp.parse(try File.read(file.raw, at: 0, maximum: TimeStamp.length))
    }

    /// Opens the file at the path again if another process has moved, removed or truncated the open file.
    private func reopenIfMoved() throws(Errno) {
        guard let file else { return }
        guard let there = try? File.status(path, followLinks: false), there.inode == identity.inode,
            there.device == identity.device
        else {
            self.file = nil
            return
        }
        if there.size != length {
            length = there.size
            lineOpen = try endsInsideLine(file, length)
        }
    }

    private func rotateIfDue(adding count: Int, now: Int64) {
        if file == nil { try? open() }
        let isFilled = file != nil && length > 0
        let tooLarge = limits.maxSize.map { length + UInt64(count) > $0 } ?? false
        let tooOld =
            limits.maxAge.map { age in
                began.map { now - $0 > age.microseconds } ?? false
            } ?? false
        guard isFilled, tooLarge || tooOld else {
            // Somebody may have truncated the file, or raised the limit.
            rotationFailure = nil
            return
        }
        rotate(now: now)
    }

    private func rotate(now: Int64) {
        do throws(Errno) {
            if limits.maxFiles == 0 {
                try File.remove(path)
            } else {
                for number in stride(from: limits.maxFiles - 1, through: 1, by: -1) {
                    do throws(Errno) {
                        try File.rename("\(path).\(number)", "\(path).\(number + 1)")
                    } catch .noSuchFileOrDirectory {
                        continue
                    } catch {
                        throw error
                    }
                }
                let tail = lineOpen ? openLine() : nil
                if let tail { try writeNew(tail.bytes) }
                try File.rename(path, "\(path).1")
                if let tail, let file {
                    try File.rename("\(path).new", path)
                    try File.truncate(file.raw, to: tail.start)
                } else if lineOpen, let file {
                    try? Descriptor.writeAll(file.raw, [UInt8(ascii: "\n")])
                }
            }
            file = nil
            lineOpen = false
            rotationFailure = nil
            removeOld(now: now)
        } catch {
            if rotationFailure == nil {
                onTrouble?("could not rotate \(path), so it keeps growing: \(error.description.lowercased())")
            }
            rotationFailure = error
        }
    }

    /// The unfinished last line, which a rotation moves to the next file so that the line is not split; empty if the
    /// last line is complete. nil if the line is longer than `longestPiece`.
    private func openLine() -> (bytes: [UInt8], start: UInt64)? {
        guard let file else { return nil }
        let room = UInt64(LogFile.longestPiece + TimeStamp.length + 1)
        let start = length - min(length, room)
        guard let end = try? File.read(file.raw, at: start, maximum: Int(length - start)),
            let newline = end.withUnsafeBytes({ $0.lastNewline })
        else { return nil }
        return (Array(end[(newline + 1)...]), start + UInt64(newline) + 1)
    }

    private func writeNew(_ bytes: [UInt8]) throws(Errno) {
        try? File.remove("\(path).new")
        let new = try File.open("\(path).new", [.write, .create, .noFollow], mode: permissions)
        do throws(Errno) {
            try Descriptor.writeAll(new.raw, bytes)
        } catch {
            try? File.remove("\(path).new")
            throw error
        }
    }

    /// Removes a log and all its rotated files, because the app no longer writes there.
    public static func removeAll(at path: String) {
        try? File.remove(path)
        var number = 1
        while (try? File.status("\(path).\(number)", followLinks: false)) != nil {
            try? File.remove("\(path).\(number)")
            number += 1
        }
    }

    private func removeOld(now: Int64) {
        // If the limit was lowered, there may be files with numbers above `maxFiles`: remove them.
        var number = limits.maxFiles + 1
        while (try? File.status("\(path).\(number)", followLinks: false)) != nil, number < limits.maxFiles + 1_000 {
            try? File.remove("\(path).\(number)")
            number += 1
        }
        guard let age = limits.maxAge else { return }
        for number in 1..<max(2, limits.maxFiles + 1) {
            guard let status = try? File.status("\(path).\(number)", followLinks: false) else { continue }
            if now - status.modifiedMicroseconds > age.microseconds {
                try? File.remove("\(path).\(number)")
            }
        }
    }

    private func fail(_ error: Errno) {
        retryAt = Clock.monotonic() + LogFile.retryInterval
        file = nil
        guard failure != error else { return }
        let first = failure == nil
        failure = error
        if first {
            onTrouble?(
                "could not write to \(path): \(error.description.lowercased()); output is dropped until it works again"
            )
        }
    }

    private func recovered() {
        failure = nil
        retryAt = nil
        onTrouble?("\(path) can be written to again; \(droppedNow) bytes of output are missing from it")
        droppedNow = 0
    }

    private func appendNotice(to out: Scratch, stamp: [UInt8]) {
        if lineOpen { out.append([UInt8(ascii: "\n")]) }
        let why = failure.map { ": " + $0.description.lowercased() } ?? ""
        out.append(stamp)
        out.append(Array("torpor: \(droppedNow) bytes of output are missing here\(why)\n".utf8))
        lineOpen = false
    }
}

/// A reusable buffer of fixed size.
final class Scratch {
    private let mapping: Mapping
    private var memory: UnsafeMutableRawBufferPointer { mapping.bytes }
    private var count = 0

    init(capacity: Int) { mapping = Mapping(size: capacity) }

    var room: Int { memory.count - count }
    var filled: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(rebasing: memory[..<count]) }

    func removeAll() { count = 0 }

    func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { append($0) }
    }

    func append(_ bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count <= room)
        UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyMemory(from: bytes)
        count += bytes.count
    }
}
