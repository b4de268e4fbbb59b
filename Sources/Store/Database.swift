// SPDX-License-Identifier: Apache-2.0

import CSQLite
import Linux
import WireText

/// An error from SQLite.
struct DatabaseError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of errors, which the store handles in different ways.
    enum Kind: Hashable, Sendable {
        /// The file is not a valid database, so it can be neither read nor written.
        case damaged
        /// The file is too short to be a database: something emptied it. SQLite would take it for a new one, and would
        /// delete the log beside it.
        case emptied
        /// The file is another program's database.
        case foreign
        /// A newer version of torpord wrote the file.
        case newer(version: Int64)
        /// Another program has locked the file.
        case inUse
        /// The disk or the quota is full.
        case full
        /// The file is not writable, or its directory does not exist.
        case refused
        /// An I/O error.
        case input
        /// Any other error, such as out of memory.
        case other
    }

    let kind: Kind
    let description: String

    init(kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    /// The error that a call on `database` returned.
    init(code: Int32, of database: OpaquePointer?) {
        kind =
            switch code & 0xff {
            case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT, SQLITE_ERROR, SQLITE_MISMATCH, SQLITE_CONSTRAINT:
                .damaged
            case SQLITE_BUSY, SQLITE_LOCKED: .inUse
            case SQLITE_FULL: .full
            case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH: .refused
            case SQLITE_IOERR: .input
            default: .other
            }
        var text = database.flatMap { sqlite3_errmsg($0) }.map { String(terminatedWire: $0) } ?? "error \(code)"
        let system = database.map { sqlite3_system_errno($0) } ?? 0
        if system != 0, [.refused, .input, .full].contains(kind) { text += " (\(Errno(rawValue: system)))" }
        description = text
    }
}

/// A connection to a database, used by one thread only.
final class Database {
    private var handle: OpaquePointer?
    private var statements: [String: Statement] = [:]
    /// The statement that was prepared last. A batch uses one many times, and to hash its text takes longer than to
    /// compare it with itself.
    private var latest: (sql: String, statement: Statement)?
    private let texts = BoundTexts()

    enum Mode {
        case readWrite
        /// Read-only, for a file that cannot be written, such as on a read-only disk. SQLite then ignores the
        /// write-ahead log.
        case immutable
    }

    /// Prepares SQLite, before its first use in this process: a binding of a text and a cursor are an allocation each,
    /// and no part of torpord reads the count of SQLite's memory.
    private static let isPrepared: Void = torpor_sqlite_leave_memory_uncounted()

    /// Opens the file; in mode `readWrite` it is created if missing.
    init(path: String, mode: Mode, vfs: String?) throws(DatabaseError) {
        _ = Self.isPrepared
        let flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let code: Int32
        switch mode {
        case .readWrite:
            code = sqlite3_open_v2(path, &handle, flags | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs)
        case .immutable:
            let uri = "file:" + Self.escaped(path) + "?immutable=1"
            code = sqlite3_open_v2(uri, &handle, flags | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, vfs)
        }
        guard code == SQLITE_OK else {
            let error = DatabaseError(code: code, of: handle)
            close()
            throw error
        }
        sqlite3_busy_timeout(handle, 1_000)
        // The file may be another program's, which may need its write-ahead log. Keep the log until the file is known
        // to be torpord's.
        keepLogOnClose(true)
    }

    deinit { close() }

    private static func escaped(_ path: String) -> String {
        path.replacing("%", with: "%25").replacing("?", with: "%3f").replacing("#", with: "%23")
    }

    /// Sets whether the write-ahead log is kept on close, instead of being checkpointed and removed.
    func keepLogOnClose(_ on: Bool) { _ = torpor_sqlite_keep_log_on_close(handle, on ? 1 : 0) }

    func close() {
        statements = [:]
        latest = nil
        sqlite3_close_v2(handle)
        handle = nil
    }

    /// How many rows the last statement changed.
    var changes: Int64 { sqlite3_changes64(handle) }

    /// Runs SQL statements without parameters or results.
    func run(_ sql: String) throws(DatabaseError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        if code != SQLITE_OK { throw DatabaseError(code: code, of: handle) }
    }

    /// Returns a prepared statement, from a cache if possible, reset for this use.
    func prepare(_ sql: String) throws(DatabaseError) -> Statement {
        if let latest, latest.sql == sql {
            latest.statement.reset()
            return latest.statement
        }
        if let statement = statements[sql] {
            statement.reset()
            latest = (sql, statement)
            return statement
        }
        var made: OpaquePointer?
        let code = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &made, nil)
        guard code == SQLITE_OK, let made else { throw DatabaseError(code: code, of: handle) }
        let statement = Statement(made, of: handle, texts)
        statements[sql] = statement
        latest = (sql, statement)
        return statement
    }

    /// The first column of the first row of a query, as an integer.
    func integer(_ sql: String) throws(DatabaseError) -> Int64? {
        let statement = try prepare(sql)
        defer { statement.reset() }
        return try statement.step() ? statement.integer(0) : nil
    }

    /// Runs `body` in a transaction, and rolls it back if `body` throws. If `commits` is false, the transaction is
    /// rolled back in any case, so that `body` can see the result of its changes without changing the file.
    func transaction(commits: Bool = true, _ body: () throws(DatabaseError) -> Void) throws(DatabaseError) {
        try run("BEGIN IMMEDIATE")
        do throws(DatabaseError) {
            try body()
            for statement in statements.values { statement.reset() }
            try run(commits ? "COMMIT" : "ROLLBACK")
        } catch {
            for statement in statements.values { statement.reset() }
            // If the disk is full, SQLite has already rolled back the transaction.
            if sqlite3_get_autocommit(handle) == 0 { try? run("ROLLBACK") }
            throw error
        }
    }
}

/// A prepared statement. Parameters are numbered from 1, columns from 0.
final class Statement {
    private let raw: OpaquePointer
    private let database: OpaquePointer?
    private let texts: BoundTexts
    /// Whether the statement has values or results since it was last reset.
    private var isInUse = false

    init(_ raw: OpaquePointer, of database: OpaquePointer?, _ texts: BoundTexts) {
        self.raw = raw
        self.database = database
        self.texts = texts
    }

    deinit {
        sqlite3_finalize(raw)
        texts.release(from: raw)
    }

    func reset() {
        guard isInUse else { return }
        isInUse = false
        sqlite3_reset(raw)
        sqlite3_clear_bindings(raw)
        texts.release(from: raw)
    }

    /// Sets a parameter, once for each use of the statement. A parameter that is not set is NULL.
    func bind(_ index: Int32, _ value: Int64?) {
        guard let value else { return }
        isInUse = true
        sqlite3_bind_int64(raw, index, value)
    }

    /// Sets a parameter, once for each use of the statement. A parameter that is not set is NULL.
    func bind(_ index: Int32, _ value: String?) {
        guard var value else { return }
        isInUse = true
        value.withUTF8 { bytes in
            if let copy = texts.copy(bytes, for: raw) {
                // Without a function that frees the text (SQLITE_STATIC), SQLite reads it where it is.
                _ = sqlite3_bind_text(raw, index, copy, Int32(bytes.count), nil)
                return
            }
            bytes.withMemoryRebound(to: CChar.self) { characters in
                _ = torpor_sqlite_bind_text(raw, index, characters.baseAddress, Int32(clamping: bytes.count))
            }
        }
    }

    /// Steps to the next row of the result; returns false if there is none.
    func step() throws(DatabaseError) -> Bool {
        isInUse = true
        let code = sqlite3_step(raw)
        if code == SQLITE_ROW { return true }
        if code == SQLITE_DONE { return false }
        throw DatabaseError(code: code, of: database)
    }

    /// Runs a statement that returns no rows.
    func run() throws(DatabaseError) {
        defer { reset() }
        while try step() {}
    }

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(raw, column) }

    func optionalInteger(_ column: Int32) -> Int64? {
        sqlite3_column_type(raw, column) == SQLITE_NULL ? nil : sqlite3_column_int64(raw, column)
    }

    func text(_ column: Int32) -> String? {
        guard let start = sqlite3_column_text(raw, column) else { return nil }
        let count = Int(sqlite3_column_bytes(raw, column))
        return String(wire: UnsafeBufferPointer(start: start, count: count))
    }
}
