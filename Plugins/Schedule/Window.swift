// SPDX-License-Identifier: Apache-2.0

import CalendarTime

/// The stretches of time between the moments at which something begins and those at which it ends.
struct Window {
    let from: CalendarExpression
    let to: CalendarExpression

    /// Where the calendar stands: within a stretch or between two. All in microseconds since 1970.
    struct Phase: Equatable {
        var isOpen: Bool
        /// When it began; nil when that was never.
        var since: Int64?
        /// When the next one may begin; nil when that is never.
        var until: Int64?

        /// Whether it is still the one at that moment.
        func holds(at moment: Int64) -> Bool { moment >= since ?? .min && moment < until ?? .max }
    }

    /// Where the calendar stands at a moment.
    ///
    /// What begins again before it ended goes on; what ends and begins at the same moment is a new stretch.
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
