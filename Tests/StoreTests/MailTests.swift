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
        #expect(work.mail.isEmpty && work.removedMail == [2])
        // The same while it is being written, and cannot be.
        work = MailWork()
        work.take(.mailRemoval(1, app: "web"))
        work.take(.mailRemoval(2, app: "web"))
        #expect(work.removedMail == [1, 2])
        work.putBack(older, removed: [])
        #expect(work.mail.isEmpty && work.removedMail == [2])
        work = MailWork()
        work.putBack(older, removed: ["web"])
        #expect(work.isEmpty)
    }
}
