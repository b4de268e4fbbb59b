// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import Testing

@testable import Store

/// Suites that look at the threads of the process, or keep disks and cores busy.
@Suite(.serialized) enum OneAtATime {}

/// A folder of its own, and stores in it.
final class Bench {
    /// What a test waits for a disk that works: a busy one may take longer than a daemon would wait.
    static let patience = Duration.seconds(60)

    let folder: String
    var path: String { folder + "/state/torpor.db" }
    let loop: EventLoop
    var notices: [StoreNotice] = []
    private var stores: [Store] = []

    init() throws {
        var template = Array((NSTemporaryDirectory() + "tpstore-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno(rawValue: errno) }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        loop = try EventLoop()
    }

    deinit {
        // Their threads would make the folder anew.
        for store in stores { store.close(within: .seconds(60)) }
        try? FileManager.default.removeItem(atPath: folder)
    }

    func store(
        path: String? = nil,
        machine: String = "machine",
        boot: String = "boot",
        vfs: String? = nil,
        retention: Retention = Retention(),
        limits: StoreQueue.Limits = StoreQueue.Limits(),
        journal: StoreJournal? = nil,
        holdsWrites: Bool = false
    ) -> Store {
        let place = StorePlace(
            path: path ?? self.path,
            machine: machine,
            boot: boot,
            vfs: vfs,
            retention: retention
        )
        let store = Store(place, limits: limits, journal: journal, holdsWrites: holdsWrites, loop: loop)
        stores.append(store)
        store.onNotice = { [weak self] in self?.notices.append($0) }
        return store
    }

    /// Turns the loop until `done`, at most 30 s.
    func turn(_ what: String, at location: SourceLocation = #_sourceLocation, until done: () throws -> Bool) throws {
        let end = Clock.monotonic() + .seconds(60)
        while try !done() {
            guard Clock.monotonic() < end else {
                Issue.record("not within 60 s: \(what); notices: \(notices)", sourceLocation: location)
                throw Stuck()
            }
            try loop.runOnce(timeout: .milliseconds(20))
        }
    }

    struct Stuck: Error {}

    func load(_ store: Store, at location: SourceLocation = #_sourceLocation) throws -> StoreContents {
        var contents: StoreContents?
        store.load(within: Bench.patience) { contents = $0 }
        try turn("loading", at: location) { contents != nil }
        return contents!
    }

    func flush(_ store: Store, at location: SourceLocation = #_sourceLocation) throws -> Bool {
        var written: Bool?
        store.flush(within: Bench.patience) { written = $0 }
        try turn("flushing", at: location) { written != nil }
        return written!
    }

    func events(
        _ store: Store,
        _ query: EventQuery = EventQuery(),
        at location: SourceLocation = #_sourceLocation
    ) throws -> [StoredEvent] {
        var result: Result<[StoredEvent], Store.Unavailable>?
        store.events(query, within: Bench.patience) { result = $0 }
        try turn("reading events", at: location) { result != nil }
        return try result!.get()
    }

    func reports(
        _ store: Store,
        app: String? = nil,
        at location: SourceLocation = #_sourceLocation
    ) throws
        -> [StoredReport]
    {
        var result: Result<[StoredReport], Store.Unavailable>?
        store.reports(app: app, within: Bench.patience) { result = $0 }
        try turn("reading reports", at: location) { result != nil }
        return try result!.get()
    }

    /// The names beside the database that have this in them.
    func files(_ part: String) -> [String] {
        ((try? File.list(File.parent(of: path)!)) ?? []).filter { $0.contains(part) }.sorted()
    }

    /// Runs SQL on the closed file.
    @discardableResult
    func sql(_ sql: String) throws -> Int64? {
        let database = try Database(path: path, mode: .readWrite, vfs: nil)
        database.keepLogOnClose(false)
        defer { database.close() }
        var answer: Int64?
        for statement in sql.split(separator: ";") { answer = try database.integer(String(statement)) }
        return answer
    }

    static func event(_ text: String, at: Int64 = Clock.realtimeMicroseconds(), app: String? = "web") -> StoredEvent {
        StoredEvent(at: at, app: app, kind: "test", text: text)
    }
}

extension AppRow {
    static let full: AppRow = {
        var row = AppRow(name: "web")
        row.goal = "suspended"
        row.isStopped = true
        row.isForceQuit = true
        row.isFailed = true
        row.restarts = 7
        row.attempt = 3
        row.incarnation = 12
        row.lastExit = StoredExit(reason: "signal", code: 3, signal: "SIGSEGV", at: 99)
        row.ledger = [1, 22, 333]
        return row
    }()
}
