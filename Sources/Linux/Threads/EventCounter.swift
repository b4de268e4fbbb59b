// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// An eventfd(2) shared by threads: one thread signals it, and another thread's event loop watches it. The last
/// reference closes the descriptor.
public final class EventCounter: Sendable {
    /// The descriptor to watch, which is readable after a signal.
    public let raw: Int32

    /// Creates the eventfd. Throws EMFILE if the process is out of descriptors.
    public init() throws(Errno) { raw = try call { tlx_eventfd() } }

    deinit { close(raw) }

    /// Makes the descriptor readable. May be called from any thread; never blocks.
    public func signal() {
        var one: UInt64 = 1
        _ = write(raw, &one, 8)
    }

    /// Resets the counter. Returns false if it was zero.
    @discardableResult
    public func drain() -> Bool {
        var count: UInt64 = 0
        return read(raw, &count, 8) == 8
    }
}
