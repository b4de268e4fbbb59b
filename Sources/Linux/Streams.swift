import CLinux
import Glibc
public import SystemPackage

/// FIFOs, memory files, splicing, and files written at their end: what output passes through.
///
/// Every call repeats EINTR and throws the errno.
public enum Streams {
    /// How a file is opened.
    public struct Mode: OptionSet, Sendable {
        /// The flags of `open(2)`.
        public let rawValue: Int32
        /// Flags of `open(2)`.
        public init(rawValue: Int32) { self.rawValue = rawValue }
        /// O_RDONLY: no flag at all.
        public static let read = Mode([])
        /// O_WRONLY.
        public static let write = Mode(rawValue: O_WRONLY)
        /// O_RDWR; of a FIFO it never waits for another side (fifo(7)).
        public static let readWrite = Mode(rawValue: O_RDWR)
        /// O_NONBLOCK.
        public static let nonblocking = Mode(rawValue: O_NONBLOCK)
        /// O_APPEND.
        public static let append = Mode(rawValue: O_APPEND)
        /// O_CREAT.
        public static let create = Mode(rawValue: O_CREAT)
        /// O_NOFOLLOW: a symbolic link is ELOOP.
        public static let noFollow = Mode(rawValue: O_NOFOLLOW)
    }

    /// What a file is.
    public struct Status: Hashable, Sendable {
        /// Device and inode: which file it is.
        public var device: UInt64
        /// The inode on that device.
        public var inode: UInt64
        /// Its length in bytes.
        public var size: UInt64
        /// Names that lead to it; 0 when it was deleted.
        public var links: UInt64
        /// When it was last written to, in seconds of CLOCK_REALTIME.
        public var modified: Int64
        /// Type and permission bits.
        public var mode: UInt32
        /// Its owner.
        public var uid: UInt32
        /// Its group.
        public var gid: UInt32
        /// The device it stands for, if it stands for one.
        public var special: UInt64

        /// It is a FIFO.
        public var isFIFO: Bool { mode & S_IFMT == S_IFIFO }
        /// It is a socket.
        public var isSocket: Bool { mode & S_IFMT == S_IFSOCK }
        /// It is a regular file.
        public var isRegular: Bool { mode & S_IFMT == S_IFREG }

        init(_ raw: clinux_stream_status) {
            device = raw.device
            inode = raw.inode
            size = raw.size
            links = raw.links
            modified = raw.modified_seconds
            mode = raw.mode
            uid = raw.uid
            gid = raw.gid
            special = raw.rdev
        }
    }

    /// Opens a path, close-on-exec.
    public static func open(_ path: String, _ mode: Mode, permissions: UInt32 = 0o640) throws(Errno) -> Descriptor {
        Descriptor(owning: try check(clinux_stream_open(path, mode.rawValue, permissions)))
    }

    /// An empty file in memory.
    public static func memory(_ name: String) throws(Errno) -> Descriptor {
        Descriptor(owning: try check(clinux_stream_memory(name)))
    }

    /// Makes a FIFO.
    public static func makeFIFO(_ path: String, permissions: UInt32) throws(Errno) {
        _ = try check(clinux_stream_make_fifo(path, permissions))
    }

    /// What an open file is.
    public static func status(_ fd: Int32) throws(Errno) -> Status {
        var raw = clinux_stream_status()
        _ = try check(clinux_stream_status(fd, &raw))
        return Status(raw)
    }

    /// What stands at a path, without following a symbolic link.
    public static func status(path: String) throws(Errno) -> Status {
        var raw = clinux_stream_status()
        _ = try check(clinux_stream_path_status(path, &raw))
        return Status(raw)
    }

    /// Bytes that wait in a pipe or socket.
    public static func waiting(_ fd: Int32) throws(Errno) -> Int {
        Int(try check(clinux_stream_readable(fd)))
    }

    /// O_NONBLOCK is set.
    public static func isNonblocking(_ fd: Int32) throws(Errno) -> Bool {
        try check(clinux_stream_is_nonblocking(fd)) == 1
    }

    /// Reads at an offset until the buffer is full or the file ends; the number of bytes.
    public static func read(
        _ fd: Int32,
        at offset: UInt64,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(Errno) -> Int {
        var done = 0
        while done < buffer.count {
            let got = pread(
                fd,
                buffer.baseAddress.map { $0 + done },
                buffer.count - done,
                Int(clamping: offset) + done
            )
            if got == 0 { break }
            if got > 0 {
                done += got
            } else if errno != EINTR {
                throw Errno(rawValue: errno)
            }
        }
        return done
    }

    /// Writes it all, and returns how much was written before a failure, with the failure.
    public static func write(_ fd: Int32, _ bytes: UnsafeRawBufferPointer) -> (written: Int, failure: Errno?) {
        var done = 0
        while done < bytes.count {
            let put = Glibc.write(fd, bytes.baseAddress.map { $0 + done }, bytes.count - done)
            if put > 0 {
                done += put
            } else if put == 0 {
                return (done, .ioError)
            } else if errno != EINTR {
                return (done, Errno(rawValue: errno))
            }
        }
        return (done, nil)
    }

    /// Writes it all at an offset.
    public static func write(_ fd: Int32, at offset: UInt64, _ bytes: UnsafeRawBufferPointer) throws(Errno) {
        var done = 0
        while done < bytes.count {
            let put = pwrite(
                fd,
                bytes.baseAddress.map { $0 + done },
                bytes.count - done,
                Int(clamping: offset) + done
            )
            if put > 0 {
                done += put
            } else if put == 0 {
                throw .ioError
            } else if errno != EINTR {
                throw Errno(rawValue: errno)
            }
        }
    }

    /// Sets the length of a file.
    public static func truncate(_ fd: Int32, to length: UInt64) throws(Errno) {
        while ftruncate(fd, Int(clamping: length)) != 0 {
            if errno != EINTR { throw Errno(rawValue: errno) }
        }
    }

    /// Sets the permission bits of what stands at a path.
    public static func setPermissions(_ path: String, _ mode: UInt32) throws(Errno) {
        if chmod(path, mode) != 0 { throw Errno(rawValue: errno) }
    }

    /// Sets owner and group of what stands at a path, without following a symbolic link.
    public static func setOwner(_ path: String, uid: UInt32, gid: UInt32) throws(Errno) {
        if lchown(path, uid, gid) != 0 { throw Errno(rawValue: errno) }
    }

    /// Gives a file another name, replacing what had it.
    public static func rename(_ path: String, to other: String) throws(Errno) {
        if Glibc.rename(path, other) != 0 { throw Errno(rawValue: errno) }
    }

    /// Removes a name.
    public static func unlink(_ path: String) throws(Errno) {
        if Glibc.unlink(path) != 0 { throw Errno(rawValue: errno) }
    }

    /// A stream into the journal, its header sent, as `sd_journal_stream_fd(3)` makes it.
    public static func journal(path: String, header: String) throws(Errno) -> Descriptor {
        var path = path
        var header = header
        let result = path.withUTF8 { name in
            header.withUTF8 { text in
                name.withMemoryRebound(to: CChar.self) { name in
                    text.withMemoryRebound(to: CChar.self) { text in
                        clinux_stream_journal(name.baseAddress, name.count, text.baseAddress, text.count)
                    }
                }
            }
        }
        return Descriptor(owning: try check(result))
    }

    private static func check(_ result: Int32) throws(Errno) -> Int32 {
        if result < 0 { throw Errno(rawValue: -result) }
        return result
    }
}

extension Streams {
    /// The distance to the first newline, or nil.
    public static func firstNewline(in bytes: UnsafeRawBufferPointer) -> Int? {
        guard let base = bytes.baseAddress, let hit = memchr(base, 0x0a, bytes.count) else { return nil }
        return UnsafeRawPointer(hit) - base
    }

    /// The distance to the last newline, or nil.
    public static func lastNewline(in bytes: UnsafeRawBufferPointer) -> Int? {
        guard let base = bytes.baseAddress, let hit = clinux_stream_last_newline(base, bytes.count) else { return nil }
        return UnsafeRawPointer(hit) - base
    }
}
