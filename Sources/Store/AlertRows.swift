// SPDX-License-Identifier: Apache-2.0

/// An alert of an app, or its badge.
public struct StoredAlert: Sendable, Hashable {
    /// The alert's number.
    public var id: Int64
    /// The app's name.
    public var app: String
    /// The state of the alert or badge, a JSON object.
    public var json: String

    /// Creates an alert from its parts.
    public init(id: Int64, app: String, json: String) {
        self.id = id
        self.app = app
        self.json = json
    }
}

extension StoredAlert: StoredRow {
    var rowKey: Int64 { id }
    var rowApp: String { app }
}

extension Store {
    /// Saves an alert; replaces an alert with the same number.
    public func save(_ alert: StoredAlert) { change(.alert(alert)) }

    /// Removes an alert.
    public func removeAlert(_ id: Int64, of app: String) { change(.alertRemoval(id, app: app)) }
}

extension Database {
    /// Calls `each` for every stored alert and badge. If a read fails, the caller keeps the rows that it already got.
    func alerts(_ each: (StoredAlert) -> Void) throws(DatabaseError) {
        let statement = try prepare("SELECT id, app, json FROM alerts")
        defer { statement.reset() }
        while try statement.step() {
            guard let app = statement.text(1), let json = statement.text(2) else { continue }
            each(StoredAlert(id: statement.integer(0), app: app, json: json))
        }
    }

    /// Writes the queued rows.
    func save(_ alerts: PendingRows<StoredAlert>) throws(DatabaseError) {
        for id in alerts.removed {
            let statement = try prepare("DELETE FROM alerts WHERE id = ?")
            statement.bind(1, id)
            try statement.run()
        }
        for alert in alerts.changed.values {
            let statement = try prepare("INSERT OR REPLACE INTO alerts (id, app, json) VALUES (?, ?, ?)")
            statement.bind(1, alert.id)
            statement.bind(2, alert.app)
            statement.bind(3, alert.json)
            try statement.run()
        }
    }
}
