// SPDX-License-Identifier: Apache-2.0

/// Reads and writes the tables of the current version.
extension Database {
    // MARK: meta

    func meta(_ key: String) throws(DatabaseError) -> String? {
        let statement = try prepare("SELECT value FROM meta WHERE key = ?")
        defer { statement.reset() }
        statement.bind(1, key)
        return try statement.step() ? statement.text(0) : nil
    }

    func setMeta(_ key: String, _ value: String) throws(DatabaseError) {
        let statement = try prepare("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)")
        statement.bind(1, key)
        statement.bind(2, value)
        try statement.run()
    }

    // MARK: apps

    /// Calls `each` for every app's row. If a read fails, the caller keeps the rows that it already got.
    func apps(_ each: (AppRow) -> Void) throws(DatabaseError) {
        let statement = try prepare(
            """
            SELECT name, goal, stopped_by_person, force_quit, failed, restarts, attempt, incarnation, exit_reason,
                exit_code, exit_signal, exit_at, ledger FROM apps
            """
        )
        defer { statement.reset() }
        while try statement.step() {
            guard let name = statement.text(0) else { continue }
            var row = AppRow(name: name)
            row.goal = statement.text(1)
            row.isStopped = statement.integer(2) != 0
            row.isStoppedUntilBoot = statement.integer(2) == 2
            row.isForceQuit = statement.integer(3) != 0
            row.isFailed = statement.integer(4) != 0
            row.restarts = statement.integer(5)
            row.attempt = statement.integer(6)
            row.incarnation = statement.integer(7)
            if let reason = statement.text(8) {
                row.lastExit = StoredExit(
                    reason: reason,
                    code: statement.optionalInteger(9).map { Int32(clamping: $0) },
                    signal: statement.text(10),
                    at: statement.integer(11)
                )
            }
            row.ledger = (statement.text(12) ?? "").split(separator: " ").compactMap { Int64($0) }
            each(row)
        }
    }

    func save(_ row: AppRow) throws(DatabaseError) {
        let statement = try prepare(
            """
            INSERT OR REPLACE INTO apps (name, goal, stopped_by_person, force_quit, failed, restarts, attempt,
                incarnation, exit_reason, exit_code, exit_signal, exit_at, ledger)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """
        )
        statement.bind(1, row.name)
        statement.bind(2, row.goal)
        // Older versions take 2 for a stop without an end.
        statement.bind(3, row.isStopped ? (row.isStoppedUntilBoot ? 2 : 1) : 0)
        statement.bind(4, row.isForceQuit ? 1 : 0)
        statement.bind(5, row.isFailed ? 1 : 0)
        statement.bind(6, row.restarts)
        statement.bind(7, row.attempt)
        statement.bind(8, row.incarnation)
        statement.bind(9, row.lastExit?.reason)
        statement.bind(10, row.lastExit?.code.map { Int64($0) })
        statement.bind(11, row.lastExit?.signal)
        statement.bind(12, row.lastExit?.at)
        statement.bind(13, row.ledger.map { String($0) }.joined(separator: " "))
        try statement.run()
    }

    /// Removes all rows of an app, except its events.
    func remove(app: String) throws(DatabaseError) {
        for (table, column) in Schema.rowsOfApps {
            let statement = try prepare("DELETE FROM \(table) WHERE \(column) = ?")
            statement.bind(1, app)
            try statement.run()
        }
    }

    // MARK: events

    /// Returns the events that the query selects, the oldest first.
    func events(_ query: EventQuery) throws(DatabaseError) -> [StoredEvent] {
        // An event's sequence number is never less than its time, so `since` can use the primary key as an index. The
        // SQL text has only a few variants, whatever the number of apps, so at most six prepared statements are cached.
        let apps =
            switch query.apps?.count {
            case nil: ""
            case 1: " AND app = ?5"
            default: " AND instr(?5, char(10) || app || char(10)) > 0"
            }
        let statement = try prepare(
            """
            SELECT sequence, at, app, incarnation, kind, from_state, to_state, text, reason, details FROM events
                WHERE sequence > ?1 AND at >= ?2 AND at < ?3\(apps)
                ORDER BY sequence \(query.prefersNewest ? "DESC" : "ASC") LIMIT ?4
            """
        )
        defer { statement.reset() }
        let since = query.since ?? .min
        statement.bind(1, max(query.after ?? .min, since == .min ? .min : since - 1))
        statement.bind(2, since)
        statement.bind(3, query.until ?? .max)
        statement.bind(4, Int64(max(0, query.limit)))
        if let apps = query.apps {
            statement.bind(5, apps.count == 1 ? apps[0] : "\n" + apps.joined(separator: "\n") + "\n")
        }
        var events: [StoredEvent] = []
        while try statement.step() {
            var event = StoredEvent(
                at: statement.integer(1),
                app: statement.text(2),
                kind: statement.text(4) ?? "",
                text: statement.text(7) ?? ""
            )
            event.sequence = statement.integer(0)
            event.incarnation = statement.optionalInteger(3)
            event.from = statement.text(5)
            event.to = statement.text(6)
            event.reason = statement.text(8)
            event.details = statement.text(9)
            events.append(event)
        }
        return query.prefersNewest ? events.reversed() : events
    }

    /// Whether the event is already stored. This can happen if torpord was killed just after it wrote the event to the
    /// database, because the journal then still contains the event.
    func has(_ event: StoredEvent) throws(DatabaseError) -> Bool {
        let statement = try prepare(
            "SELECT 1 FROM events WHERE sequence = ? AND at = ? AND kind = ? AND text = ? AND app IS ?"
        )
        defer { statement.reset() }
        statement.bind(1, event.sequence)
        statement.bind(2, event.at)
        statement.bind(3, event.kind)
        statement.bind(4, event.text)
        statement.bind(5, event.app)
        return try statement.step()
    }

    func append(_ event: StoredEvent) throws(DatabaseError) {
        let statement = try prepare(
            """
            INSERT INTO events (sequence, at, app, incarnation, kind, from_state, to_state, text, reason, details)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """
        )
        statement.bind(1, event.sequence)
        statement.bind(2, event.at)
        statement.bind(3, event.app)
        statement.bind(4, event.incarnation)
        statement.bind(5, event.kind)
        statement.bind(6, event.from)
        statement.bind(7, event.to)
        statement.bind(8, event.text)
        statement.bind(9, event.reason)
        statement.bind(10, event.details)
        try statement.run()
    }

    /// How many events there are of each app, and of the supervisor.
    func eventCounts() throws(DatabaseError) -> [FairShares.Share] {
        let statement = try prepare("SELECT app, count(*) FROM events GROUP BY app")
        defer { statement.reset() }
        var counts: [FairShares.Share] = []
        while try statement.step() { counts.append((statement.text(0), statement.integer(1))) }
        return counts
    }

    // MARK: reports

    /// How many reports are kept per app.
    static let reportsOfApp: Int64 = 10

    /// Returns the reports of an app, or of all apps, the newest first.
    func reports(app: String?) throws(DatabaseError) -> [StoredReport] {
        let statement = try prepare(
            "SELECT app, incarnation, at, json FROM reports\(app == nil ? "" : " WHERE app = ?1") ORDER BY id DESC"
        )
        defer { statement.reset() }
        if let app { statement.bind(1, app) }
        var reports: [StoredReport] = []
        while try statement.step() {
            reports.append(
                StoredReport(
                    app: statement.text(0) ?? "",
                    incarnation: statement.integer(1),
                    at: statement.integer(2),
                    json: statement.text(3) ?? ""
                )
            )
        }
        return reports
    }

    /// Whether the report is already stored.
    func has(_ report: StoredReport) throws(DatabaseError) -> Bool {
        let statement = try prepare("SELECT 1 FROM reports WHERE app = ? AND incarnation = ? AND at = ?")
        defer { statement.reset() }
        statement.bind(1, report.app)
        statement.bind(2, report.incarnation)
        statement.bind(3, report.at)
        return try statement.step()
    }

    /// Adds a report, and removes the app's oldest reports beyond `reportsOfApp`.
    func append(_ report: StoredReport) throws(DatabaseError) {
        let insertion = try prepare("INSERT INTO reports (app, incarnation, at, json) VALUES (?, ?, ?, ?)")
        insertion.bind(1, report.app)
        insertion.bind(2, report.incarnation)
        insertion.bind(3, report.at)
        insertion.bind(4, report.json)
        try insertion.run()
        let removal = try prepare(
            """
            DELETE FROM reports WHERE app = ?1 AND id <=
                (SELECT id FROM reports WHERE app = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)
            """
        )
        removal.bind(1, report.app)
        removal.bind(2, Self.reportsOfApp)
        try removal.run()
    }
}
