// SPDX-License-Identifier: Apache-2.0

/// Reads and writes the tables of mail.
extension Database {
    /// Writes the queued changes.
    func save(_ work: MailWork) throws(DatabaseError) {
        for id in work.mail.removed { try remove(id, from: "mail") }
        for mail in work.mail.changed.values { try save(mail) }
        for (id, standing) in work.standings { try save(standing, of: id) }
        for id in work.unhandled.removed { try remove(id, from: "unhandled") }
        for unhandled in work.unhandled.changed.values { try save(unhandled) }
        try save(work.rows)
    }

    private func remove(_ id: Int64, from table: String) throws(DatabaseError) {
        let statement = try prepare("DELETE FROM \(table) WHERE id = ?")
        statement.bind(1, id)
        try statement.run()
    }

    // MARK: mail

    /// The columns that the tables of queued and of unhandled messages share, in this order.
    private static let mailColumns =
        "id, app, topic, message, payload, coalescing, key, sender, count, first_at, last_at"

    /// Calls `each` for every queued message. If a read fails, the caller keeps the rows that it already got. Also
    /// reads a table that still has the form of schema version 3.
    func mail(_ each: (StoredMail) -> Void) throws(DatabaseError) {
        let hasStanding = try integer("PRAGMA user_version") ?? 0 >= 4
        let statement = try prepare(
            "SELECT \(Self.mailColumns), wake\(hasStanding ? ", attempts, run, chain" : "") FROM mail"
        )
        defer { statement.reset() }
        while try statement.step() {
            guard var mail = Self.mail(statement) else { continue }
            mail.wake = statement.text(11)
            if hasStanding {
                mail.standing.attempts = statement.integer(12)
                mail.standing.run = statement.optionalInteger(13)
                mail.standing.chain = statement.text(14)
            }
            each(mail)
        }
    }

    private static func mail(_ statement: Statement) -> StoredMail? {
        guard let app = statement.text(1) else { return nil }
        var mail = StoredMail(
            id: statement.integer(0),
            app: app,
            topic: statement.text(2) ?? "",
            message: statement.text(3) ?? "",
            payload: statement.text(4) ?? "null",
            coalescing: statement.text(5) ?? "all",
            sender: statement.text(7) ?? "",
            at: statement.integer(9)
        )
        mail.key = statement.text(6)
        mail.count = statement.integer(8)
        mail.lastAt = statement.integer(10)
        return mail
    }

    private static func bind(_ mail: StoredMail, _ statement: Statement) {
        statement.bind(1, mail.id)
        statement.bind(2, mail.app)
        statement.bind(3, mail.topic)
        statement.bind(4, mail.message)
        statement.bind(5, mail.payload)
        statement.bind(6, mail.coalescing)
        statement.bind(7, mail.key)
        statement.bind(8, mail.sender)
        statement.bind(9, mail.count)
        statement.bind(10, mail.firstAt)
        statement.bind(11, mail.lastAt)
    }

    private func save(_ mail: StoredMail) throws(DatabaseError) {
        let statement = try prepare(
            """
            INSERT OR REPLACE INTO mail (\(Self.mailColumns), wake, attempts, run, chain)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """
        )
        Self.bind(mail, statement)
        statement.bind(12, mail.wake)
        statement.bind(13, mail.standing.attempts)
        statement.bind(14, mail.standing.run)
        statement.bind(15, mail.standing.chain)
        try statement.run()
    }

    private func save(_ standing: MailStanding, of id: Int64) throws(DatabaseError) {
        let statement = try prepare("UPDATE mail SET attempts = ?, run = ?, chain = ? WHERE id = ?")
        statement.bind(1, standing.attempts)
        statement.bind(2, standing.run)
        statement.bind(3, standing.chain)
        statement.bind(4, id)
        try statement.run()
    }

    // MARK: unhandled

    /// Calls `each` for every row that the query selects, oldest first. If a read fails, the caller keeps the rows
    /// that it already got.
    func unhandled(_ query: UnhandledQuery, _ each: (StoredUnhandled) -> Void) throws(DatabaseError) {
        let topics = query.topicsWithPayload.map { "'" + $0.replacing("'", with: "''") + "'" }.joined(separator: ", ")
        let some = topics.isEmpty ? "''" : "CASE WHEN topic IN (\(topics)) THEN payload ELSE '' END"
        let payload = query.hasPayload ? "payload" : some
        let columns = Self.mailColumns.replacing("payload", with: payload)
        // A query contains few numbers, so run one statement for each. All of them use the same prepared statement.
        for id in query.ids.map({ $0.map { Optional($0) } }) ?? [nil] {
            let statement = try prepare(
                """
                SELECT * FROM (SELECT \(columns), attempts, chain, why, at, run FROM unhandled
                    WHERE (?1 IS NULL OR app = ?1) AND (?2 IS NULL OR id = ?2) ORDER BY id DESC LIMIT ?3) ORDER BY id
                """
            )
            defer { statement.reset() }
            statement.bind(1, query.app)
            statement.bind(2, id)
            statement.bind(3, Int64(clamping: query.limit))
            while try statement.step() {
                guard var mail = Self.mail(statement) else { continue }
                mail.standing.attempts = statement.integer(11)
                mail.standing.chain = statement.text(12)
                each(
                    StoredUnhandled(
                        mail: mail,
                        why: statement.text(13) ?? "",
                        at: statement.integer(14),
                        run: statement.optionalInteger(15)
                    )
                )
            }
        }
    }

    private func save(_ unhandled: StoredUnhandled) throws(DatabaseError) {
        let statement = try prepare(
            """
            INSERT OR REPLACE INTO unhandled (\(Self.mailColumns), attempts, chain, why, at, run)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """
        )
        Self.bind(unhandled.mail, statement)
        statement.bind(12, unhandled.mail.standing.attempts)
        statement.bind(13, unhandled.mail.standing.chain)
        statement.bind(14, unhandled.why)
        statement.bind(15, unhandled.at)
        statement.bind(16, unhandled.run)
        try statement.run()
    }
}
