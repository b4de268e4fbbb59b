// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Why a replica of a folder cannot be made, or how the replica differs from its original.
public struct ReplicaError: Error, CustomStringConvertible {
    /// The path in the folder; empty for the folder itself.
    public let path: String
    /// The error number; nil if no system call failed.
    public let errno: Errno?
    private let reason: String

    init(_ path: String, _ reason: String) { (self.path, self.reason, errno) = (path, reason, nil) }

    init(_ path: String, _ errno: Errno) { (self.path, self.errno, reason) = (path, errno, "\(errno)") }

    /// Whether the disk, or the quota of its user, is full.
    public var isFull: Bool { errno?.rawValue == ENOSPC || errno?.rawValue == EDQUOT }

    /// Whether the kernel lacks the key of an encrypted folder.
    public var isWithoutKey: Bool { errno?.rawValue == ENOKEY }

    /// The path and the reason, such as `a/b: Permission denied`.
    public var description: String { path.isEmpty ? reason : "\(path): \(reason)" }
}

/// Makes an exact copy (replica) of a folder and compares it with the original. The replica includes file content,
/// modes, owners, times of modification and access, extended attributes (and so access control lists), hard links
/// within the folder, and holes. Symlinks are copied as symlinks and not followed. A mount point or a device in the
/// folder is an error.
///
/// The target folder must be empty at first, and no process may change either folder during the work. The functions may
/// block on the disk: do not call them on the event loop.
public struct FolderReplica {
    private let source: Folder
    private let copy: Folder
    /// For files with several hard links. `firstPaths` is used for copying: the path at which the copy of the file was
    /// created. `twins` is used for comparing: which file of the copy corresponds to a file of the original.
    private var firstPaths: [FileIdentity: [UInt8]] = [:]
    private var twins: [FileIdentity: FileIdentity] = [:]
    /// How many files, symlinks and folders were copied.
    public private(set) var files = 0
    /// How many bytes of content were copied.
    public private(set) var bytes: UInt64 = 0

    /// How deep folders may be nested. Each level uses two descriptors and one stack frame.
    static let deepest = 400
    /// How many bytes are read at a time.
    private static let piece = 1 << 20

    /// Prepares to copy the folder `source` into the empty folder `copy`. Nothing is copied yet.
    public init(of source: Folder, in copy: Folder) { (self.source, self.copy) = (source, copy) }

    private static func at<T>(_ place: String, _ body: () throws(Errno) -> T) throws(ReplicaError) -> T {
        do throws(Errno) {
            return try body()
        } catch {
            // EXDEV: openat2(2) with RESOLVE_NO_XDEV has refused to enter a mount point.
            if error == .improperLink { throw ReplicaError(place, "is a mount point") }
            throw ReplicaError(place, error)
        }
    }

    private static let changed = "was changed while it was copied"

    // MARK: Copying

    /// Copies everything, and returns when all of it is safely on the disk.
    public mutating func make() throws(ReplicaError) {
        try fill(copy, from: source, [], depth: 0)
        try Self.dress(copy.descriptor, like: source.descriptor, "")
        try Self.at("") { () throws(Errno) in
            _ = try copy.descriptor.withRaw { raw throws(Errno) in try call { tlx_synchronise_filesystem(raw) } }
        }
    }

    private mutating func fill(
        _ target: Folder,
        from folder: Folder,
        _ prefix: [UInt8],
        depth: Int
    ) throws(ReplicaError) {
        guard depth < Self.deepest else {
            throw ReplicaError(folder.path, "lies in more than \(Self.deepest) folders")
        }
        for name in try Self.at(folder.path, { () throws(Errno) in try folder.completeListing() }) {
            let place = folder.place(name)
            guard let status = try Self.at(place, { () throws(Errno) in try folder.status(name) }) else {
                throw ReplicaError(place, Self.changed)
            }
            files += 1
            let path = prefix.isEmpty ? name.content : prefix + [UInt8(ascii: "/")] + name.content
            if status.kind != .directory, status.links > 1 {
                let identity = FileIdentity(device: status.device, inode: status.inode)
                if let first = firstPaths[identity] {
                    try link(first, target, name, place)
                    continue
                }
                firstPaths[identity] = path
            }
            switch status.kind {
            case .regular: try copyFile(name, from: folder, to: target, place)
            case .directory:
                let below = try Self.at(place) { () throws(Errno) in try folder.folder(name) }
                let there = try Self.at(place) { () throws(Errno) in
                    try target.makeFolder(name, mode: 0o700)
                    return try target.folder(name)
                }
                try fill(there, from: below, path, depth: depth + 1)
                // Do this after the folder is filled. A default access control list would otherwise apply to the new
                // entries, and each new entry would change the folder's modification time.
                try Self.dress(there.descriptor, like: below.descriptor, place)
            case .link:
                try Self.at(place) { () throws(Errno) in try target.makeLink(name, to: try folder.linkTarget(name)) }
                try dress(name, in: target, like: folder, place)
            case .fifo, .socket:
                let type = status.kind == .fifo ? S_IFIFO : S_IFSOCK
                try Self.at(place) { () throws(Errno) in
                    _ = try target.descriptor.withRaw { raw throws(Errno) in
                        try call { mknodat(raw, name.bytes, type | 0o600, 0) }
                    }
                }
                try dress(name, in: target, like: folder, place)
            case .character, .block, .other: throw ReplicaError(place, "is a device, which is not copied: remove it")
            }
        }
    }

    private func link(_ first: [UInt8], _ target: Folder, _ name: FileName, _ place: String) throws(ReplicaError) {
        let first = FileName(bytes: first)
        try Self.at(place) { () throws(Errno) in
            _ = try copy.descriptor.withRaw { root throws(Errno) in
                try target.descriptor.withRaw { raw throws(Errno) in
                    try call { linkat(root, first.bytes, raw, name.bytes, 0) }
                }
            }
        }
    }

    private mutating func copyFile(
        _ name: FileName,
        from folder: Folder,
        to target: Folder,
        _ place: String
    ) throws(ReplicaError) {
        let original = try Self.at(place) { () throws(Errno) in try folder.openFile(name) }
        let status = try Self.at(place) { () throws(Errno) in
            try original.withRaw { raw throws(Errno) in try File.status(descriptor: raw) }
        }
        guard status.kind == .regular else { throw ReplicaError(place, Self.changed) }
        let file = try Self.at(place) { () throws(Errno) in
            try target.openOrMakeFile(name, mode: 0o600, isNew: true)
        }
        bytes &+= try Self.at(place) { () throws(Errno) in
            try original.withRaw { from throws(Errno) in
                try file.withRaw { to throws(Errno) in try Self.copyContent(from, to, status.size) }
            }
        }
        try Self.dress(file, like: original, place)
    }

    private static func copyContent(_ from: Int32, _ to: Int32, _ size: UInt64) throws(Errno) -> UInt64 {
        var (at, total): (UInt64, UInt64) = (0, 0)
        while at < size, let begin = try data(from, at), begin < size {
            at = begin
            let end = min(try hole(from, begin), size)
            while at < end {
                let bytes = try File.read(from, at: at, maximum: Int(min(UInt64(piece), end - at)))
                if bytes.isEmpty { break }
                try File.write(to, at: at, bytes)
                at += UInt64(bytes.count)
                total += UInt64(bytes.count)
            }
            // The file has become shorter since it was listed. The later comparison reports that.
            if at < end { break }
        }
        try File.truncate(to, to: size)
        return total
    }

    /// The offset of the first data, not in a hole, at or after `offset` (SEEK_DATA has the value 3); nil if only a
    /// hole follows.
    private static func data(_ descriptor: Int32, _ offset: UInt64) throws(Errno) -> UInt64? {
        do throws(Errno) {
            return UInt64(try call { lseek(descriptor, off_t(clamping: offset), 3) })
        } catch {
            if error.rawValue == ENXIO { return nil }
            // The filesystem does not support holes, so all bytes are data.
            if error == .invalidArgument { return offset }
            throw error
        }
    }

    /// The offset of the first hole at or after `offset` (SEEK_HOLE has the value 4). The end of the file counts as a
    /// hole.
    private static func hole(_ descriptor: Int32, _ offset: UInt64) throws(Errno) -> UInt64 {
        do throws(Errno) {
            return UInt64(try call { lseek(descriptor, off_t(clamping: offset), 4) })
        } catch {
            if error == .invalidArgument { return .max }
            throw error
        }
    }

    // MARK: Owners, modes, attributes, times

    private func dress(_ name: FileName, in target: Folder, like folder: Folder, _ place: String) throws(ReplicaError) {
        let (copy, original) = try Self.at(place) { () throws(Errno) in
            (try target.open(name, .path), try folder.open(name, .path))
        }
        try Self.dress(copy, like: original, place)
    }

    /// Sets the owner, mode, extended attributes and times of a copy to those of its original. Both descriptors may be
    /// open with O_PATH.
    private static func dress(_ copy: Descriptor, like original: Descriptor, _ place: String) throws(ReplicaError) {
        try at(place) { () throws(Errno) in
            try original.withRaw { from throws(Errno) in
                try copy.withRaw { to throws(Errno) in
                    let status = try File.status(descriptor: from)
                    let path = "/proc/self/fd/\(to)"
                    let now = try File.status(descriptor: to)
                    if now.uid != status.uid || now.gid != status.gid {
                        // 0x1000 is AT_EMPTY_PATH, which libc defines only with _GNU_SOURCE.
                        try call { fchownat(to, "", status.uid, status.gid, 0x1000) }
                    }
                    // Set the mode after the owner, because a change of the owner resets setuid and capabilities. Set
                    // it before the extended attributes, which may contain an access control list.
                    if status.kind != .link { try call { chmod(path, mode_t(status.mode)) } }
                    for (name, value) in try attributes("/proc/self/fd/\(from)") {
                        try call { tlx_set_attribute(path, name, value, UInt(value.count)) }
                    }
                    let times = [
                        time(nanoseconds: status.accessedMicroseconds &* 1000),
                        time(nanoseconds: status.modifiedNanoseconds),
                    ]
                    try call { utimensat(AT_FDCWD, path, times, 0) }
                }
            }
        }
    }

    private static func time(nanoseconds: Int64) -> timespec {
        let second: Int64 = 1_000_000_000
        let part = (nanoseconds % second + second) % second
        return timespec(tv_sec: Int((nanoseconds - part) / second), tv_nsec: Int(part))
    }

    /// The extended attributes of a file, by name. Each name ends with its NUL byte.
    private static func attributes(_ path: String) throws(Errno) -> [[CChar]: [UInt8]] {
        var found: [[CChar]: [UInt8]] = [:]
        do throws(Errno) {
            let length = try call { tlx_attribute_names(path, nil, 0) }
            guard length > 0 else { return [:] }
            var names = [CChar](repeating: 0, count: length)
            let count = try call { tlx_attribute_names(path, &names, UInt(names.count)) }
            for name in names.prefix(count).split(separator: 0) where isCopied(name) {
                let name = Array(name) + [0]
                let size = try call { tlx_attribute(path, name, nil, 0) }
                var value = [UInt8](repeating: 0, count: size)
                if size > 0 { _ = try call { tlx_attribute(path, name, &value, UInt(size)) } }
                found[name] = value
            }
        } catch {
            // EOPNOTSUPP: the filesystem has no extended attributes.
            if error.rawValue != EOPNOTSUPP { throw error }
        }
        return found
    }

    /// Whether an extended attribute is copied. Attributes of `security` are copied only by root, because only root may
    /// set them. `security.evm` is never copied, because it is a signature that includes the inode number.
    private static func isCopied(_ name: ArraySlice<CChar>) -> Bool {
        let text = name.map { UInt8(bitPattern: $0) }
        if text.starts(with: "security.evm".utf8) { return false }
        return Users.isRoot || !text.starts(with: "security.".utf8)
    }

    // MARK: Comparing

    /// Compares the copy with the original. Reads the content of the copy from the disk, not from the page cache.
    /// Throws if anything differs.
    public mutating func compare() throws(ReplicaError) {
        twins = [:]
        try compare(copy, with: source, depth: 0)
    }

    private mutating func compare(_ target: Folder, with folder: Folder, depth: Int) throws(ReplicaError) {
        guard depth < Self.deepest else { throw ReplicaError(folder.path, Self.changed) }
        try Self.compare(target.descriptor, with: folder.descriptor, folder.path)
        let names = try Self.at(folder.path) { () throws(Errno) in Set(try folder.completeListing()) }
        let copied = try Self.at(folder.path) { () throws(Errno) in Set(try target.completeListing()) }
        guard names == copied else { throw ReplicaError(folder.path, "its copy has other files") }
        for name in names {
            let place = folder.place(name)
            let (copy, original) = try Self.at(place) { () throws(Errno) in
                (try target.open(name, .path), try folder.open(name, .path))
            }
            let (new, old) = try Self.compare(copy, with: original, place)
            if old.kind != .directory, old.links > 1 {
                let identity = FileIdentity(device: old.device, inode: old.inode)
                let other = FileIdentity(device: new.device, inode: new.inode)
                if let twin = twins[identity] {
                    guard twin == other else { throw ReplicaError(place, "its copy is not that of its hard link") }
                    continue
                }
                twins[identity] = other
            }
            switch old.kind {
            case .directory:
                let (there, below) = try Self.at(place) { () throws(Errno) in
                    (try target.folder(name), try folder.folder(name))
                }
                try compare(there, with: below, depth: depth + 1)
            case .regular:
                let (copy, original) = try Self.at(place) { () throws(Errno) in
                    (try target.openFile(name), try folder.openFile(name))
                }
                let isSame = try Self.at(place) { () throws(Errno) in
                    try original.withRaw { from throws(Errno) in
                        try copy.withRaw { to throws(Errno) in try Self.hasSameContent(from, to, old.size) }
                    }
                }
                guard isSame else { throw ReplicaError(place, "the content of its copy differs") }
            case .link:
                let isSame = try Self.at(place) { () throws(Errno) in
                    try target.linkTarget(name) == folder.linkTarget(name)
                }
                guard isSame else { throw ReplicaError(place, "its copy leads elsewhere") }
            case .fifo, .socket, .character, .block, .other: break
            }
        }
    }

    @discardableResult
    private static func compare(
        _ copy: Descriptor,
        with original: Descriptor,
        _ place: String
    ) throws(ReplicaError) -> (new: FileStatus, old: FileStatus) {
        let (new, old) = try at(place) { () throws(Errno) in
            (
                try copy.withRaw { raw throws(Errno) in try File.status(descriptor: raw) },
                try original.withRaw { raw throws(Errno) in try File.status(descriptor: raw) }
            )
        }
        guard new.kind == old.kind, new.mode == old.mode, new.uid == old.uid, new.gid == old.gid,
            new.modifiedNanoseconds == old.modifiedNanoseconds, old.kind != .regular || new.size == old.size
        else { throw ReplicaError(place, "its copy has another kind, size, mode, owner or time") }
        let isSame = try at(place) { () throws(Errno) in
            try copy.withRaw { to throws(Errno) in
                try original.withRaw { from throws(Errno) in
                    try attributes("/proc/self/fd/\(to)") == attributes("/proc/self/fd/\(from)")
                }
            }
        }
        guard isSame else { throw ReplicaError(place, "its copy has other extended attributes") }
        return (new, old)
    }

    private static func hasSameContent(_ from: Int32, _ to: Int32, _ size: UInt64) throws(Errno) -> Bool {
        // Since ``make()``, the copy's content is on the disk. Drop it from the page cache, so that it is read from the
        // disk.
        _ = posix_fadvise(to, 0, 0, POSIX_FADV_DONTNEED)
        var at: UInt64 = 0
        while at < size {
            // Skip ranges in which both files have a hole.
            let begins = [try data(from, at), try data(to, at)].compactMap(\.self)
            guard let begin = begins.min(), begin < size else { return true }
            let count = Int(min(UInt64(piece), size - begin))
            let bytes = try File.read(from, at: begin, maximum: count)
            guard bytes.count == count, try File.read(to, at: begin, maximum: count) == bytes else { return false }
            at = begin + UInt64(count)
        }
        return true
    }
}

extension Folder {
    /// All names in the folder, unordered. Throws if the kernel cannot list all of them.
    func completeListing() throws(Errno) -> [FileName] {
        let copy = try descriptor.withRaw { raw throws(Errno) in
            try call { openat(raw, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        }
        guard let stream = fdopendir(copy) else {
            let failure = Errno(rawValue: Glibc.errno)
            _ = Glibc.close(copy)
            throw failure
        }
        defer { closedir(stream) }
        var found: [FileName] = []
        while true {
            // readdir(3) returns NULL both at the end and after an error. Only an error sets errno.
            Glibc.errno = 0
            guard let entry = readdir(stream) else {
                let code = Glibc.errno
                guard code == 0 else { throw Errno(rawValue: code) }
                return found
            }
            withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { name in
                    guard strcmp(name, ".") != 0, strcmp(name, "..") != 0 else { return }
                    found.append(FileName(name))
                }
            }
        }
    }
}
