// SPDX-License-Identifier: Apache-2.0

/// A row that belongs to an app, and is removed with it.
protocol StoredRow: Sendable, Hashable {
    associatedtype Key: Sendable, Hashable
    /// Unique among rows of its kind.
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

/// Pending writes of one kind, coalesced by key.
struct PendingRows<Row: StoredRow>: Sendable {
    private(set) var changed: [Row.Key: Row] = [:]
    private(set) var removed: Set<Row.Key> = []
    /// Keys that were never in the file, so that removing them needs no write.
    private var fresh: Set<Row.Key> = []

    init() {}

    /// All rows of a lost file, to write into the new one.
    init(_ rows: [Row.Key: Row]) { changed = rows }

    var isEmpty: Bool { changed.isEmpty && removed.isEmpty }

    /// - Parameter isFresh: this key was never saved before.
    mutating func save(_ row: Row, isFresh: Bool = false) {
        changed[row.rowKey] = row
        removed.remove(row.rowKey)
        if isFresh { fresh.insert(row.rowKey) }
    }

    /// Changes a pending row; false if it is not pending.
    mutating func change(_ key: Row.Key, _ change: (inout Row) -> Void) -> Bool {
        guard var row = changed[key] else { return false }
        change(&row)
        changed[key] = row
        return true
    }

    mutating func remove(_ key: Row.Key) {
        let wasThere = changed.removeValue(forKey: key) != nil
        // It may be being written right now; then it is no longer in `changed`.
        if fresh.remove(key) == nil || !wasThere { removed.insert(key) }
    }

    /// Drops the pending rows of an app, which is removed entirely.
    mutating func remove(app: String) {
        for (key, row) in changed where row.rowApp == app {
            changed[key] = nil
            fresh.remove(key)
        }
    }

    /// Requeues rows that could not be written, except for removed apps. Rows queued since are newer and win.
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

/// A change of an app's mail, schedules, subscriptions, settings, transfers or alerts.
package enum MailChange: Sendable, Hashable {
    /// Mail was queued or changed.
    case mail(StoredMail)
    /// Mail was delivered, or a delivery failed.
    case standing(MailStanding, of: Int64, app: String)
    /// Mail was removed.
    case mailRemoval(Int64, app: String)
    case unhandled(StoredUnhandled)
    case unhandledRemoval(Int64, app: String)
    case schedule(StoredSchedule)
    case scheduleRemoval(StoredSchedule.Key)
    case subscription(StoredSubscription)
    case subscriptionRemoval(StoredSubscription.Key)
    /// All of them or none are saved.
    case settings([StoredSetting], app: String)
    case transfer(StoredTransfer)
    case transferRemoval(Int64, app: String)
    case alert(StoredAlert)
    case alertRemoval(Int64, app: String)
}

/// Pending changes, coalesced by key.
struct MailWork: Sendable {
    var mail = PendingRows<StoredMail>()
    /// States of mail whose row has no other pending change.
    private(set) var standings: [Int64: MailStanding] = [:]
    var unhandled = PendingRows<StoredUnhandled>()
    var schedules = PendingRows<StoredSchedule>()
    var subscriptions = PendingRows<StoredSubscription>()
    var settings = PendingRows<StoredSetting>()
    var transfers = PendingRows<StoredTransfer>()
    var alerts = PendingRows<StoredAlert>()
    /// A client waits until it is on disk, safe from power loss.
    var isSynced = false

    init() {}

    /// Everything read from a lost file.
    init(_ contents: StoreContents) {
        mail = PendingRows(contents.mail)
        unhandled = PendingRows(contents.unhandled)
        schedules = PendingRows(contents.schedules)
        subscriptions = PendingRows(contents.subscriptions)
        settings = PendingRows(contents.settings)
        transfers = PendingRows(contents.transfers)
        alerts = PendingRows(contents.alerts)
    }

    var isEmpty: Bool {
        mail.isEmpty && standings.isEmpty && unhandled.isEmpty && schedules.isEmpty && subscriptions.isEmpty
            && settings.isEmpty && transfers.isEmpty && alerts.isEmpty && !isSynced
    }

    /// - Parameter isFresh: this number was never saved before.
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
        }
    }

    /// Drops the pending changes of an app, which is removed entirely.
    mutating func remove(app: String) {
        mail.remove(app: app)
        unhandled.remove(app: app)
        schedules.remove(app: app)
        subscriptions.remove(app: app)
        settings.remove(app: app)
        transfers.remove(app: app)
        alerts.remove(app: app)
    }

    /// Requeues changes that could not be written, except for removed apps. Changes queued since are newer and win.
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
        isSynced = isSynced || older.isSynced
    }
}

extension StoreContents {
    /// Applies a change that is not in the file yet.
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
        }
    }

    /// Removes an app's rows.
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
