// SPDX-License-Identifier: Apache-2.0

/// An unfinished transfer of an app.
public struct StoredTransfer: Sendable, Hashable {
    /// The transfer's number.
    public var id: Int64
    /// The app's name.
    public var app: String
    /// The transfer's state, a JSON object.
    public var json: String

    /// Creates a transfer from its parts.
    public init(id: Int64, app: String, json: String) {
        self.id = id
        self.app = app
        self.json = json
    }
}

extension StoredTransfer: StoredRow {
    var rowKey: Int64 { id }
    var rowApp: String { app }
}

extension Store {
    /// Saves a transfer; replaces a transfer with the same number.
    public func save(_ transfer: StoredTransfer) { change(.transfer(transfer)) }

    /// Removes a finished transfer.
    public func removeTransfer(_ id: Int64, of app: String) { change(.transferRemoval(id, app: app)) }
}

extension Database {
    /// Calls `each` for every stored transfer. If a read fails, the caller keeps the rows that it already got.
    func transfers(_ each: (StoredTransfer) -> Void) throws(DatabaseError) {
        let statement = try prepare("SELECT id, app, json FROM transfers")
        defer { statement.reset() }
        while try statement.step() {
            guard let app = statement.text(1), let json = statement.text(2) else { continue }
            each(StoredTransfer(id: statement.integer(0), app: app, json: json))
        }
    }

    /// Writes the queued rows.
    func save(_ transfers: PendingRows<StoredTransfer>) throws(DatabaseError) {
        for id in transfers.removed {
            let statement = try prepare("DELETE FROM transfers WHERE id = ?")
            statement.bind(1, id)
            try statement.run()
        }
        for transfer in transfers.changed.values {
            let statement = try prepare("INSERT OR REPLACE INTO transfers (id, app, json) VALUES (?, ?, ?)")
            statement.bind(1, transfer.id)
            statement.bind(2, transfer.app)
            statement.bind(3, transfer.json)
            try statement.run()
        }
    }
}
