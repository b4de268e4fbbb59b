// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// An eventfd(2) with which one thread wakes the event loop of another thread. The descriptor is closed when the last
/// reference is gone.
public final class EventCounter: Sendable {
    /// The descriptor to watch. It is readable after ``signal()``, until ``drain()`` is called.
    public let raw: Int32

    /// Creates the eventfd. Throws EMFILE if the process is out of descriptors.
    public init() throws(Errno) { raw = try call { tlx_eventfd() } }

    deinit { close(raw) }

    /// Makes the descriptor readable. May be called from any thread; never blocks.
    public func signal() {
        var one: UInt64 = 1
        _ = write(raw, &one, 8)
    }

    /// Resets the counter to zero. Returns false if it was already zero.
    @discardableResult
    public func drain() -> Bool {
        var count: UInt64 = 0
        return read(raw, &count, 8) == 8
    }
}
