// SPDX-License-Identifier: Apache-2.0

/// One moment, on both clocks that timers use.
public struct ClockPair: Sendable, Hashable {
    /// Time since boot, including sleep (CLOCK_BOOTTIME). This clock cannot be set.
    public var running: Duration
    /// Wall-clock time (CLOCK_REALTIME) in microseconds since 1970. This clock may be set forward or back.
    public var wall: Int64

    /// Creates the moment at which both clocks show these times.
    public init(running: Duration, wall: Int64) {
        self.running = running
        self.wall = wall
    }

    /// The time since boot at which the wall clock will show `time`, unless the wall clock is set before then.
    func running(atWall time: Int64) -> Duration {
        let (difference, overflow) = time.subtractingReportingOverflow(wall)
        return running + .microseconds(overflow ? (time > wall ? Int64.max / 4 : Int64.min / 4) : difference)
    }

    /// What the wall clock will show at this time since boot, unless it is set before then.
    public func wall(atRunning time: Duration) -> Int64 { wall + (time - running).wholeMicroseconds }
}

extension Duration {
    /// The duration in whole microseconds, rounded toward zero; limited to a quarter of Int64's range.
    var wholeMicroseconds: Int64 {
        let parts = components
        let (product, overflow) = parts.seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return parts.seconds < 0 ? .min / 4 : .max / 4 }
        return product + parts.attoseconds / 1_000_000_000_000
    }
}
