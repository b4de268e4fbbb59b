// SPDX-License-Identifier: Apache-2.0

/// The size of a stored event.
struct EventSize: Sendable, Hashable {
    let sequence: Int64
    /// The app; nil for events that concern the supervisor.
    let app: String?
    /// Its size in the database, as ``StoredEvent/storedSize`` counts it.
    let bytes: Int64
}

/// How many bytes the stored events of each app have.
///
/// Most databases are so small that no app can have too much, and nothing is counted. Otherwise all events are read
/// once, some at a time. From then on the numbers follow what is written and removed.
struct EventSizes: Sendable {
    /// The bytes of each app's events, and of the supervisor's.
    private(set) var bytes: [String?: Int64] = [:]
    private(set) var total: Int64 = 0
    /// The events up to this sequence number are counted; `.max` if all are.
    private(set) var through: Int64 = .min

    var isComplete: Bool { through == .max }

    /// Counts the next stored events. If `isEnd`, there are no others.
    mutating func count(_ events: [EventSize], isEnd: Bool) {
        for event in events { change(event.app, by: event.bytes) }
        through = isEnd ? .max : events.last?.sequence ?? through
    }

    /// Counts an event that was written. It is newer than all others, so if not all others are counted, it is counted
    /// after them.
    mutating func added(_ event: EventSize) {
        if isComplete { change(event.app, by: event.bytes) }
    }

    mutating func removed(_ events: [EventSize]) {
        for event in events where event.sequence <= through { change(event.app, by: -event.bytes) }
    }

    private mutating func change(_ app: String?, by change: Int64) {
        total += change
        let sum = (bytes[app] ?? 0) + change
        bytes[app] = sum > 0 ? sum : nil
    }

    /// How many bytes of which apps' events to remove, so that all have at most `limit` bytes, and those of each app at
    /// most half of that. Empty if there is at most 1 % more, so that not every new event causes a removal.
    func surplus(_ limit: Int64) -> [FairShares.Share] {
        let most = limit / 2
        let slack = limit / 100
        guard total - slack > limit || bytes.values.contains(where: { $0 - slack > most }) else { return [] }
        let shares = bytes.map { (app: $0.key, count: min($0.value, most)) }
        var surplus: [String?: Int64] = [:]
        for (app, count) in bytes where count > most { surplus[app] = count - most }
        let excess = shares.reduce(-limit) { $0 + $1.count }
        for share in FairShares.surplus(shares, excess: excess) { surplus[share.app, default: 0] += share.count }
        return surplus.filter { $0.value > 0 }.map { (app: $0.key, count: $0.value) }
    }
}

extension StoredEvent {
    /// The approximate size of the event in the database, bytes: its texts, and 64 for its numbers, its short words and
    /// its entry in the index.
    var storedSize: Int64 {
        Int64(64 + text.utf8.count + (app?.utf8.count ?? 0) + (reason?.utf8.count ?? 0) + (details?.utf8.count ?? 0))
    }
}

extension Database {
    /// ``StoredEvent/storedSize`` in SQL.
    private static let storedSize =
        "64 + length(CAST(text AS BLOB)) + ifnull(length(CAST(app AS BLOB)), 0)"
        + " + ifnull(length(CAST(reason AS BLOB)), 0) + ifnull(length(CAST(details AS BLOB)), 0)"

    /// The bytes that the database uses in its file. The events of all apps have less.
    func usedBytes() throws(DatabaseError) -> Int64 {
        let pages = try integer("PRAGMA page_count") ?? 0
        return (pages - (try integer("PRAGMA freelist_count") ?? 0)) * (try integer("PRAGMA page_size") ?? 0)
    }

    /// The sizes of the `limit` oldest events with a greater sequence number.
    func eventSizes(after sequence: Int64, limit: Int64) throws(DatabaseError) -> [EventSize] {
        let statement = try prepare(
            "SELECT sequence, app, \(Self.storedSize) FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?"
        )
        statement.bind(1, sequence)
        statement.bind(2, limit)
        return try sizes(statement)
    }

    /// Removes those of the `limit` oldest events that happened before `time`. Returns what was removed.
    func removeEvents(before time: Int64, limit: Int64) throws(DatabaseError) -> [EventSize] {
        let statement = try prepare(
            """
            DELETE FROM events WHERE sequence IN
                (SELECT sequence FROM (SELECT sequence, at FROM events ORDER BY sequence LIMIT ?1) WHERE at < ?2)
                RETURNING sequence, app, \(Self.storedSize)
            """
        )
        statement.bind(1, limit)
        statement.bind(2, time)
        return try sizes(statement)
    }

    /// Removes the oldest events of an app, or, if it is nil, of the supervisor: as many as have `bytes` bytes, but at
    /// most `count`. Returns what was removed.
    func removeOldestEvents(_ count: Int64, bytes: Int64 = .max, of app: String?) throws(DatabaseError) -> [EventSize] {
        let statement = try prepare(
            """
            DELETE FROM events WHERE sequence IN
                (SELECT sequence FROM
                    (SELECT sequence, size, sum(size) OVER (ORDER BY sequence) AS through FROM
                        (SELECT sequence, \(Self.storedSize) AS size FROM events WHERE app IS ?1
                            ORDER BY sequence LIMIT ?2))
                    WHERE through - size < ?3)
                RETURNING sequence, app, \(Self.storedSize)
            """
        )
        statement.bind(1, app)
        statement.bind(2, count)
        statement.bind(3, bytes)
        return try sizes(statement)
    }

    private func sizes(_ statement: Statement) throws(DatabaseError) -> [EventSize] {
        defer { statement.reset() }
        var sizes: [EventSize] = []
        while try statement.step() {
            sizes.append(
                EventSize(sequence: statement.integer(0), app: statement.text(1), bytes: statement.integer(2))
            )
        }
        return sizes
    }
}
