// SPDX-License-Identifier: Apache-2.0

import Linux
import Varlink

/// Bytes to write to a client.
struct OutboundBuffer {
    private var bytes: [UInt8] = []
    private var start = 0

    /// Bytes not written yet.
    var count: Int { bytes.count - start }
    var isEmpty: Bool { start == bytes.count }

    /// Appends a message with its NUL.
    mutating func append(_ message: JSON) {
        message.append(to: &bytes)
        bytes.append(0)
    }

    func withBytes<T>(_ body: (UnsafeRawBufferPointer) throws(Errno) -> T) throws(Errno) -> T {
        let result: Result<T, Errno> = bytes.withUnsafeBytes { buffer in
            do throws(Errno) {
                return .success(try body(UnsafeRawBufferPointer(rebasing: buffer[start...])))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Removes the first `count` bytes, which were written.
    mutating func drop(_ count: Int) {
        start += count
        if start == bytes.count {
            // Free the buffer, since connections are idle most of the time.
            bytes = []
            start = 0
        } else if start > 1 << 20 {
            bytes.removeFirst(start)
            start = 0
        }
    }
}
