// SPDX-License-Identifier: Apache-2.0

/// Rows in and out of the tables `mail` and `schedules`.
extension Database {
    /// Writes the newest of each.
    func save(_ work: MailWork) throws(DatabaseError) {
        for id in work.removedMail {
            let statement = try prepare("DELETE FROM mail WHERE id = ?")
            statement.bind(1, id)
            try statement.run()
        }
        for mail in work.mail.values { try save(mail) }
        for key in work.removedSchedules {
            let statement = try prepare("DELETE FROM schedules WHERE app = ? AND name = ?")
            statement.bind(1, key.app)
            statement.bind(2, key.name)
            try statement.run()
        }
        for schedule in work.schedules.values { try save(schedule) }
        for key in work.removedSubscriptions {
            let statement = try prepare("DELETE FROM subscriptions WHERE app = ? AND topic = ?")
            statement.bind(1, key.app)
            statement.bind(2, key.topic)
            try statement.run()
        }
        for subscription in work.subscriptions.values {
            let statement = try prepare("INSERT OR REPLACE INTO subscriptions (app, topic, rule) VALUES (?, ?, ?)")
            statement.bind(1, subscription.key.app)
            statement.bind(2, subscription.key.topic)
            statement.bind(3, subscription.rule)
            try statement.run()
        }
    }

    /// Calls `each` for every subscription, so that a caller has those before an error.
    func subscriptions(_ each: (StoredSubscription) -> Void) throws(DatabaseError) {
        let statement = try prepare("SELECT app, topic, rule FROM subscriptions")
        defer { statement.reset() }
        while try statement.step() {
            guard let app = statement.text(0), let topic = statement.text(1) else { continue }
            each(StoredSubscription(app: app, topic: topic, rule: statement.text(2) ?? "{}"))
        }
    }

    // MARK: mail

    /// Calls `each` for every row, so that a caller has those before an error.
    func mail(_ each: (StoredMail) -> Void) throws(DatabaseError) {
        let statement = try prepare(
            """
            SELECT id, app, topic, message, payload, coalescing, key, sender, count, first_at, last_at, wake FROM mail
            """
        )
        defer { statement.reset() }
        while try statement.step() {
            guard let app = statement.text(1) else { continue }
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
            mail.wake = statement.text(11)
            each(mail)
        }
    }

    private func save(_ mail: StoredMail) throws(DatabaseError) {
        let statement = try prepare(
            """
            INSERT OR REPLACE INTO mail (id, app, topic, message, payload, coalescing, key, sender, count, first_at,
                last_at, wake) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """
        )
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
        statement.bind(12, mail.wake)
        try statement.run()
    }

    // MARK: schedules

    /// Calls `each` for every row, so that a caller has those before an error.
    func schedules(_ each: (StoredSchedule) -> Void) throws(DatabaseError) {
        let statement = try prepare("SELECT app, name, last_fired, learned FROM schedules")
        defer { statement.reset() }
        while try statement.step() {
            guard let app = statement.text(0), let name = statement.text(1) else { continue }
            each(
                StoredSchedule(
                    app: app,
                    name: name,
                    lastFired: statement.optionalInteger(2),
                    learned: statement.text(3)
                )
            )
        }
    }

    private func save(_ schedule: StoredSchedule) throws(DatabaseError) {
        let statement = try prepare(
            "INSERT OR REPLACE INTO schedules (app, name, last_fired, learned) VALUES (?, ?, ?, ?)"
        )
        statement.bind(1, schedule.key.app)
        statement.bind(2, schedule.key.name)
        statement.bind(3, schedule.lastFired)
        statement.bind(4, schedule.learned)
        try statement.run()
    }
}
