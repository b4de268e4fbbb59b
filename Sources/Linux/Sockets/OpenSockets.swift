// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Reads the list of a process's open sockets in steps, because each descriptor takes the kernel microseconds and a
/// busy server has thousands.
public final class SocketReading {
    /// Inode numbers of the sockets found so far, unordered. A socket with two descriptors appears twice.
    public private(set) var sockets: [UInt32] = []
    /// How many descriptors were inspected.
    public private(set) var count = 0
    private let directory: OpaquePointer

    /// Opens the process's descriptor table. Throws EACCES if this process may not inspect the other process, ENOENT
    /// if the other process has ended.
    public init(_ pid: Int32) throws(Errno) {
        guard let directory = opendir("/proc/\(pid)/fd") else { throw Errno(rawValue: errno) }
        self.directory = directory
    }

    deinit { closedir(directory) }

    /// Continues reading until `deadline` (CLOCK_MONOTONIC) at the latest. Returns true when all descriptors were
    /// read.
    public func read(until deadline: Duration? = nil) -> Bool {
        let folder = dirfd(directory)
        while let entry = readdir(directory) {
            let inode = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { name -> UInt32? in
                    if name[0] == CChar(UInt8(ascii: ".")) { return nil }
                    count += 1
                    return Self.socket(folder, name)
                }
            }
            if let inode { sockets.append(inode) }
            if let deadline, count % 16 == 0, Clock.monotonic() >= deadline { return false }
        }
        return true
    }

    /// The inode number in a link `socket:[4242]`; nil if the descriptor is not a socket or was closed.
    static func socket(_ folder: Int32, _ name: UnsafePointer<CChar>) -> UInt32? {
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
}

extension ProcFS {
    /// The inode number that identifies a process's network namespace; 0 for all processes if the kernel has only one
    /// namespace. Throws EACCES if this process may not inspect the other process.
    public static func networkNamespace(_ pid: Int32) throws(Errno) -> UInt64 {
        do throws(Errno) {
            return try File.status("/proc/\(pid)/ns/net").inode
        } catch {
            if error == .noSuchFileOrDirectory, !File.exists("/proc/self/ns/net") { return 0 }
            throw error
        }
    }
}
