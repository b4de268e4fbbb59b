// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Files below /proc and /sys, which the kernel generates.
extension File {
    /// Reads the whole content of a file below /proc or /sys, which the kernel generates when it is read. Usually this
    /// takes one read(2) and no heap memory. Throws EFBIG if the content has more than `limit` bytes.
    public static func withKernelFile<T>(
        _ path: String,
        limit: Int = 1 << 20,
        _ body: (UnsafeRawBufferPointer) -> T
    ) throws(Errno) -> T {
        try withKernelFile(at: path, limit: limit, body)
    }

    /// The same for a path that is not in a `String`.
    ///
    /// - Parameters:
    ///   - directory: the open directory from which a relative path is found.
    ///   - size: the buffer's size in bytes. Content of up to half of it takes one read(2).
    static func withKernelFile<T>(
        at path: UnsafePointer<CChar>,
        in directory: Int32 = AT_FDCWD,
        limit: Int = 1 << 20,
        buffer size: Int = 4096,
        _ body: (UnsafeRawBufferPointer) -> T
    ) throws(Errno) -> T {
        let raw = try call { Glibc.openat(directory, path, O_RDONLY | O_CLOEXEC) }
        defer { Glibc.close(raw) }
        return try withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) { buffer throws(Errno) -> T in
            let count = try call { Glibc.read(raw, buffer.baseAddress, buffer.count) }
            let start = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            // A read returns less than the buffer's size only at the end of the file, or if the next line does not fit
            // into the kernel's own buffer, a page. A line is never longer than half a page, so if half the buffer is
            // free, the file has ended.
            if count <= buffer.count / 2 { return body(start) }
            let content = [UInt8](start) + (try read(descriptor: raw, limit: limit))
            return content.withUnsafeBytes(body)
        }
    }

    /// The size of a buffer for the short files of a process, such as `stat`. Swift takes buffers of up to this size from
    /// the stack.
    static let shortFile = 1024

    /// Writes to an existing file with one write(2), as control files in /proc, /sys and cgroups need.
    public static func writeControl(_ path: String, _ text: String) throws(Errno) {
        try writeControl(at: path, text)
    }

    /// The same for a path that is not in a `String`.
    static func writeControl(at path: UnsafePointer<CChar>, _ text: String) throws(Errno) {
        let raw = try call { Glibc.open(path, O_WRONLY | O_CLOEXEC) }
        defer { Glibc.close(raw) }
        var text = text
        // Not in the closure, which cannot throw an Errno.
        let code = text.withUTF8 { bytes -> Int32 in
            while Glibc.write(raw, bytes.baseAddress, bytes.count) < 0 {
                if errno != EINTR { return errno }
            }
            return 0
        }
        if code != 0 { throw Errno(rawValue: code) }
    }
}
