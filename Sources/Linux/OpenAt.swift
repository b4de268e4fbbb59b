import CLinux
import Glibc

extension File {
    /// Opens what has that name in an open directory, close-on-exec.
    public static func open(_ name: String, in directory: Int32, _ flags: OpenFlags = .read) throws(Errno) -> Descriptor
    {
        Descriptor(owning: try call { openat(directory, name, flags.rawValue | O_CLOEXEC | O_NOCTTY) })
    }

    /// Where a symbolic link points that was opened itself (``OpenFlags/path`` and ``OpenFlags/noFollow``), at most 4096
    /// bytes of it.
    public static func readLink(descriptor: Int32) throws(Errno) -> String {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = try call { readlinkat(descriptor, "", &buffer, buffer.count) }
        return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The absolute path without links, `.` and `..`, as far as the kernel has it in memory: nothing waits for a disk or a
    /// server. EAGAIN where it has not, ENOSYS before Linux 5.6.
    public static func realPathInMemory(_ path: String) throws(Errno) -> String {
        let descriptor = Descriptor(owning: try call { tlx_open_path_cached(path) })
        return try readLink("/proc/self/fd/\(descriptor.raw)")
    }
}
