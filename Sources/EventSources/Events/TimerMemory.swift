// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux
package import Schedules
package import Store
package import Varlink

/// The part of a timer's state that the store contains as JSON. The time when the timer last fired has a column of its
/// own in the store.
package struct TimerMemory {
    package private(set) var history: TimerHistory
    /// Whether the state was stored during the current boot. If not, its times since the boot are not valid.
    package private(set) var isOfThisBoot = true

    package init(_ history: TimerHistory) { self.history = history }

    /// Decodes a stored row. The row is not trusted: each value is limited to its valid range.
    package init(_ row: StoredSchedule, now: ClockPair) {
        history = TimerHistory(now: now)
        history.lastWall = row.lastFired.map { max(0, $0) }
        let json = row.learned.flatMap { try? JSON.parse($0) } ?? .emptyObject
        isOfThisBoot = !ThisProcess.bootID.isEmpty && json["boot"]?.stringValue == ThisProcess.bootID
        if let since = json["since"]?.intValue { history.sinceWall = max(0, since) }
        history.isUnfinished = json["unfinished"]?.boolValue ?? false
        guard isOfThisBoot else { return }
        if let since = json["since_boot_us"]?.intValue {
            history.since = min(max(.zero, .microseconds(since)), now.running)
        }
        // The time from which intervals count must lie between 1970 and now.
        let oldest = now.running - .microseconds(max(0, now.wall))
        history.anchor = json["anchor_us"]?.intValue.map { min(max(oldest, .microseconds($0)), now.running) }
        history.cameAfterBoot = json["came_after_boot"]?.boolValue ?? false
        history.cameAfterStart = json["came_after_start"]?.boolValue ?? false
    }

    package var json: JSON {
        [
            "boot": .string(ThisProcess.bootID), "since": .int(history.sinceWall),
            "since_boot_us": .int(history.since.microseconds), "anchor_us": .optional(history.anchor?.microseconds),
            "came_after_boot": .bool(history.cameAfterBoot), "came_after_start": .bool(history.cameAfterStart),
            "unfinished": .bool(history.isUnfinished),
        ]
    }
}

/// The part of the state of an app's fetches that the store contains as JSON. The time of the last fetch has a column
/// of its own in the store.
package struct FetchMemory {
    package private(set) var learned: FetchState.FetchHistory

    package init(_ learned: FetchState.FetchHistory) { self.learned = learned }

    /// Decodes a stored row; nil if the row contains no state of fetches.
    package init?(_ row: StoredSchedule) {
        guard let json = row.learned.flatMap({ try? JSON.parse($0) }),
            let interval = json["interval_ms"]?.intValue, interval > 0
        else { return nil }
        learned = FetchState.FetchHistory(interval: .milliseconds(interval))
        learned.failures = Int(min(max(0, json["failures"]?.intValue ?? 0), 1 << 16))
        for result in FetchResult.allCases {
            if let count = json["counts"]?[result.rawValue]?.intValue, count > 0 {
                learned.counts[result] = min(count, .max / 2)
            }
        }
    }

    package var json: JSON {
        var counts = JSONObject()
        for result in FetchResult.allCases { counts[result.rawValue] = .int(learned.counts[result] ?? 0) }
        return [
            "interval_ms": .int(learned.interval.microseconds / 1000), "failures": .int(Int64(learned.failures)),
            "counts": .object(counts),
        ]
    }
}
