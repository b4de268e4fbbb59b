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

    func isSameFile(as other: PolicyFile) -> Bool { device == other.device && inode == other.inode }

    /// A hash of the library's content; nil if it cannot be read. It tells builds apart; whoever may write the file is
    /// trusted. Reads from the current position of the library's descriptor.
    static func content(of library: TrustedLibrary) -> UInt64? {
        guard let bytes = try? File.read(descriptor: library.library.raw, limit: 64 << 20) else { return nil }
        // FNV-1a with 64 bits.
        return bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    /// Whether a program has written to the file since: a loaded library then contains parts of the new one. False if
    /// another file is at the path now.
    var isOverwritten: Bool {
        guard let status = try? File.status(path) else { return false }
        let now = PolicyFile(path, status)
        return isSameFile(as: now) && now != self
    }
}

/// A library that was opened in this process.
struct OpenedLibrary {
    var file: PolicyFile
    /// The hash of its content; nil if that could not be read.
    var content: UInt64?
}
