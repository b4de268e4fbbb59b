// SPDX-License-Identifier: Apache-2.0

import Linux
import Policies

/// The file of a library at the time when it was loaded.
struct PolicyFile: Hashable {
    private let path: String
    private let device: UInt64
    private let inode: UInt64
    private let size: UInt64
    private let modified: Int64

    /// nil if the file cannot be read.
    init?(_ library: TrustedLibrary) {
        guard let status = try? File.status(descriptor: library.library.raw) else { return nil }
        self.init(library.path, status)
    }

    private init(_ path: String, _ status: FileStatus) {
        self.path = path
        (device, inode, size, modified) = (status.device, status.inode, status.size, status.modifiedNanoseconds)
    }

    /// Whether a program has written to the file since: a loaded library then contains parts of the new one. False if
    /// another file is at the path now.
    var isOverwritten: Bool {
        guard let status = try? File.status(path) else { return false }
        let now = PolicyFile(path, status)
        return now.device == device && now.inode == inode && now != self
    }
}
