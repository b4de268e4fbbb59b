// SPDX-License-Identifier: Apache-2.0

import TorporAPI

/// An app changed its state, or failed.
struct StateChange: Hashable, Sendable {
    var sequence: Int64
    /// When the state changed, in microseconds since 1970.
    var at: Int64
    /// The state before, if the event has it.
    var from: ShownState?
    /// The new state; nil for a failure, which is a point in time.
    var to: ShownState?

    /// Reasons for an exit that are no failures.
    private static let wanted: Set = [
        "exit-success", "stopped", "shutdown", "evicted", "exits-on-suspend", "replaced", "permission-changed",
        "protected-data-open",
        "force-quit",
    ]

    /// Nil unless the event is a change of state or a failure.
    init?(_ event: EventRecord) {
        switch event.kind {
        case "state":
            guard let to = event.to.flatMap({ ShownState($0) }) else { return nil }
            self.to = to
            from = event.from.flatMap { ShownState($0) }
        case "exit":
            guard !Self.wanted.contains(event.reason ?? "") else { return nil }
        default: return nil
        }
        sequence = event.sequence
        at = event.at
    }
}

/// One column of an app's lane in the timeline.
struct LaneCell: Hashable, Sendable {
    /// The state the app was in for most of the column's time; nil: unknown.
    var state: ShownState?
    /// The app failed during this column's time.
    var isFailure = false
}

enum Lanes {
    /// Divides a time span into columns.
    ///
    /// - Parameters:
    ///   - current: the state now, used if no change of the app is known.
    ///   - now: the current time; later columns are unknown.
    static func cells(
        _ changes: [StateChange],
        current: ShownState,
        from start: Int64,
        to end: Int64,
        now: Int64,
        knownSince: Int64,
        columns: Int
    ) -> [LaneCell] {
        guard columns > 0, end > start else { return [] }
        var cells: [LaneCell] = []
        cells.reserveCapacity(columns)
        var index = 0
        let first = changes.first { $0.to != nil }
        // The state before the first known change. If that change names no earlier state, it is usually a first launch.
        var state: ShownState? = first.map { $0.from } ?? current
        for column in 0..<columns {
            let from = start + (end - start) * Int64(column) / Int64(columns)
            let to = start + (end - start) * Int64(column + 1) / Int64(columns)
            var times: [ShownState: Int64] = [:]
            var cell = LaneCell()
            var since = from
            func passes(_ until: Int64) {
                let until = min(until, now)
                if let state, until > since { times[state, default: 0] += until - max(since, knownSince) }
                since = max(since, until)
            }
            while index < changes.count, changes[index].at < to {
                let change = changes[index]
                passes(max(from, change.at))
                if let new = change.to { state = new } else if change.at >= from { cell.isFailure = true }
                index += 1
            }
            passes(to)
            cell.state = times.max { ($0.value, $1.key) < ($1.value, $0.key) }.flatMap { $0.value > 0 ? $0.key : nil }
            // Show the newest state, however short it has lasted.
            if cell.state == nil, from <= now, now <= to, now >= knownSince { cell.state = state }
            cells.append(cell)
        }
        return cells
    }
}
