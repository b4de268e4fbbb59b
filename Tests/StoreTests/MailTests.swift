// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing

@testable import Store

@Suite("Mail and schedules are kept")
struct StoredMailTests {
    private func mail(_ id: Int64, _ topic: String = "news", app: String = "web") -> StoredMail {
        var mail = StoredMail(id: id, app: app, topic: topic, message: "didReceiveEvent", sender: "root", at: id)
        mail.payload = #"{"ü":[1,null]}"#
        mail.coalescing = "merge"
        mail.key = id % 2 == 0 ? nil : "k"
        mail.count = 3
        mail.lastAt = id + 1
        mail.wake = id % 3 == 0 ? "background" : nil
        return mail
    }

    private func sync(_ bench: Bench, _ store: Store) throws -> Store.Unavailable? {
        var answer: Store.Unavailable??
        store.sync(within: Bench.patience) { answer = .some($0) }
        try bench.turn("syncing") { answer != nil }
        return answer!
    }

    @Test("all of it is there again, the newest of each, and what was removed is not")
    func roundTrip() throws {
        let bench = try Bench()
        let store = bench.store()
        for id in 1...6 as ClosedRange<Int64> { store.save(mail(id), isNew: true) }
        store.removeMail(2, of: "web")
        store.save(StoredSchedule(app: "web", name: "nightly", lastFired: 7, learned: #"{"a":1}"#))
        store.save(StoredSchedule(app: "web", name: "never"))
        store.save(StoredSchedule(app: "db", name: "nightly", lastFired: 8))
        #expect(try sync(bench, store) == nil)
        store.save(mail(3, "other"))
        store.removeMail(4, of: "web")
        store.save(StoredSchedule(app: "db", name: "nightly", lastFired: 9))
        store.remove(StoredSchedule.Key(app: "web", name: "never"))
        #expect(store.close(within: Bench.patience))
        // Neither another boot nor another machine makes mail less.
        for machine in ["machine", "another"] {
            let again = bench.store(machine: machine, boot: "next")
            let contents = try bench.load(again)
            let kept = [mail(1), mail(3, "other"), mail(5), mail(6)]
            #expect(contents.mail == Dictionary(uniqueKeysWithValues: kept.map { ($0.id, $0) }))
            let schedules = contents.schedules.values.sorted { $0.key.app < $1.key.app }
            #expect(
                schedules == [
                    StoredSchedule(app: "db", name: "nightly", lastFired: 9),
                    StoredSchedule(app: "web", name: "nightly", lastFired: 7, learned: #"{"a":1}"#),
                ]
            )
            #expect(again.close(within: Bench.patience))
        }
    }

    @Test("an app that is removed takes its mail and schedules along, and what comes later under its name stays")
    func removal() throws {
        let bench = try Bench()
        let store = bench.store()
        for id in 1...3 as ClosedRange<Int64> { store.save(mail(id, app: id == 3 ? "db" : "web")) }
        store.save(StoredSchedule(app: "web", name: "nightly"))
        #expect(try sync(bench, store) == nil)
        store.save(mail(4))
        store.remove(app: "web")
        store.save(mail(5))
        #expect(store.close(within: Bench.patience))
        let contents = try bench.load(bench.store())
        #expect(contents.mail.keys.sorted() == [3, 5] && contents.schedules.isEmpty)
    }

    @Test("what a killed torpord had seen of mail counts, also before the file may be changed")
    func journal() throws {
        let bench = try Bench()
        let journal = try StoreJournal(creating: bench.folder + "/journal")
        let disk = FaultyDisk()
        let first = bench.store(vfs: disk.name, journal: journal)
        for id in 1...3 as ClosedRange<Int64> { first.save(mail(id)) }
        first.save(StoredSchedule(app: "web", name: "nightly", lastFired: 1))
        #expect(try sync(bench, first) == nil)
        disk.set(.hangs)
        first.removeMail(1, of: "web")
        first.save(mail(2, "changed"))
        first.save(mail(4), isNew: true)
        first.save(StoredSchedule(app: "web", name: "nightly", lastFired: 2))
        first.save(StoredSchedule(app: "web", name: "gone"))
        first.remove(StoredSchedule.Key(app: "web", name: "gone"))
        try bench.turn("the disk hangs") { disk.isBlocking }
        try File.write(bench.folder + "/journal2", try File.read(bench.folder + "/journal"))
        disk.set(.fails(10))
        #expect(!first.close())

        let second = bench.store(
            journal: StoreJournal(try File.open(bench.folder + "/journal2", .readWrite)),
            holdsWrites: true
        )
        second.save(mail(5))
        second.removeMail(3, of: "web")
        let expected: [Int64: StoredMail] = [2: mail(2, "changed"), 4: mail(4), 5: mail(5)]
        let contents = try bench.load(second)
        #expect(contents.mail == expected && contents.schedules.values.map(\.lastFired) == [2])
        // Nobody hears that it is on the disk before it may be.
        var synced = false
        second.sync(within: Bench.patience) { synced = $0 == nil }
        #expect(try bench.flush(second) && !synced)
        second.releaseWrites()
        try bench.turn("it is on the disk") { synced }
        #expect(second.close(within: Bench.patience))
        let last = try bench.load(bench.store())
        #expect(last.mail == expected && last.schedules.values.map(\.lastFired) == [2])
    }

    @Test("whoever waits for the disk is told when it does not take it, and those who wait together are served at once")
    func failure() throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        let store = bench.store(vfs: disk.name)
        store.save(mail(1))
        #expect(try sync(bench, store) == nil)
        disk.set(.fails(13))
        store.save(mail(2))
        #expect(try sync(bench, store) != nil)
        disk.set(.works)
        var answers: [Bool] = []
        for id in 10..<400 as Range<Int64> {
            store.save(mail(id), isNew: true)
            store.sync(within: Bench.patience) { answers.append($0 == nil) }
        }
        try bench.turn("all are answered") { answers.count == 390 }
        store.save(mail(500))
        try bench.turn("the disk is tried again") { try sync(bench, store) == nil }
        #expect(store.close(within: Bench.patience))
        #expect(try bench.load(bench.store()).mail.count == 2 + 390 + 1)
    }

    @Test("what comes and goes before it is written is never written")
    func fresh() throws {
        var work = MailWork()
        work.take(.mail(mail(1)), isFresh: true)
        work.take(.mail(mail(2)))
        let older = work
        work.take(.mailRemoval(1, app: "web"))
        work.take(.mailRemoval(2, app: "web"))
        #expect(work.mail.changed.isEmpty && work.mail.removed == [2])
        // While it is being written, it may be there, also when the disk reports an error.
        work = MailWork()
        work.take(.mailRemoval(1, app: "web"))
        work.take(.mailRemoval(2, app: "web"))
        #expect(work.mail.removed == [1, 2])
        work.putBack(older, removed: [])
        #expect(work.mail.changed.isEmpty && work.mail.removed == [1, 2])
        work = MailWork()
        work.putBack(older, removed: [])
        work.take(.mailRemoval(1, app: "web"))
        #expect(work.mail.removed == [1])
        work = MailWork()
        work.putBack(older, removed: ["web"])
        #expect(work.isEmpty)
    }

    @Test("what is removed after a write of which the disk said that it failed does not come back with the log")
    func failedAfterCommit() throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        let store = bench.store(vfs: disk.name)
        store.save(mail(9), isNew: true)
        #expect(try sync(bench, store) == nil)
        // The second is that of the checkpoint as the file is closed: the log stays, with the transaction in it.
        disk.failSyncs(2)
        store.save(mail(1), isNew: true)
        #expect(try sync(bench, store) != nil)
        store.removeMail(1, of: "web")
        try bench.turn("the disk is tried again") { try sync(bench, store) == nil }
        #expect(disk.hasFailedSyncs)
        #expect(store.close(within: Bench.patience))
        #expect(try bench.load(bench.store()).mail.keys.sorted() == [9])
    }

    private func unhandled(_ id: Int64, app: String = "web") -> StoredUnhandled {
        var mail = mail(id, app: app)
        mail.wake = nil
        mail.standing.attempts = 3
        mail.standing.chain = id % 2 == 0 ? nil : #"{"asked":["ü"]}"#
        return StoredUnhandled(mail: mail, why: "crashed", at: id + 7, run: id % 2 == 0 ? 5 : nil)
    }

    private func list(
        _ bench: Bench,
        _ store: Store,
        _ change: (inout UnhandledQuery) -> Void = { _ in }
    ) throws
        -> [StoredUnhandled]
    {
        var query = UnhandledQuery()
        change(&query)
        var rows: [StoredUnhandled]?
        store.unhandled(query, within: Bench.patience) { rows = try? $0.get() }
        try bench.turn("the list is read") { rows != nil }
        return rows ?? []
    }

    @Test("what nobody handled is there again, whole for who asks, and goes with its app")
    func unhandledKept() throws {
        let bench = try Bench()
        let store = bench.store()
        for id in 1...5 as ClosedRange<Int64> { store.save(unhandled(id, app: id == 5 ? "db" : "web")) }
        store.removeUnhandled(2, of: "web")
        #expect(try sync(bench, store) == nil)
        #expect(try list(bench, store) == [unhandled(1), unhandled(3), unhandled(4), unhandled(5, app: "db")])
        #expect(try list(bench, store) { $0.app = "db" }.map(\.mail.id) == [5])
        #expect(try list(bench, store) { $0.ids = [4, 9, 1] }.map(\.mail.id) == [4, 1])
        #expect(try list(bench, store) { $0.limit = 2 }.map(\.mail.id) == [4, 5])
        #expect(try list(bench, store) { $0.hasPayload = false }.allSatisfy { $0.mail.payload.isEmpty })
        store.removeUnhandled(3, of: "web")
        store.remove(app: "db")
        #expect(store.close(within: Bench.patience))
        let contents = try bench.load(bench.store(boot: "next"))
        #expect(contents.unhandled.keys.sorted() == [1, 4])
        #expect(contents.unhandled[4]?.mail.standing.attempts == 3 && contents.unhandled[4]?.run == 5)
    }

    @Test("how often mail was told is kept by itself, also of mail that is not written yet, or could not be")
    func standing() throws {
        var standing = MailStanding()
        standing.attempts = 2
        standing.run = 9
        var other = standing
        other.chain = "{}"
        let bench = try Bench()
        let journal = try StoreJournal(creating: bench.folder + "/journal")
        let disk = FaultyDisk()
        let store = bench.store(vfs: disk.name, journal: journal)
        store.save(mail(1), isNew: true)
        store.save(mail(2), isNew: true)
        #expect(try sync(bench, store) == nil)
        store.save(standing, of: 1, of: "web")
        store.save(mail(3), isNew: true)
        store.save(other, of: 3, of: "web")
        store.save(standing, of: 2, of: "web")
        store.removeMail(2, of: "web")
        store.save(unhandled(4))
        var expected = [mail(1), mail(3)]
        expected[0].standing = standing
        expected[1].standing = other
        // What the next torpord finds in the journal, and what is in the file.
        let copy = bench.folder + "/journal2"
        try File.write(copy, try File.read(bench.folder + "/journal"))
        #expect(store.close(within: Bench.patience))
        for journal in [nil, StoreJournal(try File.open(copy, .readWrite))] {
            let again = bench.store(journal: journal)
            let contents = try bench.load(again)
            #expect(contents.mail.values.sorted { $0.id < $1.id } == expected)
            #expect(contents.unhandled.keys.sorted() == [4])
            #expect(again.close(within: Bench.patience))
        }
    }

    @Test("what could not be written is put back under what is newer")
    func standingPutBack() throws {
        var (old, new) = (MailStanding(), MailStanding())
        old.attempts = 1
        new.attempts = 2
        var older = MailWork()
        for id in 1...4 as ClosedRange<Int64> { older.take(.standing(old, of: id, app: "web")) }
        older.take(.mail(mail(5)), isFresh: true)
        var work = MailWork()
        work.take(.standing(new, of: 1, app: "web"))
        work.take(.mailRemoval(2, app: "web"))
        work.take(.mail(mail(3)))
        work.take(.standing(new, of: 5, app: "web"))
        work.putBack(older, removed: [])
        #expect(work.standings == [1: new, 4: old])
        #expect(work.mail.changed[3]?.standing == MailStanding() && work.mail.changed[5]?.standing == new)
    }
}
