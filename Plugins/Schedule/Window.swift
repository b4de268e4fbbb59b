// SPDX-License-Identifier: Apache-2.0

import CalendarTime

/// Intervals of time. Each one begins with an event of the calendar `from`, and ends with one of the calendar `to`.
struct Window {
    let from: CalendarExpression
    let to: CalendarExpression

    /// Whether a time is in an interval, and when that interval, or the gap between two intervals, begins and ends.
    /// Times are in microseconds since 1970.
    struct Phase: Equatable {
        var isOpen: Bool
        /// When the phase began; nil if it has always lasted.
        var since: Int64?
        /// When the next phase may begin; nil if none follows.
        var until: Int64?

        /// Whether the phase still lasts at the time `moment`.
        func holds(at moment: Int64) -> Bool { moment >= since ?? .min && moment < until ?? .max }
    }

    /// The phase at the time `moment`.
    ///
    /// A begin within an interval has no effect. An end and a begin at the same time start a new interval.
    func phase(at moment: Int64) -> Phase {
        let began = from.latest(notAfter: moment)
        let ended = to.latest(notAfter: moment)
        guard let began, began >= ended ?? .min else {
            return Phase(
                isOpen: false,
                since: ended.map { began.flatMap { to.next(after: $0) } ?? to.next(after: -1) ?? $0 },
                until: from.next(after: moment)
            )
        }
        let first = ended.map { from.next(after: $0 - 1) ?? began } ?? from.next(after: -1)
        return Phase(isOpen: true, since: first ?? began, until: to.next(after: moment))
    }
}
