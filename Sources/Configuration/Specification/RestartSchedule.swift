// SPDX-License-Identifier: Apache-2.0

import Lifecycle

/// What happens to an app that ends as soon as it is started, again and again.
public struct RestartSchedule: Sendable, Hashable {
    /// The delays before each restart, in order and without jitter.
    public var delays: [Duration]
    /// Whether the app is given up after the last of them; otherwise the last delay is repeated for ever.
    public var givesUp: Bool

    /// From the first end to the last restart that is shown.
    public var total: Duration { delays.reduce(.zero, +) }
}

extension ConfigurationLoader {
    /// The delays of an app that ends at once whenever it is started, for `torpor check`.
    ///
    /// Delays never shrink, so that the first `limit` restarts are the closest to each other that there will be: if the
    /// first of them is out of the window when the app ends once more, nothing ever fills it.
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
