// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A reading of a process's open sockets that goes on piece by piece: each descriptor takes the kernel microseconds, and
/// a busy server has thousands.
public final class SocketReading {
    /// The numbers of those that were found so far, of every kind, in no order; one that is open twice is there twice.
    public private(set) var sockets: [UInt32] = []
    /// How many descriptors were looked at.
    public private(set) var count = 0
    private let directory: OpaquePointer

    /// Begins with a process's first descriptor. EACCES for a process that may not be looked into, ENOENT for one that
    /// is gone.
    public init(_ pid: Int32) throws(Errno) {
        guard let directory = opendir("/proc/\(pid)/fd") else { throw Errno(rawValue: errno) }
        self.directory = directory
    }

    deinit { closedir(directory) }

    /// Reads on, at most until the time (CLOCK_MONOTONIC) is come; whether all were read.
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

    /// The number in `socket:[4242]`; nil for what is no socket, or closed by now.
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
