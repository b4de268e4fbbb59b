// SPDX-License-Identifier: Apache-2.0

/// A row that belongs to an app.
protocol StoredRow: Sendable, Hashable {
    associatedtype Key: Sendable, Hashable
    /// The row's key, unique among rows of its kind.
    var rowKey: Key { get }
    /// The app's name.
    var rowApp: String { get }
    /// Whether the row is removed together with its app.
    var leavesWithApp: Bool { get }
}

extension StoredRow {
    var leavesWithApp: Bool { true }
}

extension StoredMail: StoredRow {
    var rowKey: Int64 { id }
    var rowApp: String { app }
}

extension StoredUnhandled: StoredRow {
    var rowKey: Int64 { mail.id }
    var rowApp: String { mail.app }
}

/// Rows of one kind that wait to be written or removed, at most one change per key.
struct PendingRows<Row: StoredRow>: Sendable {
    private(set) var changed: [Row.Key: Row] = [:]
    private(set) var removed: Set<Row.Key> = []
    /// Keys of queued rows that were never in the database. If such a row is removed, nothing needs to be written.
    private var fresh: Set<Row.Key> = []

    init() {}

    /// Queues all rows that were read from a lost database, so that they are written to the new database.
    init(_ rows: [Row.Key: Row]) { changed = rows }

    var isEmpty: Bool { changed.isEmpty && removed.isEmpty }

    /// - Parameter isFresh: true if no row with this key was saved before.
    mutating func save(_ row: Row, isFresh: Bool = false) {
        changed[row.rowKey] = row
        removed.remove(row.rowKey)
        if isFresh { fresh.insert(row.rowKey) }
    }

    /// Changes a queued row. Returns false if no row with the key is queued.
    mutating func change(_ key: Row.Key, _ change: (inout Row) -> Void) -> Bool {
        guard var row = changed[key] else { return false }
        change(&row)
        changed[key] = row
        return true
    }

    mutating func remove(_ key: Row.Key) {
        let wasThere = changed.removeValue(forKey: key) != nil
        // Queue the removal unless the row was only queued and is certainly not in the database. A row that the writer
        // thread is writing right now is neither in `changed` nor in `fresh`, and one whose write has failed is not in
        // `fresh`, so their removal is queued too.
        if fresh.remove(key) == nil || !wasThere { removed.insert(key) }
    }

    /// Drops the queued rows of an app that is removed. Rows in the database are deleted separately.
    mutating func remove(app: String) {
        for (key, row) in changed where row.rowApp == app && row.leavesWithApp {
            changed[key] = nil
            fresh.remove(key)
        }
    }

    /// Queues the rows of `older` again, because their write has failed. Rows of removed apps are not queued again.
    /// If a newer row with the same key was queued since, the newer one is kept.
    ///
    /// None of these rows is fresh any longer. SQLite may report an error after it has written a complete transaction
    /// to the write-ahead log, for instance if fsync(2) fails: when the database is opened again, it contains the rows.
    mutating func putBack(_ older: PendingRows, removed apps: Set<String>) {
        for (key, row) in older.changed where changed[key] == nil && !removed.contains(key) {
            if row.leavesWithApp, apps.contains(row.rowApp) { continue }
            changed[key] = row
        }
        fresh.subtract(older.changed.keys)
        removed.formUnion(older.removed.filter { changed[$0] == nil })
    }
}

/// A change to be written: to an app's messages, schedules, subscriptions, settings, transfers, alerts or permissions.
package enum MailChange: Sendable, Hashable {
    /// A message was queued or changed.
    case mail(StoredMail)
    /// A message was delivered, or its delivery failed.
    case standing(MailStanding, of: Int64, app: String)
    /// A message was removed from the queue.
    case mailRemoval(Int64, app: String)
    case unhandled(StoredUnhandled)
    case unhandledRemoval(Int64, app: String)
    /// Rows of one table were changed. Either all of these changes are saved or none.
    case rows([RowChange])
}

/// Changes to be written, at most one per key.
struct MailWork: Sendable {
    var mail = PendingRows<StoredMail>()
    /// New delivery states of messages for whose row no other change is queued.
    private(set) var standings: [Int64: MailStanding] = [:]
    var unhandled = PendingRows<StoredUnhandled>()
    var rows = PendingRows<TableRow>()
    /// Whether a client waits until these changes are safely on the disk, so that they survive a power failure.
    var isSynced = false

    init() {}

    /// Queues all rows that were read from a lost database.
    init(_ contents: StoreContents) {
        mail = PendingRows(contents.mail)
        unhandled = PendingRows(contents.unhandled)
        rows = PendingRows(contents.rows)
    }

    var isEmpty: Bool { mail.isEmpty && standings.isEmpty && unhandled.isEmpty && rows.isEmpty && !isSynced }

    /// - Parameter isFresh: true if the changed row was never saved before.
    mutating func take(_ change: MailChange, isFresh: Bool = false) {
        switch change {
        case .mail(let new):
            mail.save(new, isFresh: isFresh)
            standings[new.id] = nil
        case .standing(let standing, let id, _):
            if mail.removed.contains(id) { break }
            if !mail.change(id, { $0.standing = standing }) { standings[id] = standing }
        case .mailRemoval(let id, _):
            mail.remove(id)
            standings[id] = nil
        case .unhandled(let new): unhandled.save(new, isFresh: isFresh)
        case .unhandledRemoval(let id, _): unhandled.remove(id)
        case .rows(let changes):
            for change in changes {
                switch change {
                case .save(let row): rows.save(row)
                case .remove(let key, _): rows.remove(key)
                }
            }
        }
    }

    /// Drops the queued changes of an app that is removed with all its rows. Answers to its permission requests are
    /// kept.
    mutating func remove(app: String) {
        mail.remove(app: app)
        unhandled.remove(app: app)
        rows.remove(app: app)
    }

    /// Queues the changes of `older` again, because they could not be written. Changes for removed apps are not queued
    /// again. If a newer change with the same key was queued since, the newer one is kept.
    mutating func putBack(_ older: MailWork, removed apps: Set<String>) {
        let newer = standings
        mail.putBack(older.mail, removed: apps)
        standings = older.standings.filter { !mail.removed.contains($0.key) && mail.changed[$0.key] == nil }
        for (id, standing) in newer where !mail.change(id, { $0.standing = standing }) { standings[id] = standing }
        unhandled.putBack(older.unhandled, removed: apps)
        rows.putBack(older.rows, removed: apps)
        isSynced = isSynced || older.isSynced
    }
}

extension StoreContents {
    /// Applies a change that is not in the database yet to this content, which was read from the database.
    mutating func apply(_ change: MailChange) {
        switch change {
        case .mail(let new): mail[new.id] = new
        case .standing(let standing, let id, _): mail[id]?.standing = standing
        case .mailRemoval(let id, _): mail[id] = nil
        case .unhandled(let new): unhandled[new.mail.id] = new
        case .unhandledRemoval(let id, _): unhandled[id] = nil
        case .rows(let changes):
            for change in changes {
                switch change {
                case .save(let row): rows[row.key] = row
                case .remove(let key, _): rows[key] = nil
                }
            }
        }
    }

    /// Removes all rows of an app, except answers to its permission requests.
    mutating func forget(app: String) {
        apps[app] = nil
        mail = mail.filter { $0.value.app != app }
        unhandled = unhandled.filter { $0.value.mail.app != app }
        rows = rows.filter { $0.value.rowApp != app || !$0.value.leavesWithApp }
    }
}
