// SPDX-License-Identifier: Apache-2.0

/// The tables, and their migration from version to version.
///
/// | version | change |
/// |---|---|
/// | 1 | meta, apps, events |
/// | 2 | reports: termination reports survive a restart of the supervisor |
/// | 3 | mail: queued messages; schedules: last occurrence of recurring events; subscriptions: topics of apps |
/// | 4 | mail: delivery attempts (attempts, run) and recipients (chain); unhandled: mail that no app handled |
/// | 5 | settings: values that users set, as far as the configuration permits |
/// | 6 | transfers: unfinished downloads and uploads of apps |
/// | 7 | alerts: scheduled and open alerts of apps, and their badges |
/// | 8 | permissions: answers to apps that asked for permissions |
enum Schema {
    /// The schema version that this program writes, as `PRAGMA user_version`.
    static let version: Int64 = 8
    /// `PRAGMA application_id` of every version: "Torp".
    static let applicationID: Int64 = 0x546f_7270

    /// The SQL for the migration from version n to n + 1, at index n; version 0 is an empty file.
    static let steps = [
        """
        CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
        CREATE TABLE apps (
            name TEXT PRIMARY KEY,
            goal TEXT,
            stopped_by_person INTEGER NOT NULL,
            force_quit INTEGER NOT NULL,
            failed INTEGER NOT NULL,
            restarts INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            incarnation INTEGER NOT NULL,
            exit_reason TEXT,
            exit_code INTEGER,
            exit_signal TEXT,
            exit_at INTEGER,
            ledger TEXT NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE events (
            sequence INTEGER PRIMARY KEY,
            at INTEGER NOT NULL,
            app TEXT,
            incarnation INTEGER,
            kind TEXT NOT NULL,
            from_state TEXT,
            to_state TEXT,
            text TEXT NOT NULL,
            reason TEXT,
            details TEXT
        );
        CREATE INDEX events_of_app ON events (app, sequence);
        """,
        """
        CREATE TABLE reports (
            id INTEGER PRIMARY KEY,
            app TEXT NOT NULL,
            incarnation INTEGER NOT NULL,
            at INTEGER NOT NULL,
            json TEXT NOT NULL
        );
        CREATE INDEX reports_of_app ON reports (app, id);
        """,
        """
        CREATE TABLE mail (
            id INTEGER PRIMARY KEY,
            app TEXT NOT NULL,
            topic TEXT NOT NULL,
            message TEXT NOT NULL,
            payload TEXT NOT NULL,
            coalescing TEXT NOT NULL,
            key TEXT,
            sender TEXT NOT NULL,
            count INTEGER NOT NULL,
            first_at INTEGER NOT NULL,
            last_at INTEGER NOT NULL,
            wake TEXT
        );
        CREATE INDEX mail_of_app ON mail (app, id);
        CREATE TABLE schedules (
            app TEXT NOT NULL,
            name TEXT NOT NULL,
            last_fired INTEGER,
            learned TEXT,
            PRIMARY KEY (app, name)
        ) WITHOUT ROWID;
        CREATE TABLE subscriptions (
            app TEXT NOT NULL,
            topic TEXT NOT NULL,
            rule TEXT NOT NULL,
            PRIMARY KEY (app, topic)
        ) WITHOUT ROWID;
        """,
        """
        ALTER TABLE mail ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE mail ADD COLUMN run INTEGER;
        ALTER TABLE mail ADD COLUMN chain TEXT;
        CREATE TABLE unhandled (
            id INTEGER PRIMARY KEY,
            app TEXT NOT NULL,
            topic TEXT NOT NULL,
            message TEXT NOT NULL,
            payload TEXT NOT NULL,
            coalescing TEXT NOT NULL,
            key TEXT,
            sender TEXT NOT NULL,
            count INTEGER NOT NULL,
            first_at INTEGER NOT NULL,
            last_at INTEGER NOT NULL,
            attempts INTEGER NOT NULL,
            chain TEXT,
            why TEXT NOT NULL,
            at INTEGER NOT NULL,
            run INTEGER
        );
        CREATE INDEX unhandled_of_app ON unhandled (app, id);
        """,
        """
        CREATE TABLE settings (
            app TEXT NOT NULL,
            name TEXT NOT NULL,
            value TEXT,
            at INTEGER NOT NULL,
            known TEXT,
            told INTEGER NOT NULL,
            PRIMARY KEY (app, name)
        ) WITHOUT ROWID;
        """,
        """
        CREATE TABLE transfers (
            id INTEGER PRIMARY KEY,
            app TEXT NOT NULL,
            json TEXT NOT NULL
        );
        CREATE INDEX transfers_of_app ON transfers (app, id);
        """,
        """
        CREATE TABLE alerts (
            id INTEGER PRIMARY KEY,
            app TEXT NOT NULL,
            json TEXT NOT NULL
        );
        CREATE INDEX alerts_of_app ON alerts (app, id);
        """,
        """
        CREATE TABLE permissions (
            app TEXT NOT NULL,
            name TEXT NOT NULL,
            allowed INTEGER NOT NULL,
            scope TEXT NOT NULL,
            by TEXT NOT NULL,
            at INTEGER NOT NULL,
            pending INTEGER NOT NULL,
            PRIMARY KEY (app, name)
        ) WITHOUT ROWID;
        """,
    ]

    /// The tables whose rows are removed together with their app, each with its column for the app's name.
    static let rowsOfApps =
        [("apps", "name"), ("reports", "app"), ("mail", "app"), ("unhandled", "app")]
        + RowTable.allCases.map(\.shape).filter(\.leavesWithApp).map { ($0.name, "app") }

    /// Migrates an older version or an empty file to version `target`. Must be called in a transaction, so that a
    /// migration is done completely or not at all.
    static func migrate(_ database: Database, from version: Int64, to target: Int64 = version) throws(DatabaseError) {
        if version == 0 { try database.run("PRAGMA application_id = \(applicationID)") }
        for step in steps[Int(version)..<Int(target)] { try database.run(step) }
        try database.run("PRAGMA user_version = \(target)")
    }
}
