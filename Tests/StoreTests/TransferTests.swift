// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

@testable import Store

@Suite("Transfers are kept")
struct StoredTransferTests {
    private func transfer(_ id: Int64, _ state: String = "queued", app: String = "web") -> StoredTransfer {
        StoredTransfer(id: id, app: app, json: #"{"state":"\#(state)","url":"http://h/ü"}"#)
    }

    private func byID(_ transfers: [StoredTransfer]) -> [Int64: StoredTransfer] {
        Dictionary(uniqueKeysWithValues: transfers.map { ($0.id, $0) })
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
        for id in 1...3 { store.save(transfer(Int64(id))) }
        store.save(transfer(.max, app: "db"))
        try saved(bench, store)
        store.save(transfer(2, "running"))
        store.removeTransfer(3, of: "web")
        #expect(store.close(within: Bench.patience))
        let kept = [transfer(1), transfer(2, "running"), transfer(.max, app: "db")]
        let again = bench.store(machine: "another", boot: "next")
        #expect(try bench.load(again).transfers == byID(kept))
        again.remove(app: "web")
        #expect(again.close(within: Bench.patience))
        #expect(try bench.load(bench.store()).transfers == byID([kept[2]]))
    }

    @Test("what is begun and over before it was written leaves nothing, and what is begun once more is there")
    func unwritten() throws {
        let bench = try Bench()
        let store = bench.store(holdsWrites: true)
        _ = try bench.load(store)
        store.save(transfer(1))
        store.removeTransfer(1, of: "web")
        store.save(transfer(2))
        store.removeTransfer(2, of: "web")
        store.save(transfer(2, "running"))
        store.save(transfer(3, app: "db"))
        store.remove(app: "db")
        store.releaseWrites()
        #expect(store.close(within: Bench.patience))
        #expect(try bench.load(bench.store()).transfers == byID([transfer(2, "running")]))
    }

    @Test("what a killed torpord had seen counts")
    func journal() throws {
        let bench = try Bench()
        let first = bench.store()
        for id in [1, 2] { first.save(transfer(Int64(id))) }
        #expect(first.close(within: Bench.patience))
        let path = bench.folder + "/journal"
        let journal = try StoreJournal(creating: path)
        let changes: [MailChange] = [
            .save(transfer(2, "running")), .remove(StoredTransfer.self, 1, of: "web"), .save(transfer(7, app: "db")),
            .save(transfer(8)), .remove(StoredTransfer.self, 8, of: "web"),
        ]
        for change in changes { journal.append(change) }
        #expect(journal.items() == changes.map { .change($0) })
        let kept = byID([transfer(2, "running"), transfer(7, app: "db")])
        let store = bench.store(journal: StoreJournal(try File.open(path, .readWrite)), holdsWrites: true)
        #expect(try bench.load(store).transfers == kept)
        store.releaseWrites()
        #expect(store.close(within: Bench.patience))
        #expect(try bench.load(bench.store()).transfers == kept)
    }

    @Test("a journal that ends in the middle of a transfer has what is before it")
    func cut() throws {
        let bench = try Bench()
        let path = bench.folder + "/journal"
        let journal = try StoreJournal(creating: path)
        journal.append(.save(transfer(1)))
        let whole = try #require(try File.read(path).lastIndex { $0 != 0 }) + 1
        journal.append(.save(transfer(2)))
        journal.append(.remove(StoredTransfer.self, 1, of: "web"))
        let bytes = try File.read(path)
        let end = try #require(bytes.lastIndex { $0 != 0 }) + 1
        try #require(end > whole)
        var seen: Set<Int> = []
        for length in whole..<end {
            var part = bytes
            for index in length..<part.count { part[index] = 0 }
            try File.write(path + ".cut", part)
            let items = try #require(StoreJournal(try File.open(path + ".cut", .readWrite))).items()
            #expect(items.first == .change(.save(transfer(1))), "\(length) bytes")
            seen.insert(items.count)
        }
        #expect(seen.isSubset(of: [1, 2, 3]) && seen.contains(1) && seen.contains(2))
    }

    @Test("a file of version 5 gets the table, and loses nothing")
    func migration() throws {
        for holds in [false, true] {
            let bench = try Bench()
            try File.makeDirectories(bench.folder + "/state")
            let old = try Database(path: bench.path, mode: .readWrite, vfs: nil)
            try old.transaction { () throws(DatabaseError) in
                try Schema.migrate(old, from: 0, to: 5)
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
            #expect(try bench.sql("PRAGMA user_version") == 5)
            let store = bench.store(holdsWrites: holds)
            let contents = try bench.load(store)
            #expect(contents.mail.keys.sorted() == [5] && contents.settings.count == 1 && contents.transfers.isEmpty)
            store.save(transfer(1))
            store.releaseWrites()
            #expect(store.close(within: Bench.patience))
            #expect(try bench.sql("PRAGMA user_version") == Schema.version)
            for table in ["transfers", "settings", "mail"] {
                #expect(try bench.sql("SELECT count(*) FROM \(table)") == 1, "\(table)")
            }
            #expect(bench.notices == [])
        }
    }

    @Test("those of a file that turns out damaged are in the one in its place, but for what was over meanwhile")
    func damage() throws {
        let bench = try Bench()
        let first = bench.store()
        for id in 1...200 { first.save(transfer(Int64(id))) }
        for number in 0..<2_000 { first.append(Bench.event("\(number) " + String(repeating: "x", count: 100))) }
        #expect(first.close(within: Bench.patience))
        // The root page of the events: it is read when one is written, after the transfers were.
        let root = try #require(try bench.sql("SELECT rootpage FROM sqlite_schema WHERE name = 'events'"))
        let page = try #require(try bench.sql("PRAGMA page_size"))
        var bytes = try File.read(bench.path)
        for index in Int((root - 1) * page)..<Int(root * page) { bytes[index] = 0x55 }
        try File.write(bench.path, bytes)
        let store = bench.store()
        #expect(try bench.load(store).transfers.count == 200)
        store.removeTransfer(1, of: "web")
        store.save(transfer(2, "running"))
        store.append(Bench.event("new"))
        #expect(try bench.flush(store))
        #expect(store.close(within: Bench.patience))
        #expect(bench.notices.map(\.kind) == [.setAside])
        let kept = try bench.load(bench.store()).transfers
        #expect(kept.count == 199 && kept[1] == nil && kept[2] == transfer(2, "running"))
    }
}
