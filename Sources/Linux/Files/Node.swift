// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

extension File {
    /// Opens a device node or FIFO so that its data can be waited for, without making a terminal the controlling one
    /// and without waiting for a carrier or a peer. A driver may take milliseconds: do not call it on the event loop.
    public static func openNode(_ path: String) throws(Errno) -> Descriptor {
        // If a FIFO is also open for writing here, it has no end-of-file when a writer leaves.
        let isFIFO = try status(path).kind == .fifo
        return try open(path, isFIFO ? [.readWrite, .nonBlocking] : .nonBlocking)
    }

    /// How many bytes can be read now; 0 if that is unknown.
    public static func readableBytes(_ descriptor: Int32) -> Int { max(0, Int(tlx_readable_bytes(descriptor))) }

    /// Whether it is a terminal.
    public static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }
}
