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
/// Layout: a page of header, a page with the table of losses, then raw bytes; the batch reaches from `begin` to the end
/// of the file. Header, in native byte order:
///
///     0  8  "TORPOUT3"
///     8  4  phase: 1 filling, 2 appending, 3 dropping, 4 noting
///    12  4  begin: offset of the batch's raw bytes in this file
///    16  8  device of the log          \
///    24  8  inode of the log            | valid while
///    32  8  the log's length before      | appending or noting
///    40  8  time stamp, µs since 1970  /
///    48  4  bytes of the path at 64
///    56  8  the log's loss in bytes: before this batch, or with it while dropping
///    64  …  path of the log, at most 4,032 bytes
///
/// The steps, after any of which torpord may be killed: set header to `filling`; splice (the file grows); set header
/// to `appending`; append to the log; move `begin` to the end of the file, or truncate the file to its header. If
/// nothing follows `begin`, recovery has nothing to do. A `filling` batch is appended as it is. For an `appending`
/// batch the log is first truncated to the recorded length, and the batch appended again with the same stamp: no line
/// is lost or duplicated.
///
/// While the log cannot be written, the phase is `dropping` instead, and the table of losses gets the number of bytes.
/// When the log works again, a notice says it before the next batch, or alone in the phase `noting`. The header has the
/// loss as well, so that recovery can repeat each step: nothing is missing from a log that the log does not say.
public final class OutputBatch {
    /// The size of the header and the table of losses in bytes; raw bytes follow.
    static let headerSize = firstPage + UInt64(LossTable.size)
    private static let firstPage: UInt64 = 4_096
    /// The maximum number of raw bytes in one batch, and so of an app's output per turn of the event loop.
    public static let capacity = 256 << 10

    /// How many raw bytes of finished batches may stay in the file. Truncating the file after every line would cost
    /// as much as the line itself, and never truncating it would waste memory.
    private static let mostDone = 64 << 10
    private static let mappedSize = Int(headerSize) + mostDone + capacity
    private static let magic: UInt64 = 0x3354_554f_5052_4f54  // "TORPOUT3"
    /// Torpor 0.2 wrote "TORPOUT2": without a table of losses, so that raw bytes follow the first page.
    private static let oldMagic: UInt64 = 0x3254_554f_5052_4f54

    /// The journal file. The keeper holds this descriptor for the next torpord.
    public private(set) var descriptor: Descriptor
    private var mapping: Mapping?
    private let out = Scratch(capacity: 128 << 10)
    /// How many more FIFOs may be enlarged. Their pages count against the user's quota (fs.pipe-user-pages-soft),
    /// above which all new pipes of the user get only one or two pages.
    private var largeFIFOs = 16
    /// The log's path that is in the header now.
    private var path: String?
    /// False while the file is one of Torpor 0.2, before its batch is recovered.
    private var hasTable = true
    /// The end of the file, while no batch is in progress.
    private var end = OutputBatch.headerSize

    /// Creates a new file at `path`, replacing any file there; without a path only in memory.
    public init(path: String? = nil) throws(Errno) {
        if let path {
            descriptor = try Self.make(path)
        } else {
            descriptor = try Memory.file(named: "torpor-output")
        }
        try format()
    }

    /// Continues with a new file at `path`. Call it between batches, when the old file has no content but losses.
    public func move(to path: String) throws(Errno) {
        let new = try OutputBatch(path: path)
        try new.losses().copy(from: losses())
        let mapping = try new.map()
        descriptor = new.descriptor
        self.mapping = mapping
        self.path = nil
        end = new.end
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
    /// for an unknown path. Returns the number of raw bytes in the batch.
    @discardableResult
    public func recover(log: (String) -> LogFile?) throws(Errno) -> Int {
        let size = try File.status(descriptor: descriptor.raw).size
        guard size > OutputBatch.firstPage, let header = try readHeader(),
            header.isOld || size >= OutputBatch.headerSize
        else {
            try isCurrent(size) ? empty() : format()
            return 0
        }
        let room = UInt64(OutputBatch.mappedSize) - header.begin
        let count = size > header.begin ? Int(min(size - header.begin, room, UInt64(OutputBatch.capacity))) : 0
        hasTable = !header.isOld
        guard count > 0 || header.phase == .noting else {
            try hasTable ? empty() : format()
            return 0
        }
        if header.phase == .dropping { return try give(up: header, loss: header.loss) }
        let file = log(header.path) ?? LogFile(path: header.path, limits: LogLimits(maxSize: nil))
        var stamp = Clock.realtimeMicroseconds()
        if header.phase != .filling {
            if hasTable { try losses()[header.path] = header.loss }
            guard rewind(file, to: header) else { return try give(up: header, loss: header.loss + UInt64(count)) }
            stamp = header.stamp
            // The log now contains no part of the batch. Record that, since this recovery may be interrupted as well.
            try publish(.filling)
        }
        if count > 0 {
            restoreLoss(of: file)
            try write(count, from: header.begin, to: file, adding: 0, stamp: stamp)
        }
        try hasTable ? empty() : format()
        try recordLoss(of: file)
        return count
    }

    /// Whether the file has a table of losses, even if its header has no valid batch.
    private func isCurrent(_ size: UInt64) throws(Errno) -> Bool {
        guard size >= OutputBatch.headerSize else { return false }
        return try map().bytes.load(as: UInt64.self) == OutputBatch.magic
    }

    /// Makes a log as it was before the batch. Returns false if that fails again and again: how much of the batch is in
    /// the log is then unknown.
    private func rewind(_ log: LogFile, to header: Header) -> Bool {
        for _ in 0..<8 {
            do throws(Errno) {
                try log.rewind(to: header.length, device: header.device, inode: header.inode)
                return true
            } catch {
                continue
            }
        }
        return false
    }

    /// Records that the batch of an earlier torpord is missing from its log.
    private func give(up header: Header, loss: UInt64) throws(Errno) -> Int {
        if header.isOld { try format() }
        try losses()[header.path] = loss
        try empty()
        return 0
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
        try write(count, from: end, to: log, adding: count, stamp: Clock.realtimeMicroseconds())
        try finish(count)
        return count
    }

    /// Writes `count` raw bytes of this file to a log, which is rotated if it would be too large with `adding` bytes.
    /// While the log cannot be written, drops them.
    private func write(
        _ count: Int,
        from begin: UInt64,
        to log: LogFile,
        adding: Int,
        stamp: Int64
    ) throws(Errno) {
        if log.prepare(for: adding, now: stamp) {
            try beginAppending(to: log, stamp: stamp)
            log.append(try raw(from: begin, count), stamp: stamp, using: out)
        } else {
            try beginDropping(count, of: log)
            log.drop(count)
        }
        try recordLoss(of: log)
    }

    // MARK: Losses

    /// Tries to write to a log that has failed. Returns whether writing works.
    func tryAgain(_ log: LogFile) -> Bool {
        guard log.failure != nil else { return true }
        return log.prepareAgain(now: Clock.realtimeMicroseconds()) && writeNotice(to: log)
    }

    /// Writes to a log how many bytes are missing from it since an earlier torpord, if any are. If the log cannot be
    /// written, this is left to the next batch.
    public func reportLoss(of log: LogFile) {
        restoreLoss(of: log)
        guard log.droppedNow > 0, log.prepare(for: 0, now: Clock.realtimeMicroseconds()) else { return }
        _ = writeNotice(to: log)
    }

    /// Whether a log lacks output and does not say so yet.
    public var hasLosses: Bool { (try? losses().isEmpty) == false }

    /// Tells a log how many bytes are missing from it since an earlier torpord.
    func restoreLoss(of log: LogFile) {
        guard hasTable, let loss = try? losses()[log.path] else { return }
        log.recordedLoss = loss
        log.droppedNow = max(log.droppedNow, loss)
    }

    /// Counts output that was dropped before it was in a batch.
    func drop(_ count: Int, of log: LogFile) {
        log.drop(count)
        try? recordLoss(of: log)
    }

    /// Forgets the loss of a log that was removed.
    public func forgetLoss(of path: String) { try? losses()[path] = 0 }

    /// Forgets the losses of all logs but those at `paths`: the table has room for few, and an app that was removed may
    /// never write again. Call it after `recover`.
    public func forgetLosses(exceptOf paths: some Sequence<String>) { try? losses().keep(paths) }

    private func recordLoss(of log: LogFile) throws(Errno) {
        guard hasTable, log.droppedNow != log.recordedLoss else { return }
        try losses()[log.path] = log.droppedNow
        log.recordedLoss = log.droppedNow
    }

    private func writeNotice(to log: LogFile) -> Bool {
        do throws(Errno) {
            try beginFilling(for: log)
            let stamp = Clock.realtimeMicroseconds()
            try beginAppending(to: log, stamp: stamp, phase: .noting)
            log.append(UnsafeRawBufferPointer(start: nil, count: 0), stamp: stamp, using: out)
            try recordLoss(of: log)
            try publish(.filling)
            return log.failure == nil
        } catch {
            return false
        }
    }

    /// Reserves a place for one more enlarged FIFO; false if none is left.
    func takeLargeFIFO() -> Bool {
        guard largeFIFOs > 0 else { return false }
        largeFIFOs -= 1
        return true
    }

    /// Called when an enlarged FIFO is closed: another FIFO may then be enlarged.
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
        static let loss = 56
        static let path = 64
    }

    enum Phase: UInt32 {
        case filling = 1
        case appending = 2
        case dropping = 3
        case noting = 4
    }

    struct Header {
        var isOld: Bool
        var phase: Phase
        var begin: UInt64
        var path: String
        var device: UInt64
        var inode: UInt64
        var length: UInt64
        var stamp: Int64
        var loss: UInt64
    }

    /// Maps the header, the table of losses and as many raw bytes as a batch may have. An access to the mapping beyond
    /// the end of the file raises SIGBUS.
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

    private func losses() throws(Errno) -> LossTable {
        let table = Int(OutputBatch.firstPage)..<Int(OutputBatch.headerSize)
        return LossTable(in: UnsafeMutableRawBufferPointer(rebasing: try map().bytes[table]))
    }

    private func publish(_ phase: Phase) throws(Errno) { try map().publish(phase.rawValue, at: Offset.phase) }

    /// Discards all content, and allocates the header and the table of losses.
    private func format() throws(Errno) {
        path = nil
        try File.truncate(descriptor.raw, to: 0)
        try File.allocate(descriptor.raw, size: OutputBatch.headerSize)
        hasTable = true
        try empty()
    }

    /// Discards finished batches. Call it only while no batch is in progress.
    private func empty() throws(Errno) {
        // After the truncation there are no bytes after `begin`, whatever its value, so a recovery has nothing to do.
        do throws(Errno) {
            try File.truncate(descriptor.raw, to: OutputBatch.headerSize)
            end = OutputBatch.headerSize
        } catch {
            // They may stay if they leave room for the next batch: without this file, the losses would be forgotten.
            let size = try File.status(descriptor: descriptor.raw).size
            let room = OutputBatch.headerSize...OutputBatch.headerSize + UInt64(OutputBatch.mostDone)
            guard room.contains(size) else { throw error }
            end = size
        }
        let mapping = try map()
        mapping.bytes.storeBytes(of: OutputBatch.magic, as: UInt64.self)
        mapping.publish(UInt32(end), at: Offset.begin)
    }

    /// Records which log the raw bytes are for, before they arrive.
    func beginFilling(for log: LogFile) throws(Errno) {
        let mapping = try map()
        try publish(.filling)
        guard path != log.path else { return }
        path = log.path
        let bytes = log.path.utf8.prefix(Int(OutputBatch.firstPage) - Offset.path)
        mapping.bytes.storeBytes(of: UInt32(bytes.count), toByteOffset: Offset.pathLength, as: UInt32.self)
        UnsafeMutableRawBufferPointer(rebasing: mapping.bytes[Offset.path...]).copyBytes(from: bytes)
    }

    /// Records where in the log the raw bytes will be written; call it after `beginFilling`.
    func beginAppending(to log: LogFile, stamp: Int64, phase: Phase = .appending) throws(Errno) {
        let mapping = try map()
        let position = log.position
        mapping.bytes.storeBytes(of: position.device, toByteOffset: Offset.device, as: UInt64.self)
        mapping.bytes.storeBytes(of: position.inode, toByteOffset: Offset.inode, as: UInt64.self)
        mapping.bytes.storeBytes(of: position.length, toByteOffset: Offset.length, as: UInt64.self)
        mapping.bytes.storeBytes(of: stamp, toByteOffset: Offset.stamp, as: Int64.self)
        mapping.bytes.storeBytes(of: log.droppedNow, toByteOffset: Offset.loss, as: UInt64.self)
        try publish(phase)
    }

    /// Records what will be missing from the log without the raw bytes; call it after `beginFilling`.
    func beginDropping(_ count: Int, of log: LogFile) throws(Errno) {
        let loss = log.droppedNow + UInt64(count)
        try map().bytes.storeBytes(of: loss, toByteOffset: Offset.loss, as: UInt64.self)
        try publish(.dropping)
    }

    /// Ends the batch, after it was appended to the log or dropped.
    private func finish(_ count: Int) throws(Errno) {
        end += UInt64(count)
        try map().publish(UInt32(end), at: Offset.begin)
        if end > OutputBatch.headerSize + UInt64(OutputBatch.mostDone) { try empty() }
    }

    /// Reads the header; nil if it is not valid.
    func readHeader() throws(Errno) -> Header? {
        let bytes = try map().bytes
        let magic = bytes.load(as: UInt64.self)
        let isOld = magic == OutputBatch.oldMagic
        guard isOld || magic == OutputBatch.magic else { return nil }
        let least = isOld ? OutputBatch.firstPage : OutputBatch.headerSize
        let begin = UInt64(bytes.load(fromByteOffset: Offset.begin, as: UInt32.self))
        let pathLength = Int(bytes.load(fromByteOffset: Offset.pathLength, as: UInt32.self))
        guard let phase = Phase(rawValue: bytes.load(fromByteOffset: Offset.phase, as: UInt32.self)),
            begin >= least, begin <= UInt64(OutputBatch.mappedSize),
            pathLength > 0, pathLength <= Int(OutputBatch.firstPage) - Offset.path
        else { return nil }
        return Header(
            isOld: isOld,
            phase: phase,
            begin: begin,
            path: String(wire: bytes[Offset.path..<(Offset.path + pathLength)]),
            device: bytes.load(fromByteOffset: Offset.device, as: UInt64.self),
            inode: bytes.load(fromByteOffset: Offset.inode, as: UInt64.self),
            length: bytes.load(fromByteOffset: Offset.length, as: UInt64.self),
            stamp: bytes.load(fromByteOffset: Offset.stamp, as: Int64.self),
            loss: bytes.load(fromByteOffset: Offset.loss, as: UInt64.self)
        )
    }
}
