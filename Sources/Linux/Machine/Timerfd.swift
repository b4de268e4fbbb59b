// SPDX-License-Identifier: Apache-2.0

import CLinux

/// A timer that can be shared with another process (timerfd_create(2), CLOCK_MONOTONIC).
public enum Timerfd {
    /// Arms the timer to expire once at `time`.
    public static func arm(_ fd: Int32, at time: Duration) throws(Errno) {
        let (nanoseconds, overflow) = time.microseconds.multipliedReportingOverflow(by: 1000)
        try call { tlx_timerfd_set(fd, overflow ? .max : max(1, nanoseconds)) }
    }

    /// Disarms the timer.
    public static func disarm(_ fd: Int32) throws(Errno) { try call { tlx_timerfd_set(fd, 0) } }
}

/// Reports when the wall clock is set by an administrator or stepped by a time service.
public struct ClockWatch: ~Copyable {
    /// The descriptor to watch. After the clock was set, it is readable until ``again()`` is called.
    public let descriptor: Descriptor

    /// Starts to watch the wall clock.
    public init() throws(Errno) { descriptor = Descriptor(owning: try call { tlx_clock_watch() }) }

    /// Arms the watch again. Call this each time the clock was set, because otherwise the next change is not reported.
    public func again() throws(Errno) { try call { tlx_clock_watch_arm(descriptor.raw) } }
}
