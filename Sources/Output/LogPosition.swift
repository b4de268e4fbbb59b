// SPDX-License-Identifier: Apache-2.0

import Linux

/// A place in a log from which to go on: it stays valid when the file is rotated, and with another daemon.
public struct LogPosition: Hashable, Sendable {
    /// The file.
    public var inode: UInt64 = 0
    /// Bytes from its beginning.
    public var offset: UInt64 = 0
    /// The time of the file's first line, microseconds since 1970, 0 where it had none: a file that was removed and a
    /// later one can have the same inode.
    public var began: Int64 = 0
    /// The time of the last line before the place, likewise: where to go on when the file was removed.
    public var time: Int64 = 0

    init(inode: UInt64 = 0, offset: UInt64 = 0, began: Int64 = 0, time: Int64 = 0) {
        self.inode = inode
        self.offset = offset
        self.began = began
        self.time = time
    }

    /// Reads what `text` wrote; nil for anything else.
    public init?(text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 4, let inode = UInt64(Substring(parts[0])), let offset = UInt64(Substring(parts[1])),
            let began = Int64(Substring(parts[2])), let time = Int64(Substring(parts[3])), began >= 0, time >= 0
        else { return nil }
        self.init(inode: inode, offset: offset, began: began, time: time)
    }

    /// It in one word, to be kept by somebody who does not look into it.
    public var text: String { "\(inode):\(offset):\(began):\(time)" }

    /// Whether a file is the one of this place. One that was empty then has its first line since.
    func isIn(_ status: FileStatus, _ began: Int64) -> Bool {
        status.inode == inode && (self.began == began || (self.began == 0 && offset == 0))
    }
}
