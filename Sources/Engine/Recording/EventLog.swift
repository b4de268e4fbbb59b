// SPDX-License-Identifier: Apache-2.0

import Linux
package import TorporAPI

/// What happened, newest last, bounded; and those who follow it.
package final class EventLog {
    /// How many are kept; older ones are in the store.
    package static let capacity = 500

    /// The sequence number of the newest event. Those of a new log follow the clock, so that they are later than all
    /// that an earlier instance has given out; set it when older events are read back that are later still.
    package var sequence: Int64 = 0

    /// Whether there are no older events than those in here.
    package var isWhole = false
    /// Whether none had to go yet.
    package private(set) var isUnbroken = true

    private var records: [EventRecord] = []
    private var start = 0
    private var followers: [(token: Int, call: (EventRecord) -> Void)] = []
    private var nextToken = 0

    /// An empty one.
    package init() {}

    /// Adds an event, and returns it with its number.
    @discardableResult
    package func append(_ record: EventRecord) -> EventRecord {
        var record = record
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
        return record
    }

    /// Whether all that happened since a time, or behind a sequence number, is in here.
    package func reachesBack(since: Int64?, after: Int64?) -> Bool {
        if isWhole { return true }
        // An event's number is never less than its time.
        guard !records.isEmpty, let bound = [since, after.map { $0 + 1 }].compactMap({ $0 }).max() else { return false }
        return bound >= records[start].sequence
    }

    /// Those of some apps, or of all, since a time in microseconds since 1970, and behind a sequence number. A number
    /// that is later than all of them is of a log that the clock has left behind: then it is not looked at.
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
