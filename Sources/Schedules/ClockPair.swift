// SPDX-License-Identifier: Apache-2.0

/// A moment on both clocks that timers use.
public struct ClockPair: Sendable, Hashable {
    /// Time since boot, including sleep (CLOCK_BOOTTIME); it cannot be set.
    public var running: Duration
    /// Wall-clock time (CLOCK_REALTIME) in microseconds since 1970; it may be set, also back.
    public var wall: Int64

    /// That point.
    public init(running: Duration, wall: Int64) {
        self.running = running
        self.wall = wall
    }

    /// When the wall clock will show `time`, if it is not set meanwhile.
    func running(atWall time: Int64) -> Duration {
        let (difference, overflow) = time.subtractingReportingOverflow(wall)
        return running + .microseconds(overflow ? (time > wall ? Int64.max / 4 : Int64.min / 4) : difference)
    }

    /// What the wall clock will show then, if it is not set meanwhile.
    public func wall(atRunning time: Duration) -> Int64 { wall + (time - running).wholeMicroseconds }
}

extension Duration {
    /// Whole microseconds, rounded toward zero; limited to a quarter of Int64's range.
    var wholeMicroseconds: Int64 {
        let parts = components
        let (product, overflow) = parts.seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return parts.seconds < 0 ? .min / 4 : .max / 4 }
        return product + parts.attoseconds / 1_000_000_000_000
    }
}
