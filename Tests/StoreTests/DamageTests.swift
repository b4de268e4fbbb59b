// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import Testing

@testable import Store

extension OneAtATime {
    @Suite("Files that are not as they should be", .serialized)
    struct DamageTests {
        /// A closed file with a row of each of 50 apps and 2,000 events.
        private func fill(_ bench: Bench) throws {
            let store = bench.store()
            for number in 0..<50 {
                var row = AppRow(name: "app \(number)")
                row.restarts = Int64(number)
                store.save(row)
            }
            for number in 0..<2_000 { store.append(Bench.event("\(number) " + String(repeating: "x", count: 100))) }
            try #require(store.close(within: Bench.patience))
        }

        /// Whether it takes and gives back.
        private func expectUsable(_ bench: Bench, _ store: Store, at location: SourceLocation = #_sourceLocation) throws
        {
            store.save(AppRow(name: "new"))
            store.append(Bench.event("new"))
            #expect(try bench.flush(store), sourceLocation: location)
            var newest = EventQuery()
            newest.limit = 1
            newest.prefersNewest = true
            #expect(try bench.events(store, newest).map(\.text) == ["new"], sourceLocation: location)
            #expect(store.close(within: Bench.patience), sourceLocation: location)
            let again = bench.store()
            #expect(try bench.load(again).apps["new"] != nil, sourceLocation: location)
            #expect(again.close(within: Bench.patience), sourceLocation: location)
        }

        @Test("what is no database is kept aside with its log, and a new one begun")
        func garbage() throws {
            let bench = try Bench()
            try File.makeDirectories(bench.folder + "/state")
            try File.write(bench.path, [UInt8](repeating: 0x55, count: 20_000))
            try File.write(bench.path + "-wal", "log")
            let store = bench.store()
            #expect(try bench.load(store) == StoreContents())
            #expect(bench.notices.map(\.kind) == [.setAside])
            let aside = bench.files("corrupt")
            try #require(aside.count == 2)
            let base = try #require(File.parent(of: bench.path))
            #expect(try File.read(base + "/" + aside[0]) == [UInt8](repeating: 0x55, count: 20_000))
            #expect(aside[1] == aside[0] + "-wal" && bench.notices[0].description.contains(aside[0]))
            try expectUsable(bench, store)
        }

        @Test("a file that was cut short is kept aside, and what can be read of its apps goes on")
        func truncated() throws {
            let bench = try Bench()
            try fill(bench)
            let size = try File.status(bench.path).size
            let parts: [UInt64] = [size - 1, size / 2, 4_096 * 3, 4_096, 100, 1]
            for (round, part) in parts.enumerated() {
                bench.notices = []
                try File.open(bench.path, .readWrite).withRaw { raw in try File.truncate(raw, to: part) }
                let store = bench.store()
                _ = try bench.load(store)
                try expectUsable(bench, store)
                // Without its last byte nothing of it may be missing.
                let kinds = bench.notices.map(\.kind)
                #expect(kinds == [.setAside] || part == size - 1, "\(part): \(bench.notices)")
                #expect(bench.files("corrupt").count <= (round + 1) * 3)
                try File.removeTree(bench.folder + "/state")
                try fill(bench)
            }
        }

        @Test("a file that was emptied is kept aside with its log, and said")
        func empty() throws {
            let bench = try Bench()
            try File.makeDirectories(bench.folder + "/state")
            try File.write(bench.path, "")
            try File.write(bench.path + "-wal", "log")
            let store = bench.store()
            try expectUsable(bench, store)
            #expect(bench.notices.map(\.kind) == [.setAside])
            #expect(bench.notices.first?.description.contains("was emptied: it has only 0 bytes") ?? false)
            let aside = bench.files("corrupt")
            try #require(aside.count == 2)
            let base = try #require(File.parent(of: bench.path))
            #expect(try File.readString("\(base)/\(aside[0])-wal", limit: 100) == "log")
        }

        @Test("a loss of power at the very first start leaves no file of 0 bytes, which would count as emptied")
        func cutOff() throws {
            let bench = try Bench()
            try File.makeDirectories(bench.folder + "/state")
            // The draft was not written yet. A log of a database that was removed is none of the new one.
            try File.write(bench.path + ".new", "")
            try File.write(bench.path + ".new-journal", "")
            try File.write(bench.path + "-wal", "log")
            let store = bench.store()
            try expectUsable(bench, store)
            #expect(bench.notices.isEmpty, "\(bench.notices)")
            #expect(try File.status(bench.path).mode & 0o777 == 0o600)
            #expect(try File.kind(bench.path + ".new") == nil)
        }

        @Test("files that were set aside are found by their names, until they are removed or too old")
        func listed() throws {
            let bench = try Bench()
            let base = bench.folder + "/state"
            try File.makeDirectories(base)
            #expect(SetAsideFile.list(of: bench.path, since: 0) == [])
            for name in [
                "newer-1000-20260102T000000000Z", "corrupt-20260101T010203456Z", "corrupt-20260101T010203456Z-2",
                "corrupt-20260101T010203456Z-wal", "corrupt-20260101T010203456Z-2-shm", "corrupt-soon", "copy",
            ] {
                try File.write("\(bench.path).\(name)", "")
            }
            try File.write(base + "/other.db.corrupt-20260101T010203456Z", "")
            let found = try #require(SetAsideFile.list(of: bench.path, since: 0))
            #expect(found.map(\.cause) == [.damaged, .damaged, .newer])
            #expect(found.map { TimeStamp.string(microseconds: $0.at) }.first == "2026-01-01T01:02:03.456Z")
            let late = try #require(SetAsideFile.list(of: bench.path, since: found[0].at + 1))
            #expect(late == [found[2]])
            try File.remove(found[2].path)
            #expect(SetAsideFile.list(of: bench.path, since: found[0].at + 1) == [])
            #expect(SetAsideFile.list(of: bench.folder + "/none/torpor.db", since: 0) == nil)
        }

        @Test("a bad page that is found later costs the events, not what is known of apps")
        func badPage() throws {
            let bench = try Bench()
            try fill(bench)
            // The head of the page in which an event stands. Nothing reads it before somebody asks.
            let bytes = try File.read(bench.path, limit: 10 << 20)
            let text = Array("1500 xxxx".utf8)
            let place = try #require(bytes.indices.first { bytes[$0...].starts(with: text) })
            try File.open(bench.path, .readWrite).withRaw { raw in
                try File.write(raw, at: UInt64(place / 4_096 * 4_096), [UInt8](repeating: 0xee, count: 100))
            }
            let store = bench.store(retention: Retention(maxAge: nil))
            #expect(try bench.load(store).apps.count == 50)
            var query = EventQuery()
            query.limit = 10_000
            #expect(throws: Store.Unavailable.self) { try bench.events(store, query) }
            try bench.turn("it is told") { bench.notices.map(\.kind) == [.setAside] }
            #expect(try bench.events(store, query).isEmpty)
            try expectUsable(bench, store)
            let again = bench.store()
            #expect(try bench.load(again).apps.count == 51)
        }

        @Test("whatever is wrong with a file, the store works on")
        func random() throws {
            let bench = try Bench()
            try fill(bench)
            let sound = try File.read(bench.path, limit: 10 << 20)
            var seed: UInt64 = 42
            func next(_ bound: Int) -> Int {
                seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return Int(seed >> 33) % bound
            }
            for round in 0..<60 {
                try File.removeTree(bench.folder + "/state")
                try File.makeDirectories(bench.folder + "/state")
                var bytes = sound
                for _ in 0...next(20) {
                    let start = round % 3 == 0 ? next(4_096) : next(bytes.count)
                    for place in start..<min(bytes.count, start + 1 + next(30)) { bytes[place] = UInt8(next(256)) }
                }
                try File.write(bench.path, bytes)
                let store = bench.store()
                _ = try bench.load(store)
                var query = EventQuery()
                query.limit = 10_000
                _ = try? bench.events(store, query)
                try expectUsable(bench, store)
            }
            #expect(bench.notices.map(\.kind).contains(.setAside))
        }

        @Test("a file of a later version is set aside as it was")
        func newer() throws {
            let bench = try Bench()
            try fill(bench)
            try bench.sql("PRAGMA user_version = 99")
            let before = try File.read(bench.path, limit: 10 << 20)
            let store = bench.store()
            #expect(try bench.load(store).apps.isEmpty)
            #expect(bench.notices.map(\.kind) == [.setAsideNewer])
            try expectUsable(bench, store)
            let aside = bench.files("newer-99").filter { !$0.hasSuffix("-wal") }
            #expect(aside.count == 1)
            #expect(try File.read(File.parent(of: bench.path)! + "/" + aside[0], limit: 10 << 20) == before)
        }

        @Test("the file of another program is set aside")
        func foreign() throws {
            let bench = try Bench()
            try File.makeDirectories(bench.folder + "/state")
            try bench.sql("CREATE TABLE apps (x); PRAGMA application_id = 1")
            let store = bench.store()
            try expectUsable(bench, store)
            #expect(bench.notices.map(\.kind) == [.setAside])
            #expect(bench.files("foreign").count == 1)
        }

        @Test("version 1 becomes the present one, with all that it held; not before it may")
        func migration() throws {
            for holds in [false, true] {
                let bench = try Bench()
                try File.makeDirectories(bench.folder + "/state")
                let old = try Database(path: bench.path, mode: .readWrite, vfs: nil)
                try old.transaction { () throws(DatabaseError) in
                    try Schema.migrate(old, from: 0, to: 1)
                    try old.save(.full)
                    try old.append(
                        {
                            var event = Bench.event("old")
                            event.sequence = 7
                            return event
                        }()
                    )
                    try old.setMeta("boot", "boot")
                }
                old.close()
                #expect(try bench.sql("PRAGMA user_version") == 1)
                let store = bench.store(holdsWrites: holds)
                let contents = try bench.load(store)
                #expect(contents.apps == ["web": .full] && contents.lastSequence == 7)
                store.append(StoredReport(app: "web", incarnation: 1, at: 1, json: "{}"))
                store.save(StoredSchedule(app: "web", name: "nightly"))
                if holds {
                    // What cannot be told yet is said; nothing is set aside.
                    #expect(throws: Store.Unavailable.self) { try bench.reports(store) }
                    #expect(try File.read(bench.path)[63] == 1, "the version in the file's head")
                    store.releaseWrites()
                }
                #expect(try bench.reports(store).count == 1)
                #expect(try bench.events(store).map(\.text) == ["old"])
                #expect(store.close(within: Bench.patience))
                #expect(try bench.sql("PRAGMA user_version") == Schema.version)
                #expect(try bench.sql("SELECT count(*) FROM schedules") == 1)
                #expect(bench.notices == [])
            }
        }

        @Test("while writes are held, not even a file of a later version is touched")
        func heldNewer() throws {
            let bench = try Bench()
            try fill(bench)
            try bench.sql("PRAGMA user_version = 99")
            let store = bench.store(holdsWrites: true)
            #expect(try bench.load(store).apps.isEmpty)
            #expect(bench.notices.map(\.kind) == [.unavailable])
            store.save(AppRow(name: "new"))
            #expect(bench.files("newer").isEmpty)
            store.releaseWrites()
            try bench.turn("it is set aside") { !bench.files("newer").isEmpty }
            try expectUsable(bench, store)
        }

        @Test("of files set aside the newest five of a kind are kept")
        func bounded() throws {
            let bench = try Bench()
            for _ in 0..<8 {
                try File.makeDirectories(bench.folder + "/state")
                try File.write(bench.path, [UInt8](repeating: 0x55, count: 2_000))
                let store = bench.store()
                _ = try bench.load(store)
                #expect(store.close(within: Bench.patience))
            }
            #expect(bench.files("corrupt").count == Quarantine.kept)
        }
    }
}
