// SPDX-License-Identifier: Apache-2.0

import CCurl
import WireText

/// An incremental SHA-256. It is Sendable, because only one owner uses it at a time: the event loop or a job.
final class Digest: @unchecked Sendable {
    private let context: OpaquePointer

    /// Nil if the process is out of memory.
    init?() {
        guard let context = ccurl_digest_new() else { return nil }
        self.context = context
    }

    deinit { ccurl_digest_free(context) }

    func reset() { ccurl_digest_reset(context) }

    func update(_ bytes: UnsafeRawBufferPointer) { ccurl_digest_update(context, bytes.baseAddress, bytes.count) }

    /// Returns the SHA-256 as 64 lower-case hexadecimal digits. Call ``reset()`` before the object is used again.
    func finish() -> String {
        let digits = Array("0123456789abcdef".utf8)
        let bytes = [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
            ccurl_digest_finish(context, buffer.baseAddress)
            count = 32
        }
        return String(wire: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }
}
