// SPDX-License-Identifier: Apache-2.0

import CLinux

/// A timer that is a descriptor and can be shared with another process (timerfd_create(2), CLOCK_MONOTONIC).
public enum Timerfd {
    /// Arms it for `time`, once.
    public static func arm(_ fd: Int32, at time: Duration) throws(Errno) {
        let (nanoseconds, overflow) = time.microseconds.multipliedReportingOverflow(by: 1000)
        try call { tlx_timerfd_set(fd, overflow ? .max : max(1, nanoseconds)) }
    }

    /// Disarms it.
    public static func disarm(_ fd: Int32) throws(Errno) { try call { tlx_timerfd_set(fd, 0) } }
}

/// Tells when somebody sets the clock of the machine: an administrator, or a time service that steps it.
public struct ClockWatch: ~Copyable {
    /// Readable after the clock was set, until ``again()``.
    public let descriptor: Descriptor

    /// From now on.
    public init() throws(Errno) { descriptor = Descriptor(owning: try call { tlx_clock_watch() }) }

    /// Waits for the next time.
    public func again() throws(Errno) { try call { tlx_clock_watch_arm(descriptor.raw) } }
}
