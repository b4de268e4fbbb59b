// SPDX-License-Identifier: Apache-2.0

import CLinux

/// Moves bytes between pipes and files without copying them through this process. None of these functions blocks on a
/// pipe.
public enum Splice {
    /// Moves up to `size` bytes from a pipe into a file at `offset`, or into another pipe. Returns the number of bytes
    /// moved: 0 at the end of the pipe, nil if no bytes can be moved now (EAGAIN).
    public static func move(from pipe: Int32, to target: Int32, offset: Int64? = nil, size: Int) throws(Errno) -> Int? {
        guard var position = offset else {
            return try callUnlessBlocked { tlx_splice(pipe, nil, target, nil, size) }
        }
        return try callUnlessBlocked { tlx_splice(pipe, nil, target, &position, size) }
    }

    /// Moves up to `size` bytes of a file, starting at `offset`, into a pipe.
    public static func move(file: Int32, offset: Int64, to pipe: Int32, size: Int) throws(Errno) -> Int? {
        var position = offset
        return try callUnlessBlocked { tlx_splice(file, &position, pipe, nil, size) }
    }

    /// Copies from one pipe into another without consuming the bytes of the first.
    public static func copy(from pipe: Int32, to other: Int32, size: Int) throws(Errno) -> Int? {
        try callUnlessBlocked { tlx_tee(pipe, other, size) }
    }

    /// The capacity of a pipe in bytes.
    public static func capacity(_ pipe: Int32) throws(Errno) -> Int { Int(try call { tlx_pipe_size(pipe) }) }

    /// Sets the capacity of a pipe in bytes. Throws EPERM beyond `/proc/sys/fs/pipe-max-size` or a user's quota.
    public static func setCapacity(_ pipe: Int32, _ bytes: Int) throws(Errno) {
        try call { tlx_set_pipe_size(pipe, Int32(clamping: bytes)) }
    }

    /// The number of unread bytes in a pipe or socket.
    public static func waiting(_ descriptor: Int32) throws(Errno) -> Int {
        Int(try call { tlx_readable_bytes(descriptor) })
    }
}
