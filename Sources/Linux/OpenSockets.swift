import Glibc

/// Whose sockets they are.
extension ProcFS {
    /// The numbers of the sockets that a process has open, of every kind, in no order; a socket that it has twice is
    /// there twice. nil when it has more than `limit` descriptors. EACCES for processes that may not be looked into.
    public static func sockets(_ pid: Int32, limit: Int) throws(Errno) -> [UInt32]? {
        guard let directory = opendir("/proc/\(pid)/fd") else { throw Errno(rawValue: errno) }
        defer { closedir(directory) }
        let folder = dirfd(directory)
        var result: [UInt32] = []
        var count = 0
        while let entry = readdir(directory) {
            let inode = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { name -> UInt32? in
                    if name[0] == CChar(UInt8(ascii: ".")) { return nil }
                    count += 1
                    return socket(folder, name)
                }
            }
            if count > limit { return nil }
            if let inode { result.append(inode) }
        }
        return result
    }

    /// The number in `socket:[4242]`; nil for what is no socket, or closed by now.
    private static func socket(_ folder: Int32, _ name: UnsafePointer<CChar>) -> UInt32? {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { buffer -> UInt32? in
            let count = buffer.withMemoryRebound(to: CChar.self) {
                readlinkat(folder, name, $0.baseAddress!, $0.count)
            }
            guard count > 9, buffer[0] == UInt8(ascii: "s"), buffer[6] == UInt8(ascii: ":") else { return nil }
            var value: UInt32 = 0
            for byte in buffer[8..<(count - 1)] {
                let digit = byte &- UInt8(ascii: "0")
                guard digit < 10 else { return nil }
                value = value &* 10 &+ UInt32(digit)
            }
            return value
        }
    }

    /// The identity of a process's network namespace: the same for those that share one, also in a kernel that has
    /// only one. EACCES for processes that may not be looked into.
    public static func networkNamespace(_ pid: Int32) throws(Errno) -> UInt64 {
        do throws(Errno) {
            return try File.status("/proc/\(pid)/ns/net").inode
        } catch {
            if error == .noSuchFileOrDirectory, !File.exists("/proc/self/ns/net") { return 0 }
            throw error
        }
    }
}
