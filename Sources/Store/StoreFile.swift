// SPDX-License-Identifier: Apache-2.0

import CSQLite
import Linux

/// The path of a database, and the machine and boot in which it is used.
struct StorePlace: Sendable {
    var path: String
    /// The content of /etc/machine-id; empty if there is none.
    var machine: String
    /// The id of this boot; empty if unknown.
    var boot: String
    /// The name of an SQLite VFS; nil for the default.
    var vfs: String?
    /// How long events are kept.
    var retention: Retention
}

/// The open database. It was verified to be torpord's, and was migrated to the current schema version unless changes
/// are not permitted yet.
final class StoreFile {
    let database: Database
    let isReadOnly: Bool
    /// Whether the file still has an older schema version, because changes are not permitted yet.
    let isBehind: Bool
    /// The part of the file's content that applies to this machine and this boot.
    private var contents = StoreContents()
    /// The highest sequence number of any event that is or was in the file; 0 if there never was one.
    private(set) var lastSequence: Int64 = 0
    private let place: StorePlace
    private let inode: UInt64?
    private var eventCount: Int64 = 0
    /// How many events of which apps `tidy` has yet to remove.
    private var surplus: [FairShares.Share] = []
    /// How many bytes the events of each app have; nil if the file is too small for too many.
    private var sizes: EventSizes?
    /// How many bytes of events of which apps `tidy` has yet to remove.
    private var surplusBytes: [FairShares.Share] = []
    private var agedAt: Duration?
    /// As long as so many bytes of events are not added, the file is too small for a count of the events' sizes under
    /// this limit. To ask the file for its size takes longer than to add an event.
    private var room: (bytes: Int64, limit: Int64) = (0, 0)
    private var hasShrunk = false

    /// Opens the file, creates it if missing, and migrates it to the current schema version.
    ///
    /// - Parameter holds: if true, nothing in the file is changed yet, not even its schema version.
    init(_ place: StorePlace, mode: Database.Mode = .readWrite, holds: Bool) throws(DatabaseError) {
        self.place = place
        isReadOnly = mode == .immutable
        if mode == .readWrite, try !Self.makeFile(place), let size = Self.size(place.path), size < Self.shortest {
            throw DatabaseError(kind: .emptied, "it has only \(size) bytes")
        }
        database = try Database(path: place.path, mode: mode, vfs: place.vfs)
        inode = try? File.status(place.path).inode
        try database.run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -128; PRAGMA temp_store = MEMORY")
        let version = try database.integer("PRAGMA user_version") ?? 0
        let isEmpty = try database.integer("SELECT count(*) FROM sqlite_schema") == 0
        let application = try database.integer("PRAGMA application_id") ?? 0
        isBehind = holds && version < Schema.version
        guard application == Schema.applicationID || (application == 0 && isEmpty), version >= 0,
            (version == 0) == isEmpty
        else { throw DatabaseError(kind: .foreign, "it belongs to another program") }
        if version > Schema.version {
            throw DatabaseError(
                kind: .newer(version: version),
                "its version is \(version), and this torpord knows \(Schema.version)"
            )
        }
        if !isReadOnly {
            try database.run(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 4194304"
            )
        }
        try adopt(version: version, holds: holds)
        database.keepLogOnClose(false)
    }

    /// The size of a database's header. SQLite writes it, with the rest of the first page, before anything else.
    private static let shortest: UInt64 = 100

    /// The size of a regular file; nil for anything else.
    private static func size(_ path: String) -> UInt64? {
        guard let status = try? File.status(path), status.kind == .regular else { return nil }
        return status.size
    }

    /// Creates the file with mode 0600, because with SQLite's default mode every user could read it. Returns false if
    /// it exists.
    ///
    /// The file gets its name when its first page is on the disk: after a loss of power or on a full disk, a file of 0
    /// bytes would be left otherwise, which the next open would take for one that was emptied.
    private static func makeFile(_ place: StorePlace) throws(DatabaseError) -> Bool {
        let draft = place.path + ".new"
        do throws(Errno) {
            guard try File.kind(place.path) == nil else { return false }
            if let directory = File.parent(of: place.path) { try File.makeDirectories(directory) }
            // What a loss of power left of an earlier attempt, and logs without their database: SQLite would read them.
            for path in [draft, draft + "-journal", place.path + "-wal", place.path + "-shm", place.path + "-journal"] {
                if try File.kind(path) != nil { try File.remove(path) }
            }
            try File.open(draft, [.readWrite, .create, .exclusive], mode: 0o600).close()
        } catch {
            throw failure(error)
        }
        do throws(DatabaseError) {
            try writeFirstPage(of: draft, vfs: place.vfs)
            do throws(Errno) {
                try File.rename(draft, place.path)
                if let directory = File.parent(of: place.path) { try File.synchroniseFolder(directory) }
            } catch {
                throw failure(error)
            }
        } catch {
            for path in [draft, draft + "-journal"] { try? File.remove(path) }
            throw error
        }
        return true
    }

    /// Makes a file a database without tables. SQLite ignores `auto_vacuum` for any other one.
    private static func writeFirstPage(of path: String, vfs: String?) throws(DatabaseError) {
        let database = try Database(path: path, mode: .readWrite, vfs: vfs)
        defer { database.close() }
        try database.run("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = \(Schema.applicationID)")
    }

    private static func failure(_ error: Errno) -> DatabaseError {
        DatabaseError(kind: error == .noSpace ? .full : error == .ioError ? .input : .refused, "\(error)")
    }

    /// Migrates the file, reads its content, and marks it as written by this machine and boot.
    private func adopt(version: Int64, holds: Bool) throws(DatabaseError) {
        if isReadOnly {
            if version > 0 { try read() }
            return
        }
        try database.transaction(commits: !holds) { () throws(DatabaseError) in
            if version < Schema.version { try Schema.migrate(database, from: version) }
            try read()
            if !holds { try setMeta() }
        }
    }

    private func setMeta() throws(DatabaseError) {
        if contents.origin == .thisBoot { return }
        for row in contents.apps.values { try database.save(row) }
        try database.setMeta("machine", place.machine)
        try database.setMeta("boot", place.boot)
    }

    private func read() throws(DatabaseError) {
        var apps: [String: AppRow] = [:]
        try database.apps { apps[$0.name] = $0 }
        contents.apps = apps
        // The tables of messages and schedules exist since version 3. A file of an older version that must not be
        // migrated yet lacks them.
        if try database.integer("PRAGMA user_version") ?? 0 >= 3 { try readMail() }
        let machine = try database.meta("machine")
        contents.origin =
            if let machine, machine != place.machine, !machine.isEmpty, !place.machine.isEmpty {
                .otherMachine
            } else if let boot = try database.meta("boot") {
                boot == place.boot && !boot.isEmpty ? .thisBoot : .earlierBoot
            } else {
                .nobody
            }
        contents.forgetWhatIsOver()
        let kept = try database.meta("last_sequence").flatMap { Int64($0) } ?? 0
        lastSequence = max(kept, try database.integer("SELECT max(sequence) FROM events") ?? 0)
        contents.lastSequence = lastSequence
        eventCount = try database.integer("SELECT count(*) FROM events") ?? 0
    }

    private func readMail() throws(DatabaseError) {
        try database.mail { contents.mail[$0.id] = $0 }
        if try database.integer("PRAGMA user_version") ?? 0 >= 4 {
            // The payloads of unhandled messages are read only on request.
            var query = UnhandledQuery()
            query.hasPayload = false
            try database.unhandled(query) { contents.unhandled[$0.mail.id] = $0 }
        }
        let version = try database.integer("PRAGMA user_version") ?? 0
        for table in RowTable.allCases where table.shape.version <= version {
            try database.rows(of: table) { contents.rows[$0.key] = $0 }
        }
    }

    /// Returns the content that was read from the file. The file object then no longer stores it.
    func takeContents() -> StoreContents {
        defer { contents.letGo() }
        return contents
    }

    /// Whether SQLite finds no error in the file. Reads the whole file.
    static func isSound(_ place: StorePlace) -> Bool {
        guard let database = try? Database(path: place.path, mode: .readWrite, vfs: place.vfs) else { return false }
        do throws(DatabaseError) {
            try database.run("PRAGMA locking_mode = EXCLUSIVE")
            let application = try database.integer("PRAGMA application_id") ?? 0
            guard application == Schema.applicationID else { return false }
            let check = try database.prepare("PRAGMA quick_check(1)")
            defer { check.reset() }
            return try check.step() && check.text(0) == "ok"
        } catch {
            return false
        }
    }

    /// Reads as many rows as possible from a damaged file.
    static func salvage(_ place: StorePlace) -> StoreContents {
        var contents = StoreContents()
        guard let database = try? Database(path: place.path, mode: .readWrite, vfs: place.vfs) else { return contents }
        try? database.run("PRAGMA locking_mode = EXCLUSIVE")
        try? database.apps { contents.apps[$0.name] = $0 }
        try? database.mail { contents.mail[$0.id] = $0 }
        try? database.unhandled(UnhandledQuery()) { contents.unhandled[$0.mail.id] = $0 }
        for table in RowTable.allCases { try? database.rows(of: table) { contents.rows[$0.key] = $0 } }
        return contents
    }

    /// Whether the path still refers to the open file. Another program may have removed or replaced the file.
    var isInPlace: Bool { inode != nil && (try? File.status(place.path).inode) == inode }

    // MARK: Writing

    /// Writes all changes of the batch. If an error occurs, none of them is written.
    func write(_ work: StoreWork) throws(DatabaseError) {
        if isReadOnly { throw DatabaseError(kind: .refused, "it is read-only") }
        var last = lastSequence
        var added: [EventSize] = []
        // By default SQLite does not sync a commit to the disk. Sync this transaction if a client waits for it.
        if work.mail.isSynced { try database.run("PRAGMA synchronous = FULL") }
        defer { if work.mail.isSynced { try? database.run("PRAGMA synchronous = NORMAL") } }
        try database.transaction { () throws(DatabaseError) in
            for app in work.removed { try database.remove(app: app) }
            for row in work.rows.values { try database.save(row) }
            try database.save(work.mail)
            for var event in work.events {
                if event.sequence <= lastSequence, try database.has(event) { continue }
                // The event's number may be too small: before torpord has read the last number, it numbers events by
                // the clock, which may have been set back.
                event.sequence = max(event.sequence, last + 1)
                try database.append(event)
                last = event.sequence
                added.append(EventSize(sequence: last, app: event.app, bytes: event.storedSize))
            }
            for report in work.reports where try !database.has(report) { try database.append(report) }
            // SQLite syncs a transaction only if the transaction changes a row, so change this row if a client waits
            // for the sync.
            if !work.events.isEmpty || work.mail.isSynced { try database.setMeta("last_sequence", String(last)) }
        }
        lastSequence = last
        eventCount += Int64(added.count)
        for event in added {
            sizes?.added(event)
            room.bytes -= event.bytes
        }
    }

    /// The maximum number of events that one call of `tidy` removes. Removing this many takes some milliseconds.
    static let step: Int64 = 500
    /// The maximum number of events whose size one call of `tidy` reads, which takes some milliseconds.
    static let sizeStep: Int64 = 2_000

    /// Removes some expired events, or some of those that are too many. Returns whether more remain.
    func tidy(_ retention: Retention, now: Duration, wallClock: Int64) throws(DatabaseError) -> Bool {
        guard !isReadOnly else { return false }
        var removed: Int64 = 0
        // Allow 1 % more events than configured, so that not every new event causes a removal.
        if eventCount > retention.maxCount + (surplus.isEmpty ? retention.maxCount / 100 : 0) {
            removed = try removeSurplus(retention)
            if eventCount > retention.maxCount { return true }
        } else if try limitSize(retention) {
            return true
        } else if let age = retention.maxAge, agedAt.map({ now - $0 >= .seconds(600) }) ?? true {
            removed = try remove { () throws(DatabaseError) -> [EventSize] in
                try database.removeEvents(before: wallClock - age, limit: Self.step)
            }
            if removed == Self.step { return true }
            agedAt = now
        }
        if try database.integer("PRAGMA freelist_count") ?? 0 > 256 {
            try database.run("PRAGMA incremental_vacuum(64)")
            hasShrunk = true
            return true
        }
        if hasShrunk {
            hasShrunk = false
            // So far the vacuum has shrunk the database only in the write-ahead log. A checkpoint shrinks the file
            // itself.
            try database.run("PRAGMA wal_checkpoint")
        }
        return removed > 0
    }

    /// Removes events in a transaction. Returns how many were removed.
    private func remove(_ body: () throws(DatabaseError) -> [EventSize]) throws(DatabaseError) -> Int64 {
        var removed: [EventSize] = []
        try database.transaction { () throws(DatabaseError) in removed = try body() }
        eventCount -= Int64(removed.count)
        sizes?.removed(removed)
        return Int64(removed.count)
    }

    /// Removes some of the oldest events of the apps that have most, if the events have too many bytes. To know that,
    /// it first reads all of them, some at a time, but only from a file that is large enough. Returns whether it has
    /// done anything: then there may be more to do.
    private func limitSize(_ retention: Retention) throws(DatabaseError) -> Bool {
        guard let limit = retention.maxBytes else { return false }
        if sizes == nil {
            guard room.bytes <= 0 || room.limit != limit else { return false }
            let left = limit / 2 - (try database.usedBytes())
            guard left < 0 else {
                // An event takes more room in the file than its own bytes. Other tables grow too.
                room = (min(left / 8, 1 << 20), limit)
                return false
            }
            sizes = EventSizes()
        }
        if let through = sizes?.through, sizes?.isComplete == false {
            let next = try database.eventSizes(after: through, limit: Self.sizeStep)
            sizes?.count(next, isEnd: next.count < Self.sizeStep)
            return true
        }
        if surplusBytes.isEmpty { surplusBytes = sizes?.surplus(limit) ?? [] }
        guard var share = surplusBytes.last else { return false }
        let before = sizes?.total ?? 0
        let removed = try remove { () throws(DatabaseError) -> [EventSize] in
            try database.removeOldestEvents(Self.step, bytes: share.count, of: share.app)
        }
        share.count -= before - (sizes?.total ?? 0)
        if share.count > 0, removed > 0 {
            surplusBytes[surplusBytes.count - 1] = share
        } else {
            surplusBytes.removeLast()
        }
        return true
    }

    /// Removes some of the oldest events of the apps that have most, up to `step` events. Returns how many were removed.
    private func removeSurplus(_ retention: Retention) throws(DatabaseError) -> Int64 {
        if surplus.isEmpty {
            // Counting 100,000 events takes about 30 ms. It is done once for each 1 % of the events.
            let counts = try database.eventCounts()
            eventCount = counts.reduce(0) { $0 + $1.count }
            surplus = FairShares.surplus(counts, excess: eventCount - retention.maxCount)
        }
        var rest = surplus
        let removed = try remove { () throws(DatabaseError) -> [EventSize] in
            var removed: [EventSize] = []
            var room = Self.step
            while room > 0, let share = rest.last {
                let count = min(room, share.count)
                removed += try database.removeOldestEvents(count, of: share.app)
                room -= count
                rest[rest.count - 1].count -= count
                if count == share.count { rest.removeLast() }
            }
            return removed
        }
        surplus = rest
        return removed
    }
}
