// SPDX-License-Identifier: Apache-2.0

/// A point in time by both clocks that timers go by.
public struct ClockPair: Sendable, Hashable {
    /// Since the machine was booted, its sleep included (CLOCK_BOOTTIME): nobody sets this clock.
    public var running: Duration
    /// By the clock on the wall (CLOCK_REALTIME), microseconds since 1970: it may be set, also back.
    public var wall: Int64

    /// That point.
    public init(running: Duration, wall: Int64) {
        self.running = running
        self.wall = wall
    }

    /// When the wall shows this, if nobody sets the clock.
    func running(atWall time: Int64) -> Duration {
        let (difference, overflow) = time.subtractingReportingOverflow(wall)
        return running + .microseconds(overflow ? (time > wall ? Int64.max / 4 : Int64.min / 4) : difference)
    }

    /// What the wall shows then, if nobody sets the clock.
    public func wall(atRunning time: Duration) -> Int64 { wall + (time - running).wholeMicroseconds }
}

extension Duration {
    /// Whole microseconds, rounded down, as far as they can be told.
    var wholeMicroseconds: Int64 {
        let parts = components
        let (product, overflow) = parts.seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return parts.seconds < 0 ? .min / 4 : .max / 4 }
        return product + parts.attoseconds / 1_000_000_000_000
    }
}
