// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

extension Folder {
    /// Opens a file in it, never through a link, never waiting for a FIFO's other end.
    public func openFile(_ name: FileName) throws(Errno) -> Descriptor { try open(name, [.read, .nonBlocking]) }

    /// Opens a file in it for reading and writing, which is made if it is not there; never through a link.
    ///
    /// - Parameter isNew: whether one that is there already is an error (EEXIST).
    public func openOrMakeFile(_ name: FileName, mode: UInt32, isNew: Bool = false) throws(Errno) -> Descriptor {
        let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | (isNew ? O_EXCL : 0)
        return try descriptor.withRaw { raw throws(Errno) in
            Descriptor(owning: try call { openat(raw, name.bytes, flags, mode_t(mode)) })
        }
    }

    /// Moves what is no folder to a name in another folder of the same filesystem, in place of what has that name and is
    /// none either. Errors: EISDIR, EXDEV.
    public func rename(_ name: FileName, to folder: Folder, _ other: FileName) throws(Errno) {
        _ = try descriptor.withRaw { raw throws(Errno) in
            try folder.descriptor.withRaw { target throws(Errno) in
                try call { renameat(raw, name.bytes, target, other.bytes) }
            }
        }
    }

    /// How much room its filesystem has.
    public func space() throws(Errno) -> FilesystemSpace {
        try descriptor.withRaw { raw throws(Errno) in try FilesystemSpace(of: raw) }
    }
}
