// SPDX-License-Identifier: Apache-2.0

import Linux

/// A position in a log from which to continue reading. It stays valid when the file is rotated and when torpord
/// restarts.
public struct LogPosition: Hashable, Sendable {
    /// The inode number of the file.
    public var inode: UInt64 = 0
    /// The offset in the file, in bytes.
    public var offset: UInt64 = 0
    /// The time of the file's first line in microseconds since 1970, 0 if the file was empty. It distinguishes files
    /// that had the same inode number one after the other.
    public var began: Int64 = 0
    /// The time of the last line before the position, in microseconds since 1970. If the file was removed, reading
    /// continues at this time.
    public var time: Int64 = 0

    init(inode: UInt64 = 0, offset: UInt64 = 0, began: Int64 = 0, time: Int64 = 0) {
        self.inode = inode
        self.offset = offset
        self.began = began
        self.time = time
    }

    /// Parses a position; nil if `text` is not a position.
    public init?(text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 4, let inode = UInt64(Substring(parts[0])), let offset = UInt64(Substring(parts[1])),
            let began = Int64(Substring(parts[2])), let time = Int64(Substring(parts[3])), began >= 0, time >= 0
        else { return nil }
        self.init(inode: inode, offset: offset, began: began, time: time)
    }

    /// The position as one word, for clients to store without interpreting it.
    public var text: String { "\(inode):\(offset):\(began):\(time)" }

    /// Whether the position is in this file: inode and first line must match. If the file was empty when the position
    /// was taken, the inode suffices, because the first line may have been written later.
    func isIn(_ status: FileStatus, _ began: Int64) -> Bool {
        status.inode == inode && (self.began == began || (self.began == 0 && offset == 0))
    }
}
