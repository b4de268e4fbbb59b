// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// The result of stat(2).
public struct FileStatus: Hashable, Sendable {
    /// The type of a file.
    public enum Kind: Sendable { case regular, directory, link, fifo, socket, character, block, other }
    /// The type of the file.
    public let kind: Kind
    /// The permission bits, at most 0o7777.
    public let mode: UInt32
    /// The owner's uid.
    public let uid: UInt32
    /// The owning group's gid.
    public let gid: UInt32
    /// The size in bytes.
    public let size: UInt64
    /// Bytes allocated for the file on disk.
    public let allocated: UInt64
    /// The device that holds the file; with `inode` it identifies the file.
    public let device: UInt64
    /// The inode number, unique on the device.
    public let inode: UInt64
    /// The number of hard links; 0 once the file was removed.
    public let links: UInt64
    /// The time of the last modification, in microseconds since 1970.
    public let modifiedMicroseconds: Int64
    /// The time of the last modification, in nanoseconds since 1970.
    public let modifiedNanoseconds: Int64
    /// The time of the last change of content, mode, owner or links, in nanoseconds since 1970. Unlike the modification
    /// time, a program cannot set this time.
    public let changedNanoseconds: Int64
    /// The time of the last access, in microseconds since 1970. How often the kernel updates it depends on the mount
    /// options (mount(8), relatime).
    public let accessedMicroseconds: Int64

    init(_ raw: stat) {
        kind =
            switch raw.st_mode & S_IFMT {
            case S_IFREG: .regular
            case S_IFDIR: .directory
            case S_IFLNK: .link
            case S_IFIFO: .fifo
            case S_IFSOCK: .socket
            case S_IFCHR: .character
            case S_IFBLK: .block
            default: .other
            }
        mode = raw.st_mode & 0o7777
        uid = raw.st_uid
        gid = raw.st_gid
        size = UInt64(clamping: raw.st_size)
        allocated = UInt64(clamping: raw.st_blocks) &* 512
        device = UInt64(raw.st_dev)
        inode = UInt64(raw.st_ino)
        links = UInt64(raw.st_nlink)
        modifiedMicroseconds = Int64(raw.st_mtim.tv_sec) * 1_000_000 + Int64(raw.st_mtim.tv_nsec) / 1000
        modifiedNanoseconds = Int64(raw.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(raw.st_mtim.tv_nsec)
        changedNanoseconds = Int64(raw.st_ctim.tv_sec) &* 1_000_000_000 &+ Int64(raw.st_ctim.tv_nsec)
        accessedMicroseconds = Int64(raw.st_atim.tv_sec) * 1_000_000 + Int64(raw.st_atim.tv_nsec) / 1000
    }
}

/// Flags for opening a file. O_CLOEXEC is always set.
public struct OpenFlags: OptionSet, Sendable {
    /// The flags as open(2) takes them.
    public let rawValue: Int32
    /// Wraps flags of open(2).
    public init(rawValue: Int32) { self.rawValue = rawValue }
    /// Read only (O_RDONLY).
    public static let read = OpenFlags([])
    /// Write only (O_WRONLY).
    public static let write = OpenFlags(rawValue: O_WRONLY)
    /// Read and write (O_RDWR).
    public static let readWrite = OpenFlags(rawValue: O_RDWR)
    /// Create the file if it does not exist (O_CREAT).
    public static let create = OpenFlags(rawValue: O_CREAT)
    /// With `create`: fail if the file exists (O_EXCL).
    public static let exclusive = OpenFlags(rawValue: O_EXCL)
    /// Truncate the file to zero length (O_TRUNC).
    public static let truncate = OpenFlags(rawValue: O_TRUNC)
    /// Append with every write (O_APPEND).
    public static let append = OpenFlags(rawValue: O_APPEND)
    /// Do not block (O_NONBLOCK).
    public static let nonBlocking = OpenFlags(rawValue: O_NONBLOCK)
    /// Open only a reference to the file, for neither reading nor writing (O_PATH).
    public static let path = OpenFlags(rawValue: tlx_o_path)
    /// Fail unless the path is a directory (O_DIRECTORY).
    public static let directory = OpenFlags(rawValue: O_DIRECTORY)
    /// Fail if the path is a symlink (O_NOFOLLOW).
    public static let noFollow = OpenFlags(rawValue: O_NOFOLLOW)
}

/// Files by path. A path ends at its first NUL byte.
public enum File {
    /// Opens a file, close-on-exec.
    public static func open(
        _ path: String,
        _ flags: OpenFlags = .read,
        mode: UInt32 = 0o644
    ) throws(Errno) -> Descriptor {
        Descriptor(owning: try call { Glibc.open(path, flags.rawValue | O_CLOEXEC | O_NOCTTY, mode_t(mode)) })
    }

    /// Returns the whole content of a small file. Throws EFBIG if it has more than `limit` bytes.
    public static func read(_ path: String, limit: Int = 1 << 20) throws(Errno) -> [UInt8] {
        try open(path).withRaw { raw throws(Errno) in try read(descriptor: raw, limit: limit) }
    }

    /// Returns the whole content of a regular file at a path that a user chose; nil if the file is of another kind.
    /// Does not block on a FIFO. Throws EFBIG if the file has more than `limit` bytes.
    public static func readRegular(_ path: String, limit: Int) throws(Errno) -> [UInt8]? {
        try open(path, [.read, .nonBlocking]).withRaw { raw throws(Errno) in
            guard try status(descriptor: raw).kind == .regular else { return nil }
            return try read(descriptor: raw, limit: limit)
        }
    }

    /// Reads from the current position to the end. Throws EFBIG if that is more than `limit` bytes.
    public static func read(descriptor: Int32, limit: Int = 1 << 20) throws(Errno) -> [UInt8] {
        // Most files read here are short files below /proc or /sys. A buffer on the stack avoids a large allocation on
        // the heap.
        var content = try withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) {
            buffer throws(Errno) -> [UInt8] in
            var content: [UInt8] = []
            while content.count < 2 * buffer.count {
                let count = try Descriptor.read(descriptor, into: buffer) ?? 0
                if count == 0 { break }
                content += UnsafeRawBufferPointer(rebasing: buffer[..<count])
                if content.count > limit { throw Errno(rawValue: EFBIG) }
            }
            return content
        }
        guard content.count >= 2 * 4096 else { return content }
        while true {
            let part = try Descriptor.read(descriptor, maximum: min(limit + 1 - content.count, 65_536))
            guard let part, !part.isEmpty else { return content }
            content += part
            if content.count > limit { throw Errno(rawValue: EFBIG) }
        }
    }

    /// Returns the whole content of a file as text; bytes that are not UTF-8 become U+FFFD.
    public static func readString(_ path: String, limit: Int = 1 << 20) throws(Errno) -> String {
        String(wire: try read(path, limit: limit))
    }

    /// Writes the whole content of a file, which is created or truncated.
    public static func write(_ path: String, _ bytes: [UInt8], mode: UInt32 = 0o644) throws(Errno) {
        try open(path, [.write, .create, .truncate], mode: mode).withRaw { raw throws(Errno) in
            try Descriptor.writeAll(raw, bytes)
        }
    }

    /// Writes the whole content of a file, which is created or truncated.
    public static func write(_ path: String, _ text: String, mode: UInt32 = 0o644) throws(Errno) {
        try write(path, Array(text.utf8), mode: mode)
    }

    /// Appends to the file; creates it if necessary.
    public static func append(_ path: String, _ bytes: [UInt8], mode: UInt32 = 0o644) throws(Errno) {
        try open(path, [.write, .create, .append], mode: mode).withRaw { raw throws(Errno) in
            try Descriptor.writeAll(raw, bytes)
        }
    }

    /// Replaces a file's content atomically: readers see either the old or the new content. Only with `sync` is the new
    /// content certain to survive a power failure. `draft` is the path of the temporary file, which must be on the same
    /// filesystem.
    public static func replace(
        _ path: String,
        _ bytes: [UInt8],
        mode: UInt32 = 0o644,
        sync: Bool = false,
        draft: String? = nil
    ) throws(Errno) {
        let temporary = draft ?? path + ".tmp\(getpid())"
        do throws(Errno) {
            try open(temporary, [.write, .create, .truncate, .noFollow], mode: mode).withRaw { raw throws(Errno) in
                try Descriptor.writeAll(raw, bytes)
                if sync { try call { fsync(raw) } }
            }
            try rename(temporary, path)
        } catch {
            try? remove(temporary)
            throw error
        }
    }

    /// Creates one directory. Its parent must exist.
    public static func makeDirectory(_ path: String, mode: UInt32 = 0o755) throws(Errno) {
        try call { mkdir(path, mode_t(mode)) }
    }

    /// Creates a directory and its parents; no error if the directory exists.
    public static func makeDirectories(_ path: String, mode: UInt32 = 0o755) throws(Errno) {
        do throws(Errno) {
            try makeDirectory(path, mode: mode)
        } catch {
            if error == .fileExists, try status(path).kind == .directory { return }
            guard error == .noSuchFileOrDirectory, let parent = parent(of: path) else { throw error }
            try makeDirectories(parent, mode: mode)
            do throws(Errno) {
                try makeDirectory(path, mode: mode)
            } catch {
                if error != .fileExists { throw error }
            }
        }
    }

    /// The path without its last component; nil if the path has only one component.
    public static func parent(of path: String) -> String? {
        let (bytes, slash) = (path.utf8, UInt8(ascii: "/"))
        guard let end = bytes.lastIndex(where: { $0 != slash }), let start = bytes[..<end].lastIndex(of: slash) else {
            return nil
        }
        guard let last = bytes[..<start].lastIndex(where: { $0 != slash }) else { return "/" }
        return String(Substring(bytes[...last]))
    }

    /// Removes a file (not a directory).
    public static func remove(_ path: String) throws(Errno) { try call { unlink(path) } }

    /// Removes an empty directory.
    public static func removeDirectory(_ path: String) throws(Errno) { try call { rmdir(path) } }

    /// Removes a directory and its content, without following symlinks. Missing files are no error. Only for directories
    /// in which no other user can replace a folder by a link meanwhile: else use ``Folder``.
    public static func removeTree(_ path: String) throws(Errno) {
        do throws(Errno) {
            guard try status(path, followLinks: false).kind == .directory else { return try remove(path) }
            for name in try list(path) { try removeTree(path + "/" + name) }
            try removeDirectory(path)
        } catch {
            if error != .noSuchFileOrDirectory { throw error }
        }
    }

    /// Sets a file's modification time to now.
    public static func markChanged(_ path: String) throws(Errno) { try call { utimensat(AT_FDCWD, path, nil, 0) } }

    /// Sets an open file's modification time, in microseconds since 1970.
    public static func setModified(_ descriptor: Int32, microseconds: Int64) throws(Errno) {
        let second: Int64 = 1_000_000
        let part = microseconds % second
        // A time before 1970 has a negative remainder, which the kernel does not accept.
        let rest = part < 0 ? part + second : part
        let time = timespec(tv_sec: Int((microseconds - rest) / second), tv_nsec: Int(rest * 1000))
        try call { futimens(descriptor, [time, time]) }
    }

    /// Renames a file or directory; replaces the target if it exists.
    public static func rename(_ from: String, _ to: String) throws(Errno) { try call { Glibc.rename(from, to) } }

    /// Renames a file or directory. Throws EEXIST if the target exists.
    public static func renameExclusively(_ from: String, _ to: String) throws(Errno) {
        try call { tlx_rename_exclusive(from, to) }
    }

    /// The result of stat(2) or, if `followLinks` is false, of lstat(2).
    public static func status(_ path: String, followLinks: Bool = true) throws(Errno) -> FileStatus {
        var raw = stat()
        try call { followLinks ? stat(path, &raw) : lstat(path, &raw) }
        return FileStatus(raw)
    }

    /// The result of fstat(2).
    public static func status(descriptor: Int32) throws(Errno) -> FileStatus {
        var raw = stat()
        try call { fstat(descriptor, &raw) }
        return FileStatus(raw)
    }

    /// The type of the file at `path`, without following symlinks; nil if there is none.
    public static func kind(_ path: String) throws(Errno) -> FileStatus.Kind? {
        do throws(Errno) {
            return try status(path, followLinks: false).kind
        } catch {
            if error == .noSuchFileOrDirectory { return nil }
            throw error
        }
    }

    /// Whether the file exists (symlinks are followed).
    public static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Whether this process may write to the file.
    public static func isWritable(_ path: String) -> Bool { access(path, W_OK) == 0 }

    /// Whether the path is a regular file that this process may execute.
    public static func isExecutable(_ path: String) -> Bool {
        access(path, X_OK) == 0 && (try? status(path).kind) == .regular
    }

    /// The target of a symlink, cut after 4096 bytes.
    public static func readLink(_ path: String) throws(Errno) -> String {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = try call { readlink(path, &buffer, buffer.count) }
        return String(wire: buffer[..<count].map { UInt8(bitPattern: $0) })
    }

    /// The absolute path without symlinks, `.` and `..`.
    public static func realPath(_ path: String) throws(Errno) -> String {
        guard let resolved = realpath(path, nil) else { throw Errno(rawValue: errno) }
        defer { free(resolved) }
        return String(terminatedWire: resolved)
    }

    /// The names in a directory without `.` and `..`, unordered.
    public static func list(_ path: String) throws(Errno) -> [String] {
        var names: [String] = []
        try eachName(in: path) { name in
            names.append(String(terminatedWire: name))
            return true
        }
        return names
    }

    /// Calls `body` with each name in a directory (unordered, without `.` and `..`), until `body` returns false. Reads
    /// the directory in steps, so that memory use does not depend on the number of names.
    public static func eachName(
        in path: String,
        _ body: (UnsafePointer<CChar>) -> Bool
    ) throws(Errno) {
        guard let directory = opendir(path) else { throw Errno(rawValue: errno) }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let goesOn = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { name in
                    strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || body(name)
                }
            }
            guard goesOn else { return }
        }
    }

    /// Creates a FIFO.
    public static func makeFIFO(_ path: String, mode: UInt32 = 0o600) throws(Errno) {
        try call { mkfifo(path, mode_t(mode)) }
    }

    /// Creates another name (hard link) for the file at `path`. If `path` is a symlink, the symlink itself gets the
    /// other name.
    public static func hardLink(_ path: String, at name: String) throws(Errno) {
        try call { linkat(AT_FDCWD, path, AT_FDCWD, name, 0) }
    }

    /// Creates a symlink at `path` that points to `target`.
    public static func link(_ path: String, to target: String) throws(Errno) { try call { symlink(target, path) } }

    /// Sets the permission bits. Throws ELOOP for a symlink if `followLinks` is false.
    public static func setMode(_ path: String, _ mode: UInt32, followLinks: Bool = true) throws(Errno) {
        guard !followLinks else {
            try call { chmod(path, mode_t(mode)) }
            return
        }
        // Before Linux 6.6, fchmodat(2) cannot be told not to follow a symlink, so use a descriptor.
        let node = try open(path, [.path, .noFollow])
        guard try status(descriptor: node.raw).kind != .link else { throw .tooManySymbolicLinkLevels }
        _ = try node.withRaw { raw throws(Errno) in try call { chmod("/proc/self/fd/\(raw)", mode_t(mode)) } }
    }

    /// Sets the permission bits of an open file.
    public static func setMode(descriptor: Int32, _ mode: UInt32) throws(Errno) {
        try call { fchmod(descriptor, mode_t(mode)) }
    }

    /// Sets owner and group without following a symlink; nil leaves the owner or group unchanged.
    public static func setOwner(_ path: String, uid: UInt32?, gid: UInt32?) throws(Errno) {
        try call { lchown(path, uid ?? .max, gid ?? .max) }
    }

    /// Sets the size of a file in bytes.
    public static func truncate(_ descriptor: Int32, to size: UInt64) throws(Errno) {
        try call { ftruncate(descriptor, off_t(clamping: size)) }
    }

    /// Allocates at least `size` bytes on the disk. If the disk is full, this call throws ENOSPC. Without this call, a
    /// later write to a mapping of the file could raise SIGBUS instead.
    public static func allocate(_ descriptor: Int32, size: UInt64) throws(Errno) {
        let error = posix_fallocate(descriptor, 0, off_t(clamping: size))
        if error != 0 { throw Errno(rawValue: error) }
    }

    /// Whether a path is on tmpfs or ramfs, whose files are never on a disk.
    public static func isInMemory(_ path: String) throws(Errno) -> Bool { try call { tlx_is_memory(path) } == 1 }

    /// Blocks until the file's content is on the disk (fdatasync). Do not call it on the event loop.
    public static func synchronise(_ descriptor: Int32) throws(Errno) { try call { fdatasync(descriptor) } }

    /// Starts writeback of `count` bytes from `offset`, so that a later ``synchronise(_:)`` waits less
    /// (sync_file_range(2)). This is only a hint: a filesystem that does not support it does nothing.
    public static func beginWriting(_ descriptor: Int32, from offset: Int64, count: Int64) {
        tlx_begin_writing(descriptor, off_t(offset), off_t(count))
    }

    /// Sets the file position relative to the start or, if `fromEnd`, to the end of the file. Returns the new position.
    @discardableResult
    public static func seek(_ descriptor: Int32, to offset: Int64, fromEnd: Bool = false) throws(Errno) -> Int64 {
        Int64(try call { lseek(descriptor, off_t(offset), fromEnd ? SEEK_END : SEEK_SET) })
    }

    /// The position at which the next read or write happens.
    public static func position(_ descriptor: Int32) throws(Errno) -> Int64 {
        Int64(try call { lseek(descriptor, 0, SEEK_CUR) })
    }

    /// Reads up to `maximum` bytes at `offset` without moving the file position. Returns fewer bytes only at the end of
    /// the file.
    public static func read(_ descriptor: Int32, at offset: UInt64, maximum: Int) throws(Errno) -> [UInt8] {
        var failure: Errno?
        let bytes = [UInt8](unsafeUninitializedCapacity: maximum) { buffer, count in
            do throws(Errno) {
                count = try read(descriptor, at: offset, into: UnsafeMutableRawBufferPointer(buffer))
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Reads at `offset` until the buffer is full or the file ends, without moving the file position. Returns the
    /// number of bytes read.
    public static func read(
        _ descriptor: Int32,
        at offset: UInt64,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(Errno) -> Int {
        var done = 0
        while done < buffer.count {
            let count = try call {
                pread(descriptor, buffer.baseAddress! + done, buffer.count - done, off_t(clamping: offset) + done)
            }
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// Writes all of `bytes` at `offset` without moving the file position.
    public static func write(_ descriptor: Int32, at offset: UInt64, _ bytes: [UInt8]) throws(Errno) {
        var done = 0
        while done < bytes.count {
            let count = try call {
                bytes.withUnsafeBytes {
                    pwrite(descriptor, $0.baseAddress! + done, $0.count - done, off_t(clamping: offset) + done)
                }
            }
            if count == 0 { throw .ioError }
            done += count
        }
    }
}
