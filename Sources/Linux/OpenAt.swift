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
}
