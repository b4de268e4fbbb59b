// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

extension File {
    /// Opens the node of a device, or a FIFO, so that its data can be waited for, without becoming its terminal's session
    /// and without waiting for a carrier or another side. A driver may take milliseconds: not for the loop's thread.
    public static func openNode(_ path: String) throws(Errno) -> Descriptor {
        // A FIFO that is also open for writing has no end when a writer leaves.
        let isFIFO = try status(path).kind == .fifo
        return try open(path, isFIFO ? [.readWrite, .nonBlocking] : .nonBlocking)
    }

    /// How many bytes can be read at once; 0 where that cannot be told.
    public static func readableBytes(_ descriptor: Int32) -> Int { max(0, Int(tlx_readable_bytes(descriptor))) }

    /// Whether it is a terminal.
    public static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }
}
