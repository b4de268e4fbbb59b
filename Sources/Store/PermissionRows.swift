// SPDX-License-Identifier: Apache-2.0

/// A user's answer to an app's permission request, or the record that users were asked.
public struct StoredPermission: Sendable, Hashable {
    /// The app and the permission's name.
    public typealias Key = StoredKey

    /// Identifies the answer: the app and the permission.
    public var key: Key
    /// Whether the user allowed the permission. Nil if the answer was withdrawn; this is stored because the app may
    /// still be running with the permission.
    public var isAllowed: Bool?
    /// The ports that the answer for `network` covers, separated by spaces; empty for all ports, and for other
    /// permissions.
    public var scope: String
    /// The user who answered.
    public var by: String
    /// When the user answered, microseconds since 1970.
    public var at: Int64
    /// Whether the app may still be running with the permission that it had before this answer.
    public var isPending = true

    /// The prefix of the name in a row that records a question instead of an answer. No permission has a name with this
    /// prefix.
    static let mark = "?"

    /// Creates the record that users were asked for a permission and have not answered yet.
    ///
    /// The record has the form of a withdrawn answer, so that earlier versions of Torpor ignore it.
    public static func question(_ name: String, of app: String, scope: String, at: Int64) -> StoredPermission {
        var row = StoredPermission(app: app, name: mark + name, isAllowed: nil, scope: scope, by: "", at: at)
        row.isPending = false
        return row
    }

    /// The permission that users were asked for; nil if the row is an answer.
    public var asked: String? {
        key.name.utf8.starts(with: Self.mark.utf8) ? String(key.name.dropFirst(Self.mark.count)) : nil
    }

    /// Creates an answer that does not yet apply to the running app.
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

extension StoredPermission: TableRecord {
    package static var table: RowTable { .permissions }
    // The rows are kept when their app is removed. Otherwise a denial would be forgotten if the app is removed from the
    // configuration and added again.
    package static let shape = TableShape(
        "permissions",
        version: 8,
        "app name allowed scope by at pending",
        numbers: ["allowed", "at", "pending"],
        keyCount: 2,
        frames: (18, 19),
        leavesWithApp: false
    )

    package var recordKey: Key { key }
    package var values: [ColumnValue] {
        Self.values(of: key) + [.number(number), .text(scope), .text(by), .number(at), .number(isPending ? 1 : 0)]
    }

    package init?(_ values: [ColumnValue]) {
        guard let app = values[0].text, let name = values[1].text, let number = values[2].number,
            let scope = values[3].text, let by = values[4].text, let at = values[5].number
        else { return nil }
        let isAllowed = number == 2 ? nil : number != 0
        self.init(app: app, name: name, isAllowed: isAllowed, scope: scope, by: by, at: at)
        isPending = values[6].number ?? 0 != 0
    }
}

extension Store {
    /// Saves an answer; replaces the app's earlier answer about the same permission.
    public func save(_ permission: StoredPermission) { change(.save(permission)) }

    /// Removes an answer.
    public func removePermission(_ key: StoredPermission.Key) {
        change(.remove(StoredPermission.self, key, of: key.app))
    }
}
