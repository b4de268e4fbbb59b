// SPDX-License-Identifier: Apache-2.0

import Lifecycle

/// The delays before the restarts of an app that exits immediately after each start.
public struct RestartSchedule: Sendable, Hashable {
    /// The delay before each restart, without jitter.
    public var delays: [Duration]
    /// Whether the supervisor gives up after the last delay. If not, the last delay is repeated without end.
    public var givesUp: Bool

    /// The time from the first exit to the last restart in ``delays``.
    public var total: Duration { delays.reduce(.zero, +) }
}

extension ConfigurationLoader {
    /// The restart delays of an app that exits immediately after each start, for `torpor check`.
    ///
    /// The supervisor gives up when `limit` restarts happen within the window. Because delays never decrease, the first
    /// `limit` restarts take the least time. If even they take longer than the window, the supervisor never gives up.
    public static func restartSchedule(for app: AppSpecification) -> RestartSchedule {
        let backoff = app.rules.backoff
        guard app.rules.restart != .never, backoff.limit > 0 else { return RestartSchedule(delays: [], givesUp: true) }
        // With `stable_after = "0s"`, every run counts as one that went well, so the delay never grows.
        let isStable = backoff.stableAfter <= .zero
        let delays = (0..<backoff.limit).map { backoff.delay(attempt: isStable ? 0 : $0) }
        let schedule = RestartSchedule(delays: delays, givesUp: true)
        if schedule.total < backoff.window { return schedule }
        let last = delays.firstIndex { $0 >= delays[delays.count - 1] } ?? 0
        return RestartSchedule(delays: Array(delays[...last]), givesUp: false)
    }
}
