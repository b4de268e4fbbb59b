// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The kernel's clocks.
public enum Clock {
    /// The time since boot, not counting the time in which the machine was suspended (CLOCK_MONOTONIC).
    public static func monotonic() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Duration(secondsComponent: Int64(time.tv_sec), attosecondsComponent: Int64(time.tv_nsec) * 1_000_000_000)
    }

    /// CLOCK_MONOTONIC in nanoseconds. For frequent measurements, because arithmetic with a Duration takes 128 bits and
    /// is slower.
    public static func monotonicNanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }

    /// The time since boot, including the time in which the machine was suspended (CLOCK_BOOTTIME).
    public static func boot() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Duration(secondsComponent: Int64(time.tv_sec), attosecondsComponent: Int64(time.tv_nsec) * 1_000_000_000)
    }

    /// The processor time that the calling thread has used (CLOCK_THREAD_CPUTIME_ID).
    public static func threadProcessorTime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Duration(secondsComponent: Int64(time.tv_sec), attosecondsComponent: Int64(time.tv_nsec) * 1_000_000_000)
    }

    /// The wall clock in microseconds since 1970 (CLOCK_REALTIME).
    public static func realtimeMicroseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// Clock ticks per second, the unit of times in `/proc/PID/stat` (100 on all known machines).
    public static let ticksPerSecond = UInt64(max(1, sysconf(Int32(_SC_CLK_TCK))))

    /// Converts clock ticks to a duration.
    public static func duration(ticks: UInt64) -> Duration {
        .microseconds(Int64(clamping: ticks)) * Int(1_000_000 / ticksPerSecond)
    }
}

extension Duration {
    /// The duration in whole microseconds, rounded toward zero and clamped to Int64.
    public var microseconds: Int64 {
        // `components` takes ten times as long as this division.
        Int64(clamping: attoseconds / 1_000_000_000_000)
    }

    /// Seconds as a floating-point number, for display.
    public var inSeconds: Double {
        // Lists ask this twice of each app, and `components` takes ten times as long as this division.
        let all = attoseconds
        let seconds = all / 1_000_000_000_000_000_000
        let rest = all - seconds * 1_000_000_000_000_000_000
        return Double(Int64(truncatingIfNeeded: seconds)) + Double(Int64(truncatingIfNeeded: rest)) / 1e18
    }
}
