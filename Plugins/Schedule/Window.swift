// SPDX-License-Identifier: Apache-2.0

import CalendarTime

/// Intervals of time between calendar events of begin and of end.
struct Window {
    let from: CalendarExpression
    let to: CalendarExpression

    /// The calendar at a moment: in an interval or between two. All times in microseconds since 1970.
    struct Phase: Equatable {
        var isOpen: Bool
        /// When it began; nil for ever ago.
        var since: Int64?
        /// When the next one may begin; nil for never.
        var until: Int64?

        /// Whether the phase still holds at that moment.
        func holds(at moment: Int64) -> Bool { moment >= since ?? .min && moment < until ?? .max }
    }

    /// The phase at a moment.
    ///
    /// A begin within an interval has no effect; an end and a begin at the same moment start a new interval.
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
