// SPDX-License-Identifier: Apache-2.0

/// The value of an app's setting.
public struct StoredSetting: Sendable, Hashable {
    /// The app and the setting's name.
    public typealias Key = StoredKey

    /// Identifies the value: the app and the setting.
    public var key: Key
    /// The value in its normal form; nil if the setting was unset. An unset setting has a row as long as the app must
    /// still be notified.
    public var value: String?
    /// When the setting was changed, microseconds since 1970.
    public var at: Int64
    /// If the app was not yet notified of `value`: the value of the last notification, or nil if the setting was unset
    /// then.
    public var known: String?
    /// Whether the app has been notified of `value`.
    public var isTold = true

    /// Creates a value that the app was notified of.
    public init(app: String, name: String, value: String?, at: Int64) {
        key = Key(app: app, name: name)
        self.value = value
        self.at = at
    }

    /// Whether no row is needed, because the setting is unset and the app has been notified.
    public var isNothing: Bool { value == nil && isTold }
}

extension StoredSetting: TableRecord {
    package static var table: RowTable { .settings }
    package static let shape = TableShape(
        "settings",
        version: 5,
        "app name value at known told",
        numbers: ["at", "told"],
        keyCount: 2,
        frames: (StoreJournal.settings, StoreJournal.settings)
    )

    package var recordKey: Key { key }
    package var values: [ColumnValue] {
        Self.values(of: key) + [.text(value), .number(at), .text(known), .number(isTold ? 1 : 0)]
    }

    package init?(_ values: [ColumnValue]) {
        guard let app = values[0].text, let name = values[1].text, let at = values[3].number else { return nil }
        self.init(app: app, name: name, value: values[2].text, at: at)
        known = values[4].text
        isTold = values[5].number ?? 1 != 0
    }
}

extension MailChange {
    /// The change of several settings of an app. Either all of them are saved or none.
    package static func settings(_ settings: [StoredSetting]) -> MailChange {
        .rows(
            settings.map { setting in
                let row = TableRow(setting)
                return setting.isNothing ? .remove(row.key, app: setting.key.app) : .save(row)
            }
        )
    }
}

extension Store {
    /// Saves settings of an app. Even if torpord is killed, either all of them are saved or none.
    public func save(_ settings: [StoredSetting], of app: String) {
        if !settings.isEmpty { change(.settings(settings)) }
    }
}
