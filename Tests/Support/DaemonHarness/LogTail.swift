// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// Reads what was appended to a log since the last time, through its rotations.
package struct LogTail {
    private let path: String
    /// The file that was read last, kept open: so its inode is nobody else's.
    private var current: Descriptor?
    private var inode: UInt64?
    private var offset: UInt64 = 0

    package init(path: String) { self.path = path }

    /// What came since, in order.
    ///
    /// - Throws: `Trouble` when the file that was read last is not there any more.
    package mutating func read() throws -> [UInt8] {
        var files = try files()
        // In the midst of a rotation a name may be missing for a moment.
        for _ in 0..<100 where files == nil {
            usleep(1_000)
            files = try self.files()
        }
        guard let files else { throw Trouble("\(path): the file that was read last is gone") }
        var bytes: [UInt8] = []
        for file in files.reversed() {
            let status = try File.status(descriptor: file.raw)
            if status.inode != inode {
                inode = status.inode
                current = file
                offset = 0
            }
            if status.size < offset { throw Trouble("\(path) is shorter than it was: \(status.size) < \(offset)") }
            while true {
                let some = try File.read(file.raw, at: offset, maximum: 1 << 18)
                if some.isEmpty { break }
                offset += UInt64(some.count)
                bytes += some
            }
        }
        return bytes
    }

    /// From the current file back to the one that was read last; nil when that is not there.
    private func files() throws -> [Descriptor]? {
        var files: [Descriptor] = []
        while true {
            guard let file = try? File.open(files.isEmpty ? path : "\(path).\(files.count)", .read) else {
                return inode == nil ? files : nil
            }
            files.append(file)
            if let inode, try File.status(descriptor: file.raw).inode == inode { return files }
        }
    }
}
