import CLinux
import Glibc

extension UnsafeRawBufferPointer {
    /// The distance to the first newline, or nil.
    public var firstNewline: Int? {
        guard let baseAddress, let hit = memchr(baseAddress, 0x0a, count) else { return nil }
        return UnsafeRawPointer(hit) - baseAddress
    }

    /// The distance to the last newline, or nil.
    public var lastNewline: Int? {
        guard let baseAddress, let hit = tlx_memrchr(baseAddress, 0x0a, count) else { return nil }
        return hit - baseAddress
    }
}
