// SPDX-License-Identifier: Apache-2.0

/// A moment, in microseconds of CLOCK_MONOTONIC.
///
/// Sums and differences saturate: nothing here overflows, whatever a view contains.
public struct Time: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The time in microseconds of CLOCK_MONOTONIC.
    public var microseconds: Int64

    /// Creates a moment.
    @inlinable
    public init(microseconds: Int64) { self.microseconds = microseconds }

    /// Creates a moment from a time in a view; nil if that time is TORPOR_NEVER.
    @inlinable
    init?(known microseconds: Int64) {
        if microseconds == .min { return nil }
        self.microseconds = microseconds
    }

    /// Whether the left moment is earlier.
    @inlinable
    public static func < (left: Time, right: Time) -> Bool { left.microseconds < right.microseconds }

    /// How much later the left moment is; negative if it is earlier.
    @inlinable
    public static func - (left: Time, right: Time) -> Duration {
        let (difference, overflow) = left.microseconds.subtractingReportingOverflow(right.microseconds)
        return .microseconds(overflow ? (left < right ? Int64.min : Int64.max) : difference)
    }

    /// The time that is `count` microseconds later.
    @inlinable
    public func advanced(byMicroseconds count: Int64) -> Time {
        let (sum, overflow) = microseconds.addingReportingOverflow(count)
        return Time(microseconds: overflow ? (count < 0 ? .min : .max) : sum)
    }

    /// The moment that is `duration` later. In loops over many apps, ``advanced(byMicroseconds:)`` is faster.
    @inlinable
    public static func + (time: Time, duration: Duration) -> Time {
        time.advanced(byMicroseconds: duration.microseconds)
    }

    /// The moment that is `duration` earlier.
    @inlinable
    public static func - (time: Time, duration: Duration) -> Time {
        let microseconds = duration.microseconds
        let (difference, overflow) = time.microseconds.subtractingReportingOverflow(microseconds)
        return Time(microseconds: overflow ? (microseconds < 0 ? .max : .min) : difference)
    }

    /// The number of microseconds, with its unit.
    public var description: String { "\(microseconds) µs" }
}

extension Duration {
    /// The duration in whole microseconds; the minimum or maximum of Int64 if they do not fit.
    @inlinable
    public var microseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        let (sum, overflowOfSum) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        return overflow || overflowOfSum ? (seconds < 0 ? .min : .max) : sum
    }

    /// The duration in words, in its two largest units: `2 h 5 min`, `40 s`, `250 ms`.
    public var inWords: String {
        let total = microseconds.magnitude
        let sign = self < .zero ? "-" : ""
        let units: [(String, UInt64)] = [
            ("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000),
        ]
        guard let first = units.firstIndex(where: { total >= $0.1 }) else {
            if total >= 1_000 { return sign + "\(total / 1_000) ms" }
            return total == 0 ? "0 s" : sign + "\(total) µs"
        }
        let (name, length) = units[first]
        let whole = sign + "\(total / length) \(name)"
        guard first + 1 < units.count else { return whole }
        let rest = total % length / units[first + 1].1
        return rest == 0 ? whole : whole + " \(rest) \(units[first + 1].0)"
    }
}
