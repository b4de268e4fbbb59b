// SPDX-License-Identifier: Apache-2.0

/// The value of an app's setting.
public struct StoredSetting: Sendable, Hashable {
    /// The app and the setting's name.
    public struct Key: Sendable, Hashable {
        /// The app's name.
        public var app: String
        /// The setting's name.
        public var name: String

        /// Creates a key from its parts.
        public init(app: String, name: String) {
            self.app = app
            self.name = name
        }
    }

    /// Identifies the value: the app and the setting.
    public var key: Key
    /// The value in its normal form; nil if the setting was unset and the app must still be notified of that.
    public var value: String?
    /// When the setting was changed, microseconds since 1970.
    public var at: Int64
    /// While the app was not notified of `value` yet: the value that it was notified of last; nil if the setting was
    /// unset then.
    public var known: String?
    /// Whether the app was notified of `value`.
    public var isTold = true

    /// Creates a value that the app was notified of.
    public init(app: String, name: String, value: String?, at: Int64) {
        key = Key(app: app, name: name)
        self.value = value
        self.at = at
    }

    /// Whether no row is needed: the setting is unset, and the app was notified of that.
    public var isNothing: Bool { value == nil && isTold }
}

extension StoredSetting: StoredRow {
    var rowKey: Key { key }
    var rowApp: String { key.app }
}

extension Store {
    /// Saves settings of an app. If torpord is killed, either all of them are saved or none.
    public func save(_ settings: [StoredSetting], of app: String) {
        if !settings.isEmpty { change(.settings(settings, app: app)) }
    }
}

extension Database {
    /// Calls `each` for every stored setting. If a read fails, the caller keeps the rows that it already got.
    func settings(_ each: (StoredSetting) -> Void) throws(DatabaseError) {
        let statement = try prepare("SELECT app, name, value, at, known, told FROM settings")
        defer { statement.reset() }
        while try statement.step() {
            guard let app = statement.text(0), let name = statement.text(1) else { continue }
            var setting = StoredSetting(app: app, name: name, value: statement.text(2), at: statement.integer(3))
            setting.known = statement.text(4)
            setting.isTold = statement.integer(5) != 0
            each(setting)
        }
    }

    /// Writes the queued rows.
    func save(_ settings: PendingRows<StoredSetting>) throws(DatabaseError) {
        for key in settings.removed {
            let statement = try prepare("DELETE FROM settings WHERE app = ? AND name = ?")
            statement.bind(1, key.app)
            statement.bind(2, key.name)
            try statement.run()
        }
        for setting in settings.changed.values {
            let statement = try prepare(
                "INSERT OR REPLACE INTO settings (app, name, value, at, known, told) VALUES (?, ?, ?, ?, ?, ?)"
            )
            statement.bind(1, setting.key.app)
            statement.bind(2, setting.key.name)
            statement.bind(3, setting.value)
            statement.bind(4, setting.at)
            statement.bind(5, setting.known)
            statement.bind(6, setting.isTold ? 1 : 0)
            try statement.run()
        }
    }
}
