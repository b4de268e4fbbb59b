// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

extension Folder {
    /// The target of a symlink in the folder, cut after 4096 bytes.
    public func linkTarget(_ name: FileName) throws(Errno) -> [UInt8] {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = try descriptor.withRaw { raw throws(Errno) in
            try call { readlinkat(raw, name.bytes, &buffer, buffer.count) }
        }
        return buffer[..<count].map { UInt8(bitPattern: $0) }
    }

    /// Makes a symlink. Throws EEXIST if the name exists.
    public func makeLink(_ name: FileName, to target: [UInt8]) throws(Errno) {
        let target = target.map { CChar(bitPattern: $0) } + [0]
        _ = try descriptor.withRaw { raw throws(Errno) in try call { symlinkat(target, raw, name.bytes) } }
    }

    /// Sets the permission bits of the folder.
    public func setMode(_ mode: UInt32) throws(Errno) {
        _ = try descriptor.withRaw { raw throws(Errno) in try call { fchmod(raw, mode_t(mode)) } }
    }
}

/// fs-verity: the kernel verifies each block of a protected file when it reads the block from the disk.
public enum Verity {
    /// Enables fs-verity for a file, which makes it immutable. The descriptor must be open for reading, and no process
    /// may have the file open for writing.
    public static func enable(_ descriptor: Int32) throws(Errno) { try call { tlx_verity_enable(descriptor) } }

    /// The digest of a file protected by fs-verity; nil for other files.
    public static func digest(_ descriptor: Int32) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: 32)
        return tlx_verity_digest(descriptor, &digest) == 0 ? digest : nil
    }
}

extension File {
    /// Exchanges two names atomically. Throws EINVAL on a filesystem without support for that.
    public static func exchange(_ one: String, _ other: String) throws(Errno) {
        try call { tlx_rename_exchange(one, other) }
    }

    /// Blocks until a file's content and metadata are on the disk (fsync). Do not call it on the event loop.
    public static func synchroniseAll(_ descriptor: Int32) throws(Errno) { try call { fsync(descriptor) } }

    /// Blocks until a folder's entries are on the disk (fsync). Do not call it on the event loop.
    public static func synchroniseFolder(_ path: String) throws(Errno) {
        _ = try open(path, [.read, .directory]).withRaw { raw throws(Errno) in try call { fsync(raw) } }
    }
}
