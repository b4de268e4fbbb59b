// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

extension Folder {
    /// Opens a file in the folder. Does not follow a symlink, and does not block on a FIFO.
    public func openFile(_ name: FileName) throws(Errno) -> Descriptor { try open(name, [.read, .nonBlocking]) }

    /// Opens a file in the folder for reading and writing, and creates the file if necessary. Does not follow a
    /// symlink.
    ///
    /// - Parameter isNew: whether to throw EEXIST if the file exists.
    public func openOrMakeFile(_ name: FileName, mode: UInt32, isNew: Bool = false) throws(Errno) -> Descriptor {
        let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | (isNew ? O_EXCL : 0)
        return try descriptor.withRaw { raw throws(Errno) in
            Descriptor(owning: try call { openat(raw, name.bytes, flags, mode_t(mode)) })
        }
    }

    /// Moves a file to a name in another folder of the same filesystem, where it replaces an existing file. Throws
    /// EISDIR if that name is a folder, EXDEV for another filesystem.
    public func rename(_ name: FileName, to folder: Folder, _ other: FileName) throws(Errno) {
        _ = try descriptor.withRaw { raw throws(Errno) in
            try folder.descriptor.withRaw { target throws(Errno) in
                try call { renameat(raw, name.bytes, target, other.bytes) }
            }
        }
    }

    /// The capacity and free space of the folder's filesystem.
    public func space() throws(Errno) -> FilesystemSpace {
        try descriptor.withRaw { raw throws(Errno) in try FilesystemSpace(of: raw) }
    }
}
