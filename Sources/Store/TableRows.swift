// SPDX-License-Identifier: Apache-2.0

/// A table whose rows belong to apps, with the same columns for all rows.
///
/// To add a table, add a case here, a step to ``Schema``, and a type that conforms to ``TableRecord``.
package enum RowTable: CaseIterable, Sendable, Hashable {
    case schedules
    case subscriptions
    case settings
    case transfers
    case alerts
    case permissions

    /// The type of the table's rows.
    var record: any TableRecord.Type {
        switch self {
        case .schedules: StoredSchedule.self
        case .subscriptions: StoredSubscription.self
        case .settings: StoredSetting.self
        case .transfers: StoredTransfer.self
        case .alerts: StoredAlert.self
        case .permissions: StoredPermission.self
        }
    }

    var shape: TableShape { record.shape }
}

/// The columns of a table, the schema version that introduced it, and whether its rows are removed with their app.
package struct TableShape: Sendable {
    struct Column: Sendable {
        let name: String
        let isText: Bool
    }

    /// The table's name in the database.
    let name: String
    /// The version of the schema that introduced the table.
    let version: Int64
    /// The table's columns, those of the key first.
    let columns: [Column]
    let keyCount: Int
    /// The kinds of the journal frames for a saved row and for a removed row.
    let frames: (save: UInt8, removal: UInt8)
    /// Whether the rows are removed when their app is removed.
    let leavesWithApp: Bool

    /// The column with the app's name.
    var app: Int { columns.firstIndex { $0.name == "app" } ?? 0 }
    var names: String { columns.map(\.name).joined(separator: ", ") }

    /// - Parameters:
    ///   - numbers: the names of the columns that hold integers; the others hold texts.
    ///   - columns: the names of all columns, separated by spaces.
    init(
        _ name: String,
        version: Int64,
        _ columns: String,
        numbers: Set<String>,
        keyCount: Int,
        frames: (save: UInt8, removal: UInt8),
        leavesWithApp: Bool = true
    ) {
        self.name = name
        self.version = version
        self.columns = columns.split(separator: " ").map { name in
            Column(name: String(name), isText: !numbers.contains(String(name)))
        }
        self.keyCount = keyCount
        self.frames = frames
        self.leavesWithApp = leavesWithApp
    }
}

/// The content of one column of a row.
package enum ColumnValue: Sendable, Hashable {
    case number(Int64?)
    case text(String?)

    /// The integer of a column that holds integers; nil for a column that holds texts, and for NULL.
    var number: Int64? { if case .number(let number) = self { number } else { nil } }
    /// The text of a column that holds texts; nil for a column that holds integers, and for NULL.
    var text: String? { if case .text(let text) = self { text } else { nil } }
}

/// A type whose values are rows of a ``RowTable``.
package protocol TableRecord: Sendable, Hashable {
    associatedtype RecordKey: Sendable, Hashable

    static var table: RowTable { get }
    static var shape: TableShape { get }
    /// The content of the key's columns.
    static func values(of key: RecordKey) -> [ColumnValue]

    var recordKey: RecordKey { get }
    /// The content of all columns, the key's first.
    var values: [ColumnValue] { get }
    /// Creates a row from the content of all its columns; nil if a required column is empty.
    init?(_ values: [ColumnValue])
}

/// A record whose key is a number that is unique in its table.
protocol NumberedRecord: TableRecord where RecordKey == Int64 {
    var id: Int64 { get }
}

extension NumberedRecord {
    package static func values(of id: Int64) -> [ColumnValue] { [.number(id)] }
    package var recordKey: Int64 { id }
}

/// Identifies a row by the app and a name. The name is unique among the app's rows in the table.
public struct StoredKey: Sendable, Hashable {
    /// The app's name.
    public var app: String
    /// The name.
    public var name: String

    /// Creates a key from its parts.
    public init(app: String, name: String) {
        self.app = app
        self.name = name
    }
}

extension TableRecord where RecordKey == StoredKey {
    package static func values(of key: StoredKey) -> [ColumnValue] { [.text(key.app), .text(key.name)] }
}

/// A row of a ``RowTable``.
package struct TableRow: Sendable, Hashable {
    package struct Key: Sendable, Hashable {
        let table: RowTable
        let values: [ColumnValue]
    }

    let key: Key
    /// The content of all columns, the key's first.
    let values: [ColumnValue]

    init(_ record: some TableRecord) {
        self.init(type(of: record).table, record.values)
    }

    init(_ table: RowTable, _ values: [ColumnValue]) {
        self.values = values
        key = Key(table: table, values: Array(values.prefix(table.shape.keyCount)))
    }
}

extension TableRow: StoredRow {
    var rowKey: Key { key }
    var rowApp: String { values[key.table.shape.app].text ?? "" }
    var leavesWithApp: Bool { key.table.shape.leavesWithApp }
}

/// A row that is saved or removed.
package enum RowChange: Sendable, Hashable {
    case save(TableRow)
    case remove(TableRow.Key, app: String)
}

extension MailChange {
    package static func save(_ record: some TableRecord) -> MailChange { .rows([.save(TableRow(record))]) }

    package static func remove<Record: TableRecord>(
        _ type: Record.Type,
        _ key: Record.RecordKey,
        of app: String
    ) -> MailChange {
        .rows([.remove(TableRow.Key(table: Record.table, values: Record.values(of: key)), app: app)])
    }
}

extension StoreContents {
    /// The rows of a table, by key.
    func records<Record: TableRecord>(_ type: Record.Type) -> [Record.RecordKey: Record] {
        var records: [Record.RecordKey: Record] = [:]
        for (key, row) in rows where key.table == Record.table {
            if let record = Record(row.values) { records[record.recordKey] = record }
        }
        return records
    }

    /// Replaces the rows of a table.
    mutating func set<Record: TableRecord>(_ records: [Record.RecordKey: Record]) {
        rows = rows.filter { $0.key.table != Record.table }
        for row in records.values.lazy.map({ TableRow($0) }) { rows[row.key] = row }
    }
}

extension Database {
    /// Calls `each` for every row of the table that belongs to an app. If a read fails, the caller keeps the rows that
    /// it already got.
    func rows(of table: RowTable, _ each: (TableRow) -> Void) throws(DatabaseError) {
        let shape = table.shape
        let statement = try prepare("SELECT \(shape.names) FROM \(shape.name)")
        defer { statement.reset() }
        while try statement.step() {
            let values = shape.columns.enumerated().map { (index, column) -> ColumnValue in
                let index = Int32(index)
                return column.isText ? .text(statement.text(index)) : .number(statement.optionalInteger(index))
            }
            if table.record.init(values) != nil { each(TableRow(table, values)) }
        }
    }

    /// Writes the queued rows.
    func save(_ rows: PendingRows<TableRow>) throws(DatabaseError) {
        for key in rows.removed {
            let shape = key.table.shape
            let condition = shape.columns.prefix(shape.keyCount).map { $0.name + " = ?" }.joined(separator: " AND ")
            let statement = try prepare("DELETE FROM \(shape.name) WHERE \(condition)")
            statement.bind(key.values)
            try statement.run()
        }
        for row in rows.changed.values {
            let shape = row.key.table.shape
            let places = shape.columns.map { _ in "?" }.joined(separator: ", ")
            let statement = try prepare("INSERT OR REPLACE INTO \(shape.name) (\(shape.names)) VALUES (\(places))")
            statement.bind(row.values)
            try statement.run()
        }
    }
}

extension Statement {
    /// Binds the values to the parameters, from parameter 1 on.
    fileprivate func bind(_ values: [ColumnValue]) {
        for (index, value) in values.enumerated() {
            switch value {
            case .number(let number): bind(Int32(index + 1), number)
            case .text(let text): bind(Int32(index + 1), text)
            }
        }
    }
}
