// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

@testable import Store

@Suite("Alerts are kept")
struct StoredAlertTests {
    private func alert(_ id: Int64, _ state: String = "queued", app: String = "web") -> StoredAlert {
        StoredAlert(id: id, app: app, json: #"{"state":"\#(state)","url":"http://h/ü"}"#)
    }

    private func byID(_ alerts: [StoredAlert]) -> [Int64: StoredAlert] {
        Dictionary(uniqueKeysWithValues: alerts.map { ($0.id, $0) })
    }

    private func saved(_ bench: Bench, _ store: Store) throws {
        var answer: Store.Unavailable??
        store.sync(within: Bench.patience) { answer = .some($0) }
        try bench.turn("syncing") { answer != nil }
        #expect(answer == .some(nil))
    }

    @Test("the newest of each is there again, also after a boot, and an app that is removed takes its own along")
    func roundTrip() throws {
        let bench = try Bench()
        let store = bench.store()
        for id in 1...3 { store.save(alert(Int64(id))) }
        store.save(alert(.max, app: "db"))
        try saved(bench, store)
        store.save(alert(2, "running"))
        store.removeAlert(3, of: "web")
        #expect(store.close(within: Bench.patience))
        let kept = [alert(1), alert(2, "running"), alert(.max, app: "db")]
        let again = bench.store(machine: "another", boot: "next")
        #expect(try bench.load(again).alerts == byID(kept))
        again.remove(app: "web")
        #expect(again.close(within: Bench.patience))
        #expect(try bench.load(bench.store()).alerts == byID([kept[2]]))
    }

    @Test("what is begun and over before it was written leaves nothing, and what is begun once more is there")
    func unwritten() throws {
        let bench = try Bench()
        let store = bench.store(holdsWrites: true)
        _ = try bench.load(store)
        store.save(alert(1))
        store.removeAlert(1, of: "web")
        store.save(alert(2))
        store.removeAlert(2, of: "web")
        store.save(alert(2, "running"))
        store.save(alert(3, app: "db"))
        store.remove(app: "db")
        store.releaseWrites()
        #expect(store.close(within: Bench.patience))
        #expect(try bench.load(bench.store()).alerts == byID([alert(2, "running")]))
    }

    @Test("what a killed torpord had seen counts")
    func journal() throws {
        let bench = try Bench()
        let first = bench.store()
        for id in [1, 2] { first.save(alert(Int64(id))) }
        #expect(first.close(within: Bench.patience))
        let path = bench.folder + "/journal"
        let journal = try StoreJournal(creating: path)
        let changes: [MailChange] = [
            .save(alert(2, "running")), .remove(StoredAlert.self, 1, of: "web"), .save(alert(7, app: "db")),
            .save(alert(8)), .remove(StoredAlert.self, 8, of: "web"),
        ]
        for change in changes { journal.append(change) }
        #expect(journal.items() == changes.map { .change($0) })
        let kept = byID([alert(2, "running"), alert(7, app: "db")])
        let store = bench.store(journal: StoreJournal(try File.open(path, .readWrite)), holdsWrites: true)
        #expect(try bench.load(store).alerts == kept)
        store.releaseWrites()
        #expect(store.close(within: Bench.patience))
        #expect(try bench.load(bench.store()).alerts == kept)
    }

    @Test("a journal that ends in the middle of an alert has what is before it")
    func cut() throws {
        let bench = try Bench()
        let path = bench.folder + "/journal"
        let journal = try StoreJournal(creating: path)
        journal.append(.save(alert(1)))
        let whole = try #require(try File.read(path).lastIndex { $0 != 0 }) + 1
        journal.append(.save(alert(2)))
        journal.append(.remove(StoredAlert.self, 1, of: "web"))
        let bytes = try File.read(path)
        let end = try #require(bytes.lastIndex { $0 != 0 }) + 1
        try #require(end > whole)
        var seen: Set<Int> = []
        for length in whole..<end {
            var part = bytes
            for index in length..<part.count { part[index] = 0 }
            try File.write(path + ".cut", part)
            let items = try #require(StoreJournal(try File.open(path + ".cut", .readWrite))).items()
            #expect(items.first == .change(.save(alert(1))), "\(length) bytes")
            seen.insert(items.count)
        }
        #expect(seen.isSubset(of: [1, 2, 3]) && seen.contains(1) && seen.contains(2))
    }

    @Test("a file of version 6 gets the table, and loses nothing")
    func migration() throws {
        for holds in [false, true] {
            let bench = try Bench()
            try File.makeDirectories(bench.folder + "/state")
            let old = try Database(path: bench.path, mode: .readWrite, vfs: nil)
            try old.transaction { () throws(DatabaseError) in
                try Schema.migrate(old, from: 0, to: 6)
                try old.run(
                    """
                    INSERT INTO mail (id, app, topic, message, payload, coalescing, sender, count, first_at, last_at)
                        VALUES (5, 'web', 'news', 'didReceiveEvent', '1', 'all', 'root', 1, 5, 5);
                    INSERT INTO settings (app, name, value, at, told) VALUES ('web', 'port', '1', 7, 1)
                    """
                )
                try old.setMeta("boot", "boot")
            }
            old.close()
            #expect(try bench.sql("PRAGMA user_version") == 6)
            let store = bench.store(holdsWrites: holds)
            let contents = try bench.load(store)
            #expect(contents.mail.keys.sorted() == [5] && contents.settings.count == 1 && contents.alerts.isEmpty)
            store.save(alert(1))
            store.releaseWrites()
            #expect(store.close(within: Bench.patience))
            #expect(try bench.sql("PRAGMA user_version") == Schema.version)
            for table in ["alerts", "settings", "mail"] {
                #expect(try bench.sql("SELECT count(*) FROM \(table)") == 1, "\(table)")
            }
            #expect(bench.notices == [])
        }
    }

    @Test("those of a file that turns out damaged are in the one in its place, but for what was over meanwhile")
    func damage() throws {
        let bench = try Bench()
        let first = bench.store()
        for id in 1...200 { first.save(alert(Int64(id))) }
        for number in 0..<2_000 { first.append(Bench.event("\(number) " + String(repeating: "x", count: 100))) }
        #expect(first.close(within: Bench.patience))
        // The root page of the events: it is read when one is written, after the alerts were.
        let root = try #require(try bench.sql("SELECT rootpage FROM sqlite_schema WHERE name = 'events'"))
        let page = try #require(try bench.sql("PRAGMA page_size"))
        var bytes = try File.read(bench.path)
        for index in Int((root - 1) * page)..<Int(root * page) { bytes[index] = 0x55 }
        try File.write(bench.path, bytes)
        let store = bench.store()
        #expect(try bench.load(store).alerts.count == 200)
        store.removeAlert(1, of: "web")
        store.save(alert(2, "running"))
        store.append(Bench.event("new"))
        #expect(try bench.flush(store))
        #expect(store.close(within: Bench.patience))
        #expect(bench.notices.map(\.kind) == [.setAside])
        let kept = try bench.load(bench.store()).alerts
        #expect(kept.count == 199 && kept[1] == nil && kept[2] == alert(2, "running"))
    }
}
