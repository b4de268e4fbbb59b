// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

extension File {
    /// Removes a user's files in a folder on tmpfs or ramfs and in its subfolders. The folders themselves are kept.
    /// Symlinks are not followed. Returns the bytes freed.
    ///
    /// Throws EACCES if the folder belongs to another user, EOPNOTSUPP if the folder is not in memory.
    public static func purge(_ path: String, ownedBy user: UInt32) throws(Errno) -> UInt64 {
        let folder = try open(path, [.read, .directory, .noFollow])
        return try folder.withRaw { raw throws(Errno) in
            guard try status(descriptor: raw).uid == user else { throw .permissionDenied }
            guard try isInMemory("/proc/self/fd/\(raw)") else { throw .notSupported }
            return purge(raw, user, depth: 0)
        }
    }

    private static func purge(_ folder: Int32, _ user: UInt32, depth: Int) -> UInt64 {
        var bytes: UInt64 = 0
        for name in (try? list("/proc/self/fd/\(folder)")) ?? [] {
            guard let entry = try? open(name, in: folder, [.path, .noFollow]),
                let status = try? entry.withRaw({ raw throws(Errno) in try status(descriptor: raw) }),
                status.uid == user
            else { continue }
            switch status.kind {
            case .regular:
                guard unlinkat(folder, name, 0) == 0 else { continue }
                if status.links == 1 { bytes &+= status.allocated }
            case .directory where depth < 32:
                guard let below = try? open(name, in: folder, [.read, .directory, .noFollow]) else { continue }
                bytes &+= below.withRaw { raw in purge(raw, user, depth: depth + 1) }
            case .directory, .link, .fifo, .socket, .character, .block, .other: continue
            }
        }
        return bytes
    }

    /// Frees the memory of a file in memory by punching a hole of the file's size. The file keeps its size, and its
    /// content becomes zeros. Returns the bytes freed. Throws EOPNOTSUPP if the file is not in memory, EBADF if the
    /// descriptor is not open for writing, EPERM if the file is sealed.
    public static func empty(_ descriptor: Int32) throws(Errno) -> UInt64 {
        guard try isInMemory("/proc/self/fd/\(descriptor)") else { throw .notSupported }
        let before = try status(descriptor: descriptor).allocated
        try call { tlx_punch(descriptor) }
        return before
    }
}
