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

extension StoredTransfer: NumberedRecord {
    package static var table: RowTable { .transfers }
    package static let shape = TableShape(
        "transfers",
        version: 6,
        "id app json",
        numbers: ["id"],
        keyCount: 1,
        frames: (14, 15)
    )
    package var values: [ColumnValue] { [.number(id), .text(app), .text(json)] }

    package init?(_ values: [ColumnValue]) {
        guard let id = values[0].number, let app = values[1].text, let json = values[2].text else { return nil }
        self.init(id: id, app: app, json: json)
    }
}

extension Store {
    /// Saves a transfer; replaces a transfer with the same number.
    public func save(_ transfer: StoredTransfer) { change(.save(transfer)) }

    /// Removes a finished transfer.
    public func removeTransfer(_ id: Int64, of app: String) { change(.remove(StoredTransfer.self, id, of: app)) }
}
