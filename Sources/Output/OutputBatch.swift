// SPDX-License-Identifier: Apache-2.0

public import Linux
import WireText

/// A journal file through which output passes from a FIFO into a log.
///
/// Reading output from the FIFO and writing it to the log are two steps: a torpord that is killed in between would
/// lose what it had read. So torpord splices the bytes from the FIFO into this file in the runtime directory (a
/// tmpfs), and also records its progress in the file. The keeper holds the file too. One file is enough for all apps:
/// batches are synchronous, so there is only one at a time. The file is mapped, so updates of its header need no
/// system calls.
///
/// Layout: a page of header, then raw bytes; the batch reaches from `begin` to the end of the file. Header, in native
/// byte order:
///
///     0  8  "TORPOUT2"
///     8  4  phase: 1 filling, 2 appending
///    12  4  begin: offset of the batch's raw bytes in this file
///    16  8  device of the log          \
///    24  8  inode of the log            | valid while
///    32  8  the log's length before      | appending
///    40  8  time stamp, µs since 1970  /
///    48  4  bytes of the path at 64
///    64  …  path of the log, at most 4,032 bytes
///
/// The steps, after any of which torpord may be killed: set header to `filling`; splice (the file grows); set header
/// to `appending`; append to the log; move `begin` to the end of the file, or truncate the file to its header. If
/// nothing follows `begin`, recovery has nothing to do. A `filling` batch is appended as it is. For an `appending`
/// batch the log is first truncated to the recorded length, and the batch appended again with the same stamp: no line
/// is lost or duplicated.
public final class OutputBatch {
    /// The size of the header in bytes; raw bytes follow it.
    static let headerSize: UInt64 = 4_096
    /// The maximum number of raw bytes in one batch, and so of an app's output per turn of the event loop.
    public static let capacity = 256 << 10

    /// How many raw bytes of finished batches may stay in the file. Truncating the file after every line would cost
    /// as much as the line itself, and never truncating it would waste memory.
    private static let mostDone = 64 << 10
    private static let mappedSize = Int(headerSize) + mostDone + capacity
    private static let magic: UInt64 = 0x3254_554f_5052_4f54  // "TORPOUT2"

    /// The journal file. The keeper holds this descriptor for the next torpord.
    public private(set) var descriptor: Descriptor
    private var mapping: Mapping?
    private let out = Scratch(capacity: 128 << 10)
    /// How many more FIFOs may be enlarged. Their pages count against the user's quota (fs.pipe-user-pages-soft),
    /// above which all new pipes of the user get only one or two pages.
    private var largeFIFOs = 16
    /// The log's path that is in the header now.
    private var path: String?
    /// The end of the file, while no batch is in progress.
    private var end = OutputBatch.headerSize

    /// Creates a new file at `path`, replacing any file there; without a path only in memory.
    public init(path: String? = nil) throws(Errno) {
        if let path {
            descriptor = try Self.make(path)
        } else {
            descriptor = try Memory.file(named: "torpor-output")
        }
        try empty()
    }

    /// Continues with a new file at `path`. Call it between batches, when the old file has no content.
    public func move(to path: String) throws(Errno) {
        let new = try Self.make(path)
        mapping = nil
        descriptor = new
        try empty()
    }

    private static func make(_ path: String) throws(Errno) -> Descriptor {
        try? File.remove(path)
        return try File.open(path, [.readWrite, .create, .exclusive], mode: 0o600)
    }

    /// Takes over the file of an earlier torpord. Call `recover` before any other method.
    public init(recovering descriptor: Descriptor) {
        self.descriptor = descriptor
    }

    /// Completes or repeats the batch that an earlier torpord had not finished. `log` returns the log for a path, nil
    /// for an unknown path. Returns the number of raw bytes recovered.
    @discardableResult
    public func recover(log: (String) -> LogFile?) throws(Errno) -> Int {
        let size = try File.status(descriptor: descriptor.raw).size
        guard size > OutputBatch.headerSize, let header = try readHeader(), size > header.begin else {
            try empty()
            return 0
        }
        let file = log(header.path) ?? LogFile(path: header.path, limits: LogLimits(maxSize: nil))
        let count = Int(min(size - header.begin, UInt64(OutputBatch.capacity)))
        var stamp = Clock.realtimeMicroseconds()
        if header.isAppending {
            try file.rewind(to: header.length, device: header.device, inode: header.inode)
            stamp = header.stamp
            // The log now contains no part of the batch. Record that, since this recovery may be interrupted as well.
            try map().publish(Phase.filling, at: Offset.phase)
        }
        if file.prepare(for: 0, now: stamp) {
            try beginAppending(to: file, stamp: stamp)
            file.append(try raw(from: header.begin, count), stamp: stamp, using: out)
        }
        try empty()
        return count
    }

    /// Moves at most `limit` bytes of output from a FIFO into a log. Returns how many raw bytes were read from the
    /// FIFO.
    func move(from fifo: Int32, to log: LogFile, limit: Int) throws(Errno) -> Int {
        if end > OutputBatch.headerSize + UInt64(OutputBatch.mostDone) { try empty() }
        try beginFilling(for: log)
        let moved = try Splice.move(
            from: fifo,
            to: descriptor.raw,
            offset: Int64(end),
            size: min(limit, OutputBatch.capacity)
        )
        guard let count = moved, count > 0 else { return 0 }
        let now = Clock.realtimeMicroseconds()
        if log.prepare(for: count, now: now) {
            try beginAppending(to: log, stamp: now)
            log.append(try raw(from: end, count), stamp: now, using: out)
        } else {
            log.drop(count)
        }
        try finish(count)
        return count
    }

    /// Tries to write to a log that has failed. Returns whether writing works.
    func tryAgain(_ log: LogFile) -> Bool { log.tryAgain(now: Clock.realtimeMicroseconds(), using: out) }

    /// Reserves a place for one more enlarged FIFO; false if none is left.
    func takeLargeFIFO() -> Bool {
        guard largeFIFOs > 0 else { return false }
        largeFIFOs -= 1
        return true
    }

    /// Releases the place of an enlarged FIFO.
    func giveBackLargeFIFO() { largeFIFOs += 1 }

    // MARK: - The record

    private enum Offset {
        static let phase = 8
        static let begin = 12
        static let device = 16
        static let inode = 24
        static let length = 32
        static let stamp = 40
        static let pathLength = 48
        static let path = 64
    }

    private enum Phase {
        static let filling: UInt32 = 1
        static let appending: UInt32 = 2
    }

    struct Header {
        var isAppending: Bool
        var begin: UInt64
        var path: String
        var device: UInt64
        var inode: UInt64
        var length: UInt64
        var stamp: Int64
    }

    /// Maps the header and as many raw bytes as a batch may have. An access to the mapping beyond the end of the file
    /// raises SIGBUS.
    private func map() throws(Errno) -> Mapping {
        if let mapping { return mapping }
        let made = try Mapping(descriptor: descriptor.raw, size: OutputBatch.mappedSize, writable: true)
        mapping = made
        path = nil
        return made
    }

    private func raw(from begin: UInt64, _ count: Int) throws(Errno) -> UnsafeRawBufferPointer {
        let begin = Int(begin)
        return UnsafeRawBufferPointer(rebasing: try map().bytes[begin..<(begin + count)])
    }

    /// Discards finished batches. Call it only while no batch is in progress.
    private func empty() throws(Errno) {
        // After the truncation there are no bytes after `begin`, whatever its value, so a recovery has nothing to do.
        try File.truncate(descriptor.raw, to: OutputBatch.headerSize)
        end = OutputBatch.headerSize
        let mapping = try map()
        mapping.bytes.storeBytes(of: OutputBatch.magic, as: UInt64.self)
        mapping.publish(UInt32(end), at: Offset.begin)
    }

    /// Records which log the raw bytes are for, before they arrive.
    func beginFilling(for log: LogFile) throws(Errno) {
        let mapping = try map()
        mapping.publish(Phase.filling, at: Offset.phase)
        guard path != log.path else { return }
        path = log.path
        let bytes = log.path.utf8.prefix(Int(OutputBatch.headerSize) - Offset.path)
        mapping.bytes.storeBytes(of: UInt32(bytes.count), toByteOffset: Offset.pathLength, as: UInt32.self)
        UnsafeMutableRawBufferPointer(rebasing: mapping.bytes[Offset.path...]).copyBytes(from: bytes)
    }

    /// Records where in the log the raw bytes will be written; call it after `beginFilling`.
    func beginAppending(to log: LogFile, stamp: Int64) throws(Errno) {
        let mapping = try map()
        let position = log.position
        mapping.bytes.storeBytes(of: position.device, toByteOffset: Offset.device, as: UInt64.self)
        mapping.bytes.storeBytes(of: position.inode, toByteOffset: Offset.inode, as: UInt64.self)
        mapping.bytes.storeBytes(of: position.length, toByteOffset: Offset.length, as: UInt64.self)
        mapping.bytes.storeBytes(of: stamp, toByteOffset: Offset.stamp, as: Int64.self)
        mapping.publish(Phase.appending, at: Offset.phase)
    }

    /// Ends the batch, after it was appended to the log.
    private func finish(_ count: Int) throws(Errno) {
        end += UInt64(count)
        if end > OutputBatch.headerSize + UInt64(OutputBatch.mostDone) { return try empty() }
        try map().publish(UInt32(end), at: Offset.begin)
    }

    /// Reads the header; nil if it is not valid.
    func readHeader() throws(Errno) -> Header? {
        let bytes = try map().bytes
        guard bytes.load(as: UInt64.self) == OutputBatch.magic else { return nil }
        let phase = bytes.load(fromByteOffset: Offset.phase, as: UInt32.self)
        let begin = UInt64(bytes.load(fromByteOffset: Offset.begin, as: UInt32.self))
        let pathLength = Int(bytes.load(fromByteOffset: Offset.pathLength, as: UInt32.self))
        guard phase == Phase.filling || phase == Phase.appending, begin >= OutputBatch.headerSize,
            begin <= OutputBatch.headerSize + UInt64(OutputBatch.mostDone),
            pathLength > 0, pathLength <= Int(OutputBatch.headerSize) - Offset.path
        else { return nil }
        return Header(
            isAppending: phase == Phase.appending,
            begin: begin,
            path: String(wire: bytes[Offset.path..<(Offset.path + pathLength)]),
            device: bytes.load(fromByteOffset: Offset.device, as: UInt64.self),
            inode: bytes.load(fromByteOffset: Offset.inode, as: UInt64.self),
            length: bytes.load(fromByteOffset: Offset.length, as: UInt64.self),
            stamp: bytes.load(fromByteOffset: Offset.stamp, as: Int64.self)
        )
    }
}
