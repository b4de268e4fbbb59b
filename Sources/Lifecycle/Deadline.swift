// SPDX-License-Identifier: Apache-2.0

/// A time by which something must happen, on CLOCK_MONOTONIC.
public struct Deadline: Sendable, Hashable {
    /// What the deadline is for.
    public let kind: DeadlineKind
    /// When the deadline was armed.
    public internal(set) var started: Duration {
        get { begin }
        set { begin = newValue }
    }
    /// The time at which the deadline counts as missed.
    public internal(set) var at: Duration {
        get { end }
        set { end = newValue }
    }

    @Packed private var begin: Duration
    @Packed private var end: Duration

    init(kind: DeadlineKind, started: Duration, at: Duration) {
        self.kind = kind
        begin = started
        end = at
    }

    init?(_ kind: DeadlineKind, _ allowance: Duration?, now: Duration) {
        guard let allowance else { return nil }
        self.init(kind: kind, started: now, at: now + allowance)
    }

    /// Extends the deadline to `time` from now, at most to `limit` after it was armed. Never makes it earlier.
    mutating func extend(to time: Duration, limit: Duration, now: Duration) {
        at = max(at, min(now + time, started + limit))
    }

    /// Moves the deadline so that it begins at `start`; the time that it gives stays the same.
    mutating func move(toStart start: Duration) {
        at += start - started
        started = start
    }

    /// Moves the deadline later by the length of a pause (while a debugger was attached). If the deadline was armed
    /// during the pause, only the rest of the pause counts. A deadline that begins after the pause, because its message
    /// is still queued, is moved by the whole pause.
    mutating func pause(from: Duration, to: Duration) {
        let pause = started > to ? to - from : to - max(from, started)
        started += pause
        at += pause
    }
}

/// Random numbers for jitter (SplitMix64); the same seed gives the same numbers.
struct JitterSource: Sendable, Hashable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// The generator's state, for the app's record: a torpord that starts with this state continues the sequence of
    /// numbers.
    var record: UInt64 { state }

    /// A number from -1 to 1.
    mutating func next() -> Double {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        z ^= z >> 31
        return Double(z >> 11) / Double(1 << 52) - 1
    }
}
