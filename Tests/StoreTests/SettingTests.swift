// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing

@testable import Store

@Suite("Settings are kept")
struct StoredSettingTests {
    private func setting(_ name: String, _ value: String?, app: String = "web", known: String?? = nil) -> StoredSetting
    {
        var setting = StoredSetting(app: app, name: name, value: value, at: 7)
        if let known { (setting.known, setting.isTold) = (known, false) }
        return setting
    }

    private func saved(_ bench: Bench, _ store: Store) throws {
        var answer: Store.Unavailable??
        store.sync(within: Bench.patience) { answer = .some($0) }
        try bench.turn("syncing") { answer != nil }
        #expect(answer == .some(nil))
    }

    private func byKey(_ settings: [StoredSetting]) -> [StoredSetting.Key: StoredSetting] {
        Dictionary(uniqueKeysWithValues: settings.map { ($0.key, $0) })
    }

    @Test("all of it is there again, what is nothing is not, and an app that is removed takes its own along")
    func roundTrip() throws {
        let bench = try Bench()
        let store = bench.store()
        store.save([setting("port", "1"), setting("key", "s", known: .some(nil)), setting("gone", "x")], of: "web")
        store.save([setting("port", "2", app: "db")], of: "db")
        try saved(bench, store)
        store.save([setting("gone", nil), setting("unset", nil, known: "old")], of: "web")
        #expect(store.close(within: Bench.patience))
        let kept = [
            setting("port", "1"), setting("key", "s", known: .some(nil)), setting("unset", nil, known: "old"),
            setting("port", "2", app: "db"),
        ]
        let again = bench.store(machine: "another", boot: "next")
        #expect(try bench.load(again).settings == byKey(kept))
        again.remove(app: "web")
        #expect(again.close(within: Bench.patience))
        #expect(try bench.load(bench.store()).settings == byKey([kept[3]]))
    }

    @Test("what a killed torpord had seen counts, all of a change or none")
    func journal() throws {
        let bench = try Bench()
        let path = bench.folder + "/journal"
        let journal = try StoreJournal(creating: path)
        let rows = [
            setting("port", "3", known: "2"), setting("theme", nil), setting("key", "geheim ü", known: .some(nil)),
        ]
        journal.append(.settings(rows))
        #expect(journal.items() == [.change(.settings(rows))])
        let store = bench.store(journal: StoreJournal(try File.open(path, .readWrite)), holdsWrites: true)
        #expect(try bench.load(store).settings == byKey([rows[0], rows[2]]))
        store.releaseWrites()
        #expect(store.close(within: Bench.patience))
        #expect(try bench.load(bench.store()).settings == byKey([rows[0], rows[2]]))
    }

    @Test("a file of version 4 gets the table, and loses nothing")
    func migration() throws {
        for holds in [false, true] {
            let bench = try Bench()
            try File.makeDirectories(bench.folder + "/state")
            let old = try Database(path: bench.path, mode: .readWrite, vfs: nil)
            try old.transaction { () throws(DatabaseError) in
                try Schema.migrate(old, from: 0, to: 4)
                try old.run(
                    """
                    INSERT INTO mail (id, app, topic, message, payload, coalescing, sender, count, first_at, last_at)
                        VALUES (5, 'web', 'news', 'didReceiveEvent', '1', 'all', 'root', 1, 5, 5);
                    INSERT INTO subscriptions (app, topic, rule) VALUES ('web', 'news', '{}')
                    """
                )
                try old.setMeta("boot", "boot")
            }
            old.close()
            #expect(try bench.sql("PRAGMA user_version") == 4)
            let store = bench.store(holdsWrites: holds)
            let contents = try bench.load(store)
            #expect(
                contents.mail.keys.sorted() == [5] && contents.subscriptions.count == 1 && contents.settings.isEmpty
            )
            store.save([setting("port", "1")], of: "web")
            store.releaseWrites()
            #expect(store.close(within: Bench.patience))
            #expect(try bench.sql("PRAGMA user_version") == Schema.version)
            #expect(try bench.sql("SELECT count(*) FROM settings") == 1)
            #expect(try bench.sql("SELECT count(*) FROM mail") == 1)
            #expect(bench.notices == [])
        }
    }
}
