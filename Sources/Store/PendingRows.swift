// SPDX-License-Identifier: Apache-2.0

/// A row that belongs to an app, and is removed together with the app.
protocol StoredRow: Sendable, Hashable {
    associatedtype Key: Sendable, Hashable
    /// The row's key, unique among rows of its kind.
    var rowKey: Key { get }
    /// The app's name.
    var rowApp: String { get }
}

extension StoredMail: StoredRow {
    var rowKey: Int64 { id }
    var rowApp: String { app }
}

extension StoredUnhandled: StoredRow {
    var rowKey: Int64 { mail.id }
    var rowApp: String { mail.app }
}

extension StoredSchedule: StoredRow {
    var rowKey: Key { key }
    var rowApp: String { key.app }
}

extension StoredSubscription: StoredRow {
    var rowKey: Key { key }
    var rowApp: String { key.app }
}

/// Rows of one kind that wait to be written or removed, at most one change per key.
struct PendingRows<Row: StoredRow>: Sendable {
    private(set) var changed: [Row.Key: Row] = [:]
    private(set) var removed: Set<Row.Key> = []
    /// Keys of queued rows that were never in the database: removing such a row needs no write.
    private var fresh: Set<Row.Key> = []

    init() {}

    /// Queues all rows that were read from a lost database, for the new database that replaces it.
    init(_ rows: [Row.Key: Row]) { changed = rows }

    var isEmpty: Bool { changed.isEmpty && removed.isEmpty }

    /// - Parameter isFresh: whether no row with this key was saved before.
    mutating func save(_ row: Row, isFresh: Bool = false) {
        changed[row.rowKey] = row
        removed.remove(row.rowKey)
        if isFresh { fresh.insert(row.rowKey) }
    }

    /// Changes a queued row; false if no row with the key is queued.
    mutating func change(_ key: Row.Key, _ change: (inout Row) -> Void) -> Bool {
        guard var row = changed[key] else { return false }
        change(&row)
        changed[key] = row
        return true
    }

    mutating func remove(_ key: Row.Key) {
        let wasThere = changed.removeValue(forKey: key) != nil
        // While the writer thread writes a row, `changed` no longer contains the row: then the removal must be
        // queued.
        if fresh.remove(key) == nil || !wasThere { removed.insert(key) }
    }

    /// Drops an app's queued rows when the app is removed: its rows in the database are deleted too.
    mutating func remove(app: String) {
        for (key, row) in changed where row.rowApp == app {
            changed[key] = nil
            fresh.remove(key)
        }
    }

    /// Requeues the rows of `older`, which could not be written, except those of removed apps. Rows that were queued
    /// after `older` was taken are newer and take precedence.
    mutating func putBack(_ older: PendingRows, removed apps: Set<String>) {
        for (key, row) in older.changed where changed[key] == nil && !apps.contains(row.rowApp) {
            if removed.contains(key) {
                if older.fresh.contains(key) { removed.remove(key) }
                continue
            }
            changed[key] = row
        }
        fresh.formUnion(older.fresh.filter { changed[$0] != nil })
        removed.formUnion(older.removed.filter { changed[$0] == nil })
    }
}

/// A change that waits to be written: of an app's messages, schedules, subscriptions, settings, transfers, alerts or
/// permissions.
package enum MailChange: Sendable, Hashable {
    /// A message was queued or changed.
    case mail(StoredMail)
    /// A message was delivered, or its delivery failed.
    case standing(MailStanding, of: Int64, app: String)
    /// A message was removed from the queue.
    case mailRemoval(Int64, app: String)
    case unhandled(StoredUnhandled)
    case unhandledRemoval(Int64, app: String)
    case schedule(StoredSchedule)
    case scheduleRemoval(StoredSchedule.Key)
    case subscription(StoredSubscription)
    case subscriptionRemoval(StoredSubscription.Key)
    /// Settings of an app were changed. Either all of them are saved or none.
    case settings([StoredSetting], app: String)
    case transfer(StoredTransfer)
    case transferRemoval(Int64, app: String)
    case alert(StoredAlert)
    case alertRemoval(Int64, app: String)
    case permission(StoredPermission)
    case permissionRemoval(StoredPermission.Key)
}

/// Changes that wait to be written, at most one per key.
struct MailWork: Sendable {
    var mail = PendingRows<StoredMail>()
    /// New delivery states of messages whose row has no other queued change.
    private(set) var standings: [Int64: MailStanding] = [:]
    var unhandled = PendingRows<StoredUnhandled>()
    var schedules = PendingRows<StoredSchedule>()
    var subscriptions = PendingRows<StoredSubscription>()
    var settings = PendingRows<StoredSetting>()
    var transfers = PendingRows<StoredTransfer>()
    var alerts = PendingRows<StoredAlert>()
    var permissions = PendingRows<StoredPermission>()
    /// Whether a client waits until these changes are on the disk and survive a power failure.
    var isSynced = false

    init() {}

    /// Queues all rows that were read from a lost database.
    init(_ contents: StoreContents) {
        mail = PendingRows(contents.mail)
        unhandled = PendingRows(contents.unhandled)
        schedules = PendingRows(contents.schedules)
        subscriptions = PendingRows(contents.subscriptions)
        settings = PendingRows(contents.settings)
        transfers = PendingRows(contents.transfers)
        alerts = PendingRows(contents.alerts)
        permissions = PendingRows(contents.permissions)
    }

    var isEmpty: Bool {
        mail.isEmpty && standings.isEmpty && unhandled.isEmpty && schedules.isEmpty && subscriptions.isEmpty
            && settings.isEmpty && transfers.isEmpty && alerts.isEmpty && permissions.isEmpty
            && !isSynced
    }

    /// - Parameter isFresh: whether the changed row was never saved before.
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
        case .schedule(let new): schedules.save(new)
        case .scheduleRemoval(let key): schedules.remove(key)
        case .subscription(let new): subscriptions.save(new)
        case .subscriptionRemoval(let key): subscriptions.remove(key)
        case .settings(let rows, _):
            for row in rows { if row.isNothing { settings.remove(row.key) } else { settings.save(row) } }
        case .transfer(let new): transfers.save(new)
        case .transferRemoval(let id, _): transfers.remove(id)
        case .alert(let new): alerts.save(new)
        case .alertRemoval(let id, _): alerts.remove(id)
        case .permission(let new): permissions.save(new)
        case .permissionRemoval(let key): permissions.remove(key)
        }
    }

    /// Drops the queued changes of an app that is removed with all its rows. Answers to its permission requests stay.
    mutating func remove(app: String) {
        mail.remove(app: app)
        unhandled.remove(app: app)
        schedules.remove(app: app)
        subscriptions.remove(app: app)
        settings.remove(app: app)
        transfers.remove(app: app)
        alerts.remove(app: app)
    }

    /// Requeues the changes of `older`, which could not be written, except those of removed apps. Changes that were
    /// queued after `older` was taken are newer and take precedence.
    mutating func putBack(_ older: MailWork, removed apps: Set<String>) {
        let newer = standings
        mail.putBack(older.mail, removed: apps)
        standings = older.standings.filter { !mail.removed.contains($0.key) && mail.changed[$0.key] == nil }
        for (id, standing) in newer where !mail.change(id, { $0.standing = standing }) { standings[id] = standing }
        unhandled.putBack(older.unhandled, removed: apps)
        schedules.putBack(older.schedules, removed: apps)
        subscriptions.putBack(older.subscriptions, removed: apps)
        settings.putBack(older.settings, removed: apps)
        transfers.putBack(older.transfers, removed: apps)
        alerts.putBack(older.alerts, removed: apps)
        permissions.putBack(older.permissions, removed: [])
        isSynced = isSynced || older.isSynced
    }
}

extension StoreContents {
    /// Applies a change that is not in the database yet to the content read from it.
    mutating func apply(_ change: MailChange) {
        switch change {
        case .mail(let new): mail[new.id] = new
        case .standing(let standing, let id, _): mail[id]?.standing = standing
        case .mailRemoval(let id, _): mail[id] = nil
        case .unhandled(let new): unhandled[new.mail.id] = new
        case .unhandledRemoval(let id, _): unhandled[id] = nil
        case .schedule(let new): schedules[new.key] = new
        case .scheduleRemoval(let key): schedules[key] = nil
        case .subscription(let new): subscriptions[new.key] = new
        case .subscriptionRemoval(let key): subscriptions[key] = nil
        case .settings(let rows, _): for row in rows { settings[row.key] = row.isNothing ? nil : row }
        case .transfer(let new): transfers[new.id] = new
        case .transferRemoval(let id, _): transfers[id] = nil
        case .alert(let new): alerts[new.id] = new
        case .alertRemoval(let id, _): alerts[id] = nil
        case .permission(let new): permissions[new.key] = new
        case .permissionRemoval(let key): permissions[key] = nil
        }
    }

    /// Removes all rows of an app, except answers to its permission requests.
    mutating func forget(app: String) {
        apps[app] = nil
        mail = mail.filter { $0.value.app != app }
        unhandled = unhandled.filter { $0.value.mail.app != app }
        schedules = schedules.filter { $0.key.app != app }
        subscriptions = subscriptions.filter { $0.key.app != app }
        settings = settings.filter { $0.key.app != app }
        transfers = transfers.filter { $0.value.app != app }
        alerts = alerts.filter { $0.value.app != app }
    }
}
