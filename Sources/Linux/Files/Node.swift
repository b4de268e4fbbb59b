// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

extension File {
    /// Opens a device node or FIFO for reading and polling, without waiting for a modem's carrier or a FIFO's writer. A
    /// terminal does not become the controlling terminal. Do not call this on the event loop, because a driver may take
    /// milliseconds.
    public static func openNode(_ path: String) throws(Errno) -> Descriptor {
        // Open a FIFO for writing too: otherwise it would report end-of-file whenever its last writer closes it.
        let isFIFO = try status(path).kind == .fifo
        return try open(path, isFIFO ? [.readWrite, .nonBlocking] : .nonBlocking)
    }

    /// How many bytes can be read now; 0 if unknown.
    public static func readableBytes(_ descriptor: Int32) -> Int { max(0, Int(tlx_readable_bytes(descriptor))) }

    /// Whether the descriptor is a terminal.
    public static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }
}
