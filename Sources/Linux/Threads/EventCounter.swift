// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// An eventfd(2) that several threads hold: one signals, the loop of another watches it. Closed with the last reference.
public final class EventCounter: Sendable {
    /// The descriptor to watch, readable after a signal.
    public let raw: Int32

    /// Makes one. Errors: out of descriptors.
    public init() throws(Errno) { raw = try call { tlx_eventfd() } }

    deinit { close(raw) }

    /// Makes it readable; from any thread, never waits.
    public func signal() {
        var one: UInt64 = 1
        _ = write(raw, &one, 8)
    }

    /// Takes the signals back; false when there was none.
    @discardableResult
    public func drain() -> Bool {
        var count: UInt64 = 0
        return read(raw, &count, 8) == 8
    }
}
