// SPDX-License-Identifier: Apache-2.0

/// A user's answer to an app's permission request, or the record that users were asked.
public struct StoredPermission: Sendable, Hashable {
    /// The app and the permission's name.
    public struct Key: Sendable, Hashable {
        /// The app's name.
        public var app: String
        /// The permission's name.
        public var name: String

        /// Creates a key from its parts.
        public init(app: String, name: String) {
            self.app = app
            self.name = name
        }
    }

    /// Identifies the answer: the app and the permission.
    public var key: Key
    /// Whether the user allowed the permission; nil if the answer was withdrawn while the app may still run with it.
    public var isAllowed: Bool?
    /// The ports that the answer for `network` covers, separated by spaces; empty for all ports, and for other
    /// permissions.
    public var scope: String
    /// The user who answered.
    public var by: String
    /// When the user answered, microseconds since 1970.
    public var at: Int64
    /// Whether the app may still run with the permission that it had before this answer.
    public var isPending = true

    /// The prefix of the name in rows that record a question instead of an answer. No permission has such a name.
    static let mark = "?"

    /// Creates the record that users were asked for a permission and have not answered yet.
    ///
    /// It looks like an answer that was withdrawn, so that earlier versions of Torpor ignore it.
    public static func question(_ name: String, of app: String, scope: String, at: Int64) -> StoredPermission {
        var row = StoredPermission(app: app, name: mark + name, isAllowed: nil, scope: scope, by: "", at: at)
        row.isPending = false
        return row
    }

    /// The permission that users were asked for; nil if the row is an answer.
    public var asked: String? {
        key.name.utf8.starts(with: Self.mark.utf8) ? String(key.name.dropFirst(Self.mark.count)) : nil
    }

    /// Creates an answer that does not apply to the running app yet.
    public init(app: String, name: String, isAllowed: Bool?, scope: String, by: String, at: Int64) {
        key = Key(app: app, name: name)
        self.isAllowed = isAllowed
        self.scope = scope
        self.by = by
        self.at = at
    }
}

extension StoredPermission {
    /// The answer as a number for the database: 0 denied, 1 allowed, 2 withdrawn.
    var number: Int64 { isAllowed.map { $0 ? 1 : 0 } ?? 2 }
}

extension StoredPermission: StoredRow {
    var rowKey: Key { key }
    var rowApp: String { key.app }
}

extension Store {
    /// Saves an answer; replaces the app's earlier answer about the same permission.
    public func save(_ permission: StoredPermission) { change(.permission(permission)) }

    /// Removes an answer.
    public func removePermission(_ key: StoredPermission.Key) { change(.permissionRemoval(key)) }
}

extension Database {
    /// Calls `each` for every answer and question. If a read fails, the caller keeps the rows that it already got.
    func permissions(_ each: (StoredPermission) -> Void) throws(DatabaseError) {
        let statement = try prepare("SELECT app, name, allowed, scope, by, at, pending FROM permissions")
        defer { statement.reset() }
        while try statement.step() {
            guard let app = statement.text(0), let name = statement.text(1), let scope = statement.text(3),
                let by = statement.text(4)
            else { continue }
            var row = StoredPermission(
                app: app,
                name: name,
                isAllowed: Self.answer(statement.integer(2)),
                scope: scope,
                by: by,
                at: statement.integer(5)
            )
            row.isPending = statement.integer(6) != 0
            each(row)
        }
    }

    private static func answer(_ number: Int64) -> Bool? { number == 2 ? nil : number != 0 }

    /// Writes the queued rows.
    func save(_ permissions: PendingRows<StoredPermission>) throws(DatabaseError) {
        for key in permissions.removed {
            let statement = try prepare("DELETE FROM permissions WHERE app = ? AND name = ?")
            statement.bind(1, key.app)
            statement.bind(2, key.name)
            try statement.run()
        }
        for permission in permissions.changed.values {
            let statement = try prepare(
                """
                INSERT OR REPLACE INTO permissions (app, name, allowed, scope, by, at, pending)
                    VALUES (?, ?, ?, ?, ?, ?, ?)
                """
            )
            statement.bind(1, permission.key.app)
            statement.bind(2, permission.key.name)
            statement.bind(3, permission.number)
            statement.bind(4, permission.scope)
            statement.bind(5, permission.by)
            statement.bind(6, permission.at)
            statement.bind(7, permission.isPending ? 1 : 0)
            try statement.run()
        }
    }
}
