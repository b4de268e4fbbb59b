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

extension StoredAlert: NumberedRecord {
    package static var table: RowTable { .alerts }
    package static let shape = TableShape(
        "alerts",
        version: 7,
        "id app json",
        numbers: ["id"],
        keyCount: 1,
        frames: (16, 17)
    )
    package var values: [ColumnValue] { [.number(id), .text(app), .text(json)] }

    package init?(_ values: [ColumnValue]) {
        guard let id = values[0].number, let app = values[1].text, let json = values[2].text else { return nil }
        self.init(id: id, app: app, json: json)
    }
}

extension Store {
    /// Saves an alert; replaces an alert with the same number.
    public func save(_ alert: StoredAlert) { change(.save(alert)) }

    /// Removes an alert.
    public func removeAlert(_ id: Int64, of app: String) { change(.remove(StoredAlert.self, id, of: app)) }
}
