// SPDX-License-Identifier: Apache-2.0

/// A row that belongs to an app, and goes with it.
protocol StoredRow: Sendable, Hashable {
    associatedtype Key: Sendable, Hashable
    /// What no other row of its kind has.
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

/// Rows of one kind as they are to be written: the newest of each.
struct PendingRows<Row: StoredRow>: Sendable {
    private(set) var changed: [Row.Key: Row] = [:]
    private(set) var removed: Set<Row.Key> = []
    /// Those that the file never had and need not be removed from it.
    private var fresh: Set<Row.Key> = []

    init() {}

    /// Those of a file that was lost, for the one in its place.
    init(_ rows: [Row.Key: Row]) { changed = rows }

    var isEmpty: Bool { changed.isEmpty && removed.isEmpty }

    /// - Parameter isFresh: nothing with its key was saved before.
    mutating func save(_ row: Row, isFresh: Bool = false) {
        changed[row.rowKey] = row
        removed.remove(row.rowKey)
        if isFresh { fresh.insert(row.rowKey) }
    }

    /// Changes what is to be written; false when that is nothing.
    mutating func change(_ key: Row.Key, _ change: (inout Row) -> Void) -> Bool {
        guard var row = changed[key] else { return false }
        change(&row)
        changed[key] = row
        return true
    }

    mutating func remove(_ key: Row.Key) {
        let wasThere = changed.removeValue(forKey: key) != nil
        // It may be written right now, then it is not in `changed` any more.
        if fresh.remove(key) == nil || !wasThere { removed.insert(key) }
    }

    /// Nothing of the app's is to be written: all is removed.
    mutating func remove(app: String) {
        for (key, row) in changed where row.rowApp == app {
            changed[key] = nil
            fresh.remove(key)
        }
    }

    /// Takes back what could not be written, except of apps that went: what came meanwhile is newer.
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

/// A change of what waits for apps, or of when things happen to them.
package enum MailChange: Sendable, Hashable {
    /// It waits, as this.
    case mail(StoredMail)
    /// It is told, or was told for nothing.
    case standing(MailStanding, of: Int64, app: String)
    /// It waits no more.
    case mailRemoval(Int64, app: String)
    case unhandled(StoredUnhandled)
    case unhandledRemoval(Int64, app: String)
    case schedule(StoredSchedule)
    case scheduleRemoval(StoredSchedule.Key)
    case subscription(StoredSubscription)
    case subscriptionRemoval(StoredSubscription.Key)
    /// All of them, or none.
    case settings([StoredSetting], app: String)
    case transfer(StoredTransfer)
    case transferRemoval(Int64, app: String)
}

/// Such changes as they are to be written: the newest of each.
struct MailWork: Sendable {
    var mail = PendingRows<StoredMail>()
    /// Of mail of which nothing else is to be written.
    private(set) var standings: [Int64: MailStanding] = [:]
    var unhandled = PendingRows<StoredUnhandled>()
    var schedules = PendingRows<StoredSchedule>()
    var subscriptions = PendingRows<StoredSubscription>()
    var settings = PendingRows<StoredSetting>()
    var transfers = PendingRows<StoredTransfer>()
    /// Somebody waits until it is on the disk, also should the machine lose its power.
    var isSynced = false

    init() {}

    /// All that was read of a file that was lost.
    init(_ contents: StoreContents) {
        mail = PendingRows(contents.mail)
        unhandled = PendingRows(contents.unhandled)
        schedules = PendingRows(contents.schedules)
        subscriptions = PendingRows(contents.subscriptions)
        settings = PendingRows(contents.settings)
        transfers = PendingRows(contents.transfers)
    }

    var isEmpty: Bool {
        mail.isEmpty && standings.isEmpty && unhandled.isEmpty && schedules.isEmpty && subscriptions.isEmpty
            && settings.isEmpty && transfers.isEmpty && !isSynced
    }

    /// - Parameter isFresh: nothing with this number was saved before.
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
        }
    }

    /// Nothing of the app's is to be written: all is removed.
    mutating func remove(app: String) {
        mail.remove(app: app)
        unhandled.remove(app: app)
        schedules.remove(app: app)
        subscriptions.remove(app: app)
        settings.remove(app: app)
        transfers.remove(app: app)
    }

    /// Takes back what could not be written, except of apps that went: what came meanwhile is newer.
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
        isSynced = isSynced || older.isSynced
    }
}

extension StoreContents {
    /// What is not in the file yet.
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
        }
    }

    /// The app was removed, or goes.
    mutating func forget(app: String) {
        apps[app] = nil
        mail = mail.filter { $0.value.app != app }
        unhandled = unhandled.filter { $0.value.mail.app != app }
        schedules = schedules.filter { $0.key.app != app }
        subscriptions = subscriptions.filter { $0.key.app != app }
        settings = settings.filter { $0.key.app != app }
        transfers = transfers.filter { $0.value.app != app }
    }
}
