public import Linux

/// The file through which output passes on its way from a FIFO into a log, with a journal of that step.
///
/// Reading output and writing it are two steps, and a daemon that is killed between them would lose what it had read.
/// So the bytes are spliced from the FIFO into this file in the runtime directory (a tmpfs), which the keeper also
/// holds, and the file says how far the step has come. One file serves a whole daemon: batches are synchronous, so one is under way at a time.
///
/// Layout: a page of header, then the raw bytes; so the length of the file says how many there are. Header, little
/// endian:
///
///     0  8  "TORPOUT1"
///     8  4  phase: 1 filling, 2 appending
///    12  4  bytes of the path at 64
///    16  8  device of the log          \
///    24  8  inode of the log            | valid while
///    32  8  its length before           | appending
///    40  8  raw bytes of this batch     |
///    48  8  time stamp, µs since 1970  /
///    64  …  path of the log, at most 4,032 bytes
///
/// The order of steps, each of which may be the last: header `filling`; splice (the file grows); header `appending`;
/// append to the log; shorten the file to its header. An empty file needs nothing. One that is `filling` is appended
/// as it is; one that is `appending` takes the log back to its length before and is appended again, with the same
/// stamp: no line is lost, none is doubled.
public final class OutputBatch {
    /// The header's size, and where the raw bytes begin.
    static let headerSize: UInt64 = 4_096
    /// The most raw bytes of one batch: what an app gets of one turn of the loop.
    public static let capacity = 256 << 10

    /// What the keeper should hold.
    public private(set) var descriptor: Descriptor
    private let raw = Scratch(capacity: OutputBatch.capacity)
    private let out = Scratch(capacity: OutputBatch.capacity)
    private var fillingPath: String?

    /// A new one at `path`, in place of what is there; without a path in memory only.
    public init(path: String? = nil) throws(Errno) {
        if let path {
            descriptor = try Self.make(path)
        } else {
            descriptor = try Memory.file(named: "torpor-output")
            try File.truncate(descriptor.raw, to: OutputBatch.headerSize)
        }
    }

    /// Goes on with a new file at `path`. Between batches there is nothing in the old one.
    public func move(to path: String) throws(Errno) {
        descriptor = try Self.make(path)
        fillingPath = nil
    }

    private static func make(_ path: String) throws(Errno) -> Descriptor {
        try? File.remove(path)
        let descriptor = try File.open(path, [.readWrite, .create, .exclusive], mode: 0o600)
        try File.truncate(descriptor.raw, to: OutputBatch.headerSize)
        return descriptor
    }

    /// One that an earlier daemon used; call `recover` before anything else.
    public init(recovering descriptor: Descriptor) {
        self.descriptor = descriptor
    }

    /// Completes or repeats what an earlier daemon left here. `log` gives the log for a path, nil for one unknown.
    /// Returns the number of raw bytes that were saved.
    @discardableResult
    public func recover(log: (String) -> LogFile?) throws(Errno) -> Int {
        let size = try File.status(descriptor: descriptor.raw).size
        defer { try? File.truncate(descriptor.raw, to: OutputBatch.headerSize) }
        guard size > OutputBatch.headerSize, let header = try readHeader() else { return 0 }
        let file = log(header.path) ?? LogFile(path: header.path, limits: LogLimits(maxSize: nil))
        let count = Int(min(size - OutputBatch.headerSize, UInt64(OutputBatch.capacity)))
        var stamp = Clock.realtimeMicroseconds()
        if header.appending {
            try file.rewind(to: header.length, device: header.device, inode: header.inode)
            stamp = header.stamp
        }
        if file.prepare(for: 0, now: stamp) {
            file.append(try load(count), stamp: stamp, using: out)
        }
        return count
    }

    /// Moves what waits in a FIFO into a log, at most `limit` bytes; the number of raw bytes taken out of the FIFO.
    func move(from fifo: Int32, to log: LogFile, limit: Int) throws(Errno) -> Int {
        let limit = min(limit, OutputBatch.capacity)
        let now = Clock.realtimeMicroseconds()
        try writeHeader(appending: false, log: log, count: 0, stamp: now)
        var count = 0
        while count < limit {
            let moved = try Splice.move(
                from: fifo,
                to: descriptor.raw,
                offset: Int64(OutputBatch.headerSize) + Int64(count),
                size: limit - count
            )
            guard let moved, moved > 0 else { break }
            count += moved
        }
        guard count > 0 else { return 0 }
        if log.prepare(for: count, now: now) {
            try writeHeader(appending: true, log: log, count: count, stamp: now)
            log.append(try load(count), stamp: now, using: out)
        } else {
            log.drop(count)
        }
        try File.truncate(descriptor.raw, to: OutputBatch.headerSize)
        fillingPath = nil
        return count
    }

    // MARK: - The record

    struct Header {
        var appending: Bool
        var path: String
        var device: UInt64
        var inode: UInt64
        var length: UInt64
        var count: UInt64
        var stamp: Int64
    }

    private func load(_ count: Int) throws(Errno) -> UnsafeRawBufferPointer {
        let buffer = UnsafeMutableRawBufferPointer(rebasing: raw.whole[..<count])
        let got = try File.read(descriptor.raw, at: OutputBatch.headerSize, into: buffer)
        return UnsafeRawBufferPointer(rebasing: buffer[..<got])
    }

    /// Also what a test uses to make the file of a daemon that was killed.
    func writeHeader(appending: Bool, log: LogFile, count: Int, stamp: Int64) throws(Errno) {
        // The same log fills again after an empty turn: the header says so already.
        if !appending, fillingPath == log.path { return }
        fillingPath = appending ? nil : log.path
        var bytes = Array("TORPOUT1".utf8)
        func put(_ value: some FixedWidthInteger) {
            withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
        }
        let path = Array(log.path.utf8.prefix(Int(OutputBatch.headerSize) - 64))
        let position = log.position
        put(UInt32(appending ? 2 : 1))
        put(UInt32(path.count))
        put(position.device)
        put(position.inode)
        put(position.length)
        put(UInt64(count))
        put(stamp)
        bytes.append(contentsOf: [UInt8](repeating: 0, count: 64 - bytes.count))
        bytes.append(contentsOf: path)
        try File.write(descriptor.raw, at: 0, bytes)
    }

    func readHeader() throws(Errno) -> Header? {
        let buffer = UnsafeMutableRawBufferPointer(rebasing: raw.whole[..<Int(OutputBatch.headerSize)])
        guard try File.read(descriptor.raw, at: 0, into: buffer) == buffer.count else { return nil }
        guard buffer[..<8].elementsEqual("TORPOUT1".utf8) else { return nil }
        let phase = UInt32(littleEndian: buffer.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
        let pathLength = Int(UInt32(littleEndian: buffer.loadUnaligned(fromByteOffset: 12, as: UInt32.self)))
        guard (1...2).contains(phase), pathLength > 0, pathLength <= buffer.count - 64 else { return nil }
        func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        return Header(
            appending: phase == 2,
            path: String(decoding: buffer[64..<(64 + pathLength)], as: UTF8.self),
            device: word(16),
            inode: word(24),
            length: word(32),
            count: word(40),
            stamp: Int64(bitPattern: word(48))
        )
    }
}
