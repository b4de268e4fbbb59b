// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

extension File {
    /// Removes the files in a folder that is in memory (tmpfs, ramfs) and in the folders below it, if they belong to that
    /// user; folders stay. Links are not followed. Returns how many bytes they took.
    ///
    /// EACCES when the folder is another's, EOPNOTSUPP when it is not in memory.
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

    /// Makes all of a file's content zeros that take no memory; returns how many bytes it took. EOPNOTSUPP
    /// for one that is not in memory, EBADF where it is not open for writing, EPERM where it is sealed.
    public static func empty(_ descriptor: Int32) throws(Errno) -> UInt64 {
        guard try isInMemory("/proc/self/fd/\(descriptor)") else { throw .notSupported }
        let before = try status(descriptor: descriptor).allocated
        try call { tlx_punch(descriptor) }
        return before
    }
}
