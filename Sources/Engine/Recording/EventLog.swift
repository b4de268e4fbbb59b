// SPDX-License-Identifier: Apache-2.0

import Linux
package import TorporAPI

/// The newest events (up to ``capacity``), and callbacks that get each new event.
package final class EventLog {
    /// How many events are in memory; older events are in the store on disk.
    package static let capacity = 500

    /// The sequence number of the newest event. A number is never less than the time of its event in microseconds, so
    /// that a new log has higher numbers than earlier logs. If the clock was set back since, events in the store may
    /// still have higher numbers: when reading them, set this to the highest of their numbers.
    package var sequence: Int64 = 0

    /// Whether every event ever recorded is still in memory.
    package var isWhole = false
    /// Whether this log has not yet removed any event from memory.
    package private(set) var isUnbroken = true

    private var records: [EventRecord] = []
    private var start = 0
    private var followers: [(token: Int, call: (EventRecord) -> Void)] = []
    private var nextToken = 0

    /// A log without events.
    package init() {}

    /// Adds an event, and sets its sequence number.
    package func append(_ record: inout EventRecord) {
        sequence = max(sequence + 1, record.at)
        record.sequence = sequence
        if records.count < Self.capacity {
            records.append(record)
        } else {
            isWhole = false
            isUnbroken = false
            records[start] = record
            start = (start + 1) % Self.capacity
        }
        for follower in followers { follower.call(record) }
    }

    /// Whether memory contains all events since a time (microseconds since 1970) and after a sequence number. If both
    /// are nil, whether it contains all events ever recorded.
    package func reachesBack(since: Int64?, after: Int64?) -> Bool {
        if isWhole { return true }
        // An event's number is never less than its time in microseconds, so both `since` and `after` can be compared
        // with the number.
        guard !records.isEmpty, let bound = [since, after.map { $0 + 1 }].compactMap({ $0 }).max() else { return false }
        return bound >= records[start].sequence
    }

    /// The events in memory of some apps, or of all (`apps` is nil): at or after `since` and before `until`
    /// (microseconds since 1970), with a sequence number above `after`. If `after` is higher than all numbers in
    /// memory, it dates from before the clock was set back, and is ignored.
    package func records(apps: [String]?, since: Int64?, after: Int64? = nil, until: Int64? = nil) -> [EventRecord] {
        let after = after.flatMap { $0 > sequence ? nil : $0 }
        let apps = apps.map(Set.init)
        let ordered = records[start...] + records[..<start]
        return ordered.filter { record in
            if let apps { guard let app = record.app, apps.contains(app) else { return false } }
            if let since, record.at < since { return false }
            if let until, record.at >= until { return false }
            if let after, record.sequence <= after { return false }
            return true
        }
    }

    package func follow(_ call: @escaping (EventRecord) -> Void) -> Int {
        nextToken += 1
        followers.append((nextToken, call))
        return nextToken
    }

    package func unfollow(_ token: Int) { followers.removeAll { $0.token == token } }
}
