// SPDX-License-Identifier: Apache-2.0

import Linux
import Varlink

/// Bytes to write to a client.
struct OutboundBuffer: ~Copyable {
    private var text = JSONWriter()
    private var start = 0

    /// Bytes not written yet.
    var count: Int { text.count - start }
    var isEmpty: Bool { start == text.count }

    /// Appends a message with its NUL. `send` is called while a long message is being written: it sends as many of the
    /// waiting bytes as the socket takes, and returns their number.
    mutating func append(sending send: @escaping (UnsafeRawBufferPointer) -> Int, _ write: (inout JSONWriter) -> Void) {
        text.outlet = start == 0 ? send : nil
        write(&text)
        text.outlet = nil
        text.append(0 as UInt8)
    }

    func withBytes<T>(_ body: (UnsafeRawBufferPointer) throws(Errno) -> T) throws(Errno) -> T {
        try text.withBytes { bytes throws(Errno) in try body(UnsafeRawBufferPointer(rebasing: bytes[start...])) }
    }

    /// Removes the first `count` bytes, which were written.
    mutating func drop(_ count: Int) {
        start += count
        if start == text.count {
            // Free the memory, since connections are idle most of the time.
            text.clear()
            start = 0
        } else if start > 1 << 20 {
            text.removeFirst(start)
            start = 0
        }
    }
}
