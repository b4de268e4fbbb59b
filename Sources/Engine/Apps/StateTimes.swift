// SPDX-License-Identifier: Apache-2.0

package import Lifecycle
import Linux

/// When an app last entered each state, and when it was last used. Policies use these times for their decisions. Times
/// are on the monotonic clock, so they are valid until the machine reboots.
package struct StateTimes: Sendable {
    /// When the app last entered each state, in microseconds; `never` before the first time. The order is: not
    /// running, inactive, active, background, suspended.
    package private(set) var since: (Int64, Int64, Int64, Int64, Int64) = (never, never, never, never, never)
    /// When the app was last used, in microseconds: it was in the foreground, or a connection launched or woke it.
    /// While `isInUse` is true, the app counts as used now.
    package private(set) var lastUse = never
    /// How long the app was suspended in this run, not counting a suspension that has not ended.
    @Packed package var asleep: Duration = .zero
    /// Whether the app is in the foreground.
    package private(set) var isInUse = false

    package static let never = Int64.min

    package mutating func enter(_ state: AppState, at time: Duration) {
        let now = time.microseconds
        if state == .notRunning {
            asleep = .zero
        } else if isAsleep, state != .suspended {
            asleep += time - .microseconds(since.4)
        }
        let isInUse = state == .active || state == .inactive
        if isInUse || self.isInUse { lastUse = now }
        self.isInUse = isInUse
        switch state {
        case .notRunning: since.0 = now
        case .inactive: since.1 = now
        case .active: since.2 = now
        case .background: since.3 = now
        case .suspended: since.4 = now
        }
    }

    /// Whether the app is suspended: it has entered no other state since its last suspension.
    private var isAsleep: Bool { since.4 != Self.never && since.4 >= max(since.0, since.1, since.2, since.3) }

    /// How long the app was suspended in this run, including the current suspension.
    package func asleep(until now: Duration) -> Duration {
        asleep + (isAsleep ? max(.zero, now - .microseconds(since.4)) : .zero)
    }

    /// Records that a client connected to the app, in any state.
    package mutating func use(at time: Duration) { lastUse = max(lastUse, time.microseconds) }

    /// The states that the app has been in, each with the time when the app last entered it.
    package var all: [(state: AppState, time: Duration)] {
        [
            (AppState.notRunning, since.0), (.inactive, since.1), (.active, since.2), (.background, since.3),
            (.suspended, since.4),
        ].filter { $0.1 != Self.never }.map { ($0.0, .microseconds($0.1)) }
    }

    /// The size of the times in a record, in bytes.
    package static let recordBytes = 49

    package func encode(into record: inout RecordWriter) {
        for time in [since.0, since.1, since.2, since.3, since.4, lastUse] { record.put(time) }
        record.put(isInUse)
    }

    package init() {}

    /// Reads the times from a record. A record of an older version of torpord contains no times, so all are then
    /// unknown.
    package init(from record: inout RecordReader) {
        guard !record.isAtEnd else { return }
        since.0 = record.take(Int64.self)
        since.1 = record.take(Int64.self)
        since.2 = record.take(Int64.self)
        since.3 = record.take(Int64.self)
        since.4 = record.take(Int64.self)
        lastUse = record.take(Int64.self)
        isInUse = record.takeFlag()
    }
}
