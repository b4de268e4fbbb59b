// SPDX-License-Identifier: Apache-2.0

import Lifecycle

/// The restarts of an app that exits as soon as it is started, each time.
public struct RestartSchedule: Sendable, Hashable {
    /// The delays before each restart, in order and without jitter.
    public var delays: [Duration]
    /// Whether the supervisor gives up after the last of ``delays``; otherwise the last delay repeats for ever.
    public var givesUp: Bool

    /// The time from the first exit to the last restart in ``delays``.
    public var total: Duration { delays.reduce(.zero, +) }
}

extension ConfigurationLoader {
    /// The restart delays of an app that exits as soon as it is started, each time; for `torpor check`.
    ///
    /// Delays never shrink, so the first `limit` restarts are the closest together of all. If the first of these
    /// restarts is outside the window at the next exit, the window never contains `limit` restarts, and the
    /// supervisor never gives up.
    public static func restartSchedule(for app: AppSpecification) -> RestartSchedule {
        let backoff = app.rules.backoff
        guard app.rules.restart != .never, backoff.limit > 0 else { return RestartSchedule(delays: [], givesUp: true) }
        let delays = (0..<backoff.limit).map { backoff.delay(attempt: $0) }
        let schedule = RestartSchedule(delays: delays, givesUp: true)
        if schedule.total < backoff.window { return schedule }
        let last = delays.firstIndex { $0 >= delays[delays.count - 1] } ?? 0
        return RestartSchedule(delays: Array(delays[...last]), givesUp: false)
    }
}
