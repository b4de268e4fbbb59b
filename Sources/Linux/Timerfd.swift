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
