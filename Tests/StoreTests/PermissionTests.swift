// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

@testable import Store

@Suite("Answers to apps that ask for permissions are kept")
struct StoredPermissionTests {
    private func answer(_ name: String, _ isAllowed: Bool = true, app: String = "web") -> StoredPermission {
        StoredPermission(app: app, name: name, isAllowed: isAllowed, scope: "80 443", by: "rööt", at: 7)
    }

    private func byKey(_ answers: [StoredPermission]) -> [StoredPermission.Key: StoredPermission] {
        Dictionary(uniqueKeysWithValues: answers.map { ($0.key, $0) })
    }

    @Test("the newest of each is there again, also after a boot, and an app that is removed leaves its own")
    func roundTrip() throws {
        let bench = try Bench()
        let store = bench.store()
        for name in ["camera", "network", "files:/a"] { store.save(answer(name)) }
        store.save(answer("camera", app: "db"))
        store.save(answer("network", false))
        store.removePermission(answer("files:/a").key)
        #expect(store.close(within: Bench.patience))
        let kept = [answer("camera"), answer("network", false), answer("camera", app: "db")]
        let again = bench.store(machine: "another", boot: "next")
        #expect(try bench.load(again).permissions == byKey(kept))
        again.save(answer("gpu", false))
        again.remove(app: "web")
        #expect(again.close(within: Bench.patience))
        let last = bench.store()
        #expect(try bench.load(last).permissions == byKey(kept + [answer("gpu", false)]))
        last.removePermission(answer("gpu").key)
        last.save(.question("camera", of: "web", scope: "", at: 9))
        #expect(last.close(within: Bench.patience))
        let asked = StoredPermission.question("camera", of: "web", scope: "", at: 9)
        #expect(try bench.load(bench.store()).permissions == byKey(kept + [asked]))
        #expect(asked.asked == "camera" && kept[0].asked == nil && asked.isAllowed == nil && !asked.isPending)
    }

    @Test("what a killed torpord had written to the journal counts")
    func journal() throws {
        let bench = try Bench()
        let first = bench.store()
        for name in ["camera", "network"] { first.save(answer(name)) }
        #expect(first.close(within: Bench.patience))
        let path = bench.folder + "/journal"
        let journal = try StoreJournal(creating: path)
        let changes: [MailChange] = [
            .save(answer("camera", false)), .remove(StoredPermission.self, answer("network").key, of: "web"),
            .save(answer("gpu", app: "db")),
        ]
        for change in changes { journal.append(change) }
        #expect(journal.items() == changes.map { .change($0) })
        let kept = byKey([answer("camera", false), answer("gpu", app: "db")])
        let store = bench.store(journal: StoreJournal(try File.open(path, .readWrite)), holdsWrites: true)
        #expect(try bench.load(store).permissions == kept)
        store.releaseWrites()
        #expect(store.close(within: Bench.patience))
        #expect(try bench.load(bench.store()).permissions == kept)
    }

    @Test("a file of version 7 gets the table, and loses nothing")
    func migration() throws {
        for holds in [false, true] {
            let bench = try Bench()
            try File.makeDirectories(bench.folder + "/state")
            let old = try Database(path: bench.path, mode: .readWrite, vfs: nil)
            try old.transaction { () throws(DatabaseError) in
                try Schema.migrate(old, from: 0, to: 7)
                try old.run("INSERT INTO settings (app, name, value, at, told) VALUES ('web', 'port', '1', 7, 1)")
                try old.setMeta("boot", "boot")
            }
            old.close()
            let store = bench.store(holdsWrites: holds)
            let contents = try bench.load(store)
            #expect(contents.settings.count == 1 && contents.permissions.isEmpty)
            store.save(answer("camera"))
            store.releaseWrites()
            #expect(store.close(within: Bench.patience))
            #expect(try bench.sql("PRAGMA user_version") == Schema.version)
            for table in ["permissions", "settings"] {
                #expect(try bench.sql("SELECT count(*) FROM \(table)") == 1, "\(table)")
            }
        }
    }
}
