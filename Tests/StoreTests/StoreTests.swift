// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import Testing

@testable import Store

extension OneAtATime {
    @Suite("What is stored", .serialized)
    struct StoreTests {
        @Test("rows, events and reports are there again")
        func roundTrip() throws {
            let bench = try Bench()
            var store = bench.store()
            #expect(try bench.load(store) == StoreContents())
            store.save(.full)
            store.save(AppRow(name: "plain ‹ü›"))
            let now = Clock.realtimeMicroseconds()
            var event = Bench.event("crashed", at: now)
            event.incarnation = 12
            event.from = "active"
            event.to = "not-running"
            event.reason = "signal"
            event.details = "{}"
            event.sequence = store.append(event)
            let bare = StoredEvent(at: now, kind: "supervisor", text: "")
            let second = store.append(bare)
            #expect(event.sequence == now && second == now + 1)
            let report = StoredReport(app: "web", incarnation: 12, at: 5, json: #"{"a":1}"#)
            store.append(report)
            #expect(store.close(within: Bench.patience))
            #expect(bench.files("-wal").isEmpty, "the log is taken in when it is closed")

            store = bench.store()
            let contents = try bench.load(store)
            #expect(contents.apps == ["web": .full, "plain ‹ü›": AppRow(name: "plain ‹ü›")])
            #expect(contents.origin == .thisBoot)
            #expect(contents.lastSequence == now + 1)
            let events = try bench.events(store)
            try #require(events.count == 2)
            #expect(events[0] == event)
            #expect(events[1].text.isEmpty && events[1].app == nil && events[1].details == nil)
            #expect(try bench.reports(store) == [report])
            #expect(bench.notices == [])
            #expect(try File.status(bench.path).mode == 0o600)
        }

        @Test("events are found by app, time and place, and the newest or the oldest of them")
        func queries() throws {
            let bench = try Bench()
            let store = bench.store(retention: Retention(maxAge: nil))
            for number in 1...20 {
                store.append(Bench.event("\(number)", at: Int64(number * 10), app: number % 2 == 0 ? "even" : "odd"))
            }
            func texts(_ change: (inout EventQuery) -> Void) throws -> [Int] {
                var query = EventQuery()
                change(&query)
                return try bench.events(store, query).compactMap { Int($0.text) }
            }
            #expect(try texts { _ in } == Array(1...20))
            #expect(try texts { $0.since = 150 } == Array(15...20))
            #expect(try texts { $0.since = 151 } == Array(16...20))
            #expect(try texts { $0.until = 30 } == [1, 2])
            #expect(
                try texts {
                    $0.apps = ["odd"]
                    $0.since = 150
                } == [15, 17, 19]
            )
            #expect(
                try texts {
                    $0.apps = ["odd"]
                    $0.limit = 2
                } == [1, 3]
            )
            #expect(
                try texts {
                    $0.apps = ["odd"]
                    $0.limit = 2
                    $0.prefersNewest = true
                } == [17, 19]
            )
            #expect(try texts { $0.after = 180 } == [19, 20])
            #expect(try texts { $0.apps = ["none"] } == [])
        }

        @Test("of each app the newest ten reports are kept, and a removed app leaves none")
        func reports() throws {
            let bench = try Bench()
            let store = bench.store()
            for number in 1...25 {
                store.append(StoredReport(app: "web", incarnation: Int64(number), at: 1, json: "{}"))
                if number < 4 { store.append(StoredReport(app: "db", incarnation: Int64(number), at: 1, json: "{}")) }
            }
            #expect(try bench.reports(store, app: "web").map(\.incarnation) == Array((16...25).reversed()))
            #expect(try bench.reports(store).count == 13)
            store.save(.full)
            store.remove(app: "web")
            #expect(try bench.reports(store).map(\.app) == ["db", "db", "db"])
            #expect(store.close(within: Bench.patience))
            let again = bench.store()
            #expect(try bench.load(again).apps.isEmpty)
        }

        @Test("sequences grow over a clock that was set back, and over a new file")
        func clock() throws {
            let bench = try Bench()
            var store = bench.store()
            let now = Clock.realtimeMicroseconds()
            let hour: Int64 = 3_600_000_000
            store.append(Bench.event("1", at: now))
            store.append(Bench.event("2", at: now - hour))
            store.append(Bench.event("3", at: now - hour))
            #expect(store.close(within: Bench.patience))
            store = bench.store()
            // Before the file was read: the writer puts it behind the others.
            store.append(Bench.event("4", at: now - hour))
            #expect(try bench.load(store).lastSequence == now + 2)
            store.append(Bench.event("5", at: now - hour))
            let events = try bench.events(store)
            #expect(events.map(\.text) == ["1", "2", "3", "4", "5"])
            var recent = EventQuery()
            recent.since = now
            #expect(try bench.events(store, recent).map(\.text) == ["1"])
            recent.since = now - hour
            #expect(try bench.events(store, recent).count == 5)
        }

        @Test("a ledger counts within its window, and its times in the future are now")
        func ledger() {
            var row = AppRow(name: "web")
            row.ledger = [100, 900, 1_000, 5_000, .max, .min]
            #expect(row.ledger(at: 1_000, window: 500) == [900, 1_000, 1_000, 1_000])
        }

        @Test("another boot ends force-quit marks and failures, another machine all but what persons asked for")
        func origins() throws {
            let bench = try Bench()
            var store = bench.store()
            store.save(.full)
            #expect(store.close(within: Bench.patience))
            store = bench.store(boot: "next")
            var contents = try bench.load(store)
            var expected = AppRow.full
            expected.isForceQuit = false
            (expected.isFailed, expected.attempt, expected.ledger) = (false, 0, [])
            #expect(contents.origin == .earlierBoot && contents.apps == ["web": expected])
            #expect(store.close(within: Bench.patience))
            // It is written, not only told: the mark stays away for the next torpord of this boot.
            store = bench.store(boot: "next")
            contents = try bench.load(store)
            #expect(contents.origin == .thisBoot && contents.apps == ["web": expected])
            #expect(store.close(within: Bench.patience))
            #expect(bench.notices == [])

            store = bench.store(machine: "other", boot: "next")
            contents = try bench.load(store)
            var person = AppRow(name: "web")
            person.goal = "suspended"
            person.isStopped = true
            person.incarnation = 12
            person.lastExit = AppRow.full.lastExit
            #expect(contents.origin == .otherMachine && contents.apps == ["web": person])
            #expect(bench.notices.map(\.kind) == [.otherMachine])
            #expect(store.close(within: Bench.patience))
            store = bench.store(machine: "", boot: "next")
            #expect(try bench.load(store).origin == .thisBoot, "where no machine has an id, none is another")
        }

        @Test("events are kept for their time and up to their number, and the file shrinks again")
        func retention() throws {
            let bench = try Bench()
            let day: Int64 = 86_400_000_000
            let now = Clock.realtimeMicroseconds()
            var store = bench.store()
            let filler = String(repeating: "x", count: 1_000)
            for number in 0..<4_000 {
                store.append(
                    Bench.event("\(number) \(filler)", at: now - (number < 3_000 ? 40 * day : day) + Int64(number))
                )
            }
            #expect(try bench.flush(store))
            #expect(store.close(within: Bench.patience))
            store = bench.store(retention: Retention(maxAge: 30 * day, maxCount: 500))
            var query = EventQuery()
            query.limit = 10_000
            try bench.turn("the count is kept") { try bench.events(store, query).count == 500 }
            #expect(try bench.events(store, query).first?.text.hasPrefix("3500 ") == true, "the newest are kept")
            #expect(store.close(within: Bench.patience))
            store = bench.store(retention: Retention(maxAge: 3_600_000_000, maxCount: 100_000))
            _ = try bench.load(store)
            try bench.turn("the age is kept") { try bench.events(store, query).isEmpty }
            try bench.turn("the file shrinks") {
                _ = try bench.flush(store)
                return try File.status(bench.path).size < 2 << 20
            }
            // The numbers go on, though no event is left.
            #expect(store.append(Bench.event("later", at: 1)) > now - day)
            #expect(bench.notices == [])
        }

        @Test("an app with many events does not push out those of the others")
        func shares() throws {
            let bench = try Bench()
            var store = bench.store()
            for number in 0..<60 {
                store.append(Bench.event("\(number)", app: "web"))
                store.append(Bench.event("\(number)", app: nil))
            }
            for number in 0..<4_000 { store.append(Bench.event("\(number)", app: "loud")) }
            for number in 0..<400 { store.append(Bench.event("\(number)", app: "busy")) }
            #expect(try bench.flush(store))
            #expect(store.close(within: Bench.patience))
            store = bench.store(retention: Retention(maxAge: nil, maxCount: 500))
            var query = EventQuery()
            query.limit = 10_000
            try bench.turn("the count is kept") { try bench.events(store, query).count == 500 }
            let events = try bench.events(store, query)
            let counts = Dictionary(grouping: events) { $0.app ?? "" }.mapValues(\.count)
            #expect(counts == ["web": 60, "": 60, "loud": 190, "busy": 190])
            #expect(events.first { $0.app == "loud" }?.text == "3810", "the newest are kept")
            #expect(events.first { $0.app == "web" }?.text == "0")
        }

        @Test("an app with long texts keeps half of the bytes at most, and its newest events")
        func sizes() throws {
            let bench = try Bench()
            var store = bench.store()
            let long = String(repeating: "x", count: 2_000)
            for number in 0..<60 { store.append(Bench.event("\(number)", app: "web")) }
            for number in 0..<3_000 { store.append(Bench.event("\(number) \(long)", app: "loud")) }
            for number in 0..<800 { store.append(Bench.event("\(number) \(long)", app: nil)) }
            #expect(try bench.flush(store))
            #expect(store.close(within: Bench.patience))
            let limit: Int64 = 2_000_000
            store = bench.store(retention: Retention(maxAge: nil, maxBytes: limit))
            var query = EventQuery()
            query.limit = 10_000
            func measured() throws -> [String: Int64] {
                try bench.events(store, query).reduce(into: [:]) { $0[$1.app ?? "", default: 0] += $1.storedSize }
            }
            try bench.turn("the size is kept") { try measured().values.reduce(0, +) <= limit }
            // The last step has removed an event more than needed, which has some 2,000 bytes.
            let few: Int64 = 2_100
            let kept = try measured()
            let web = try #require(kept["web"])
            for app in ["", "loud"] { #expect((kept[app] ?? 0) > (limit - web) / 2 - few, "\(app): \(kept)") }
            #expect(kept.values.allSatisfy { $0 <= limit / 2 })
            let events = try bench.events(store, query)
            #expect(events.filter { $0.app == "web" }.count == 60)
            let numbers = events.filter { $0.app == "loud" }.compactMap { Int($0.text.prefix { $0 != " " }) }
            #expect(numbers == Array((3_000 - numbers.count)..<3_000), "the newest are kept")
            // It stays so, within 1 %, whatever is written.
            for number in 3_000..<3_500 { store.append(Bench.event("\(number) \(long)", app: "loud")) }
            try bench.turn("the size of one app is kept") {
                let last = try bench.events(store, query).last { $0.app == "loud" }
                guard last?.text.hasPrefix("3499 ") ?? false else { return false }
                return (try measured()["loud"] ?? 0) <= limit / 2 + limit / 100
            }
            #expect(try measured()["web"] == web)
            #expect(bench.notices == [])
        }

        @Test("the bytes of events are counted while others are written and removed, and then never again")
        func counting() {
            func event(_ sequence: Int64, _ app: String?, _ bytes: Int64) -> EventSize {
                EventSize(sequence: sequence, app: app, bytes: bytes)
            }
            var sizes = EventSizes()
            sizes.count([event(1, "a", 10), event(2, nil, 20)], isEnd: false)
            sizes.added(event(5, "a", 7))
            sizes.removed([event(1, "a", 10), event(3, "a", 99)])
            #expect(sizes.bytes == [nil: 20] && sizes.total == 20 && !sizes.isComplete && sizes.through == 2)
            sizes.count([event(4, "b", 5), event(5, "a", 7)], isEnd: true)
            sizes.added(event(6, "b", 6))
            #expect(sizes.bytes == [nil: 20, "a": 7, "b": 11] && sizes.total == 38 && sizes.isComplete)
            #expect(sizes.surplus(40).isEmpty && sizes.surplus(.max).isEmpty)
            let surplus = Dictionary(uniqueKeysWithValues: sizes.surplus(26).map { ($0.app ?? "", $0.count) })
            #expect(surplus == ["": 10, "b": 2])
        }

        @Test(
            "events are removed of the apps that have most",
            arguments: [
                ([10, 7, 7, 1], 1, [1]), ([10, 7, 7, 1], 3, [3]), ([10, 7, 7, 1], 5, [3, 1, 1]),
                ([10, 7, 7, 1], 21, [9, 6, 6]), ([10, 7, 7, 1], 25, [10, 7, 7, 1]), ([10, 7, 7, 1], 0, []),
                ([5, 5, 5], 1, [1]), ([5], 99, [5]), ([], 3, []),
            ] as [([Int64], Int64, [Int64])]
        )
        func surplus(counts: [Int64], excess: Int64, removed: [Int64]) {
            let shares = counts.enumerated().map { (app: Optional("\($0)"), count: $1) }
            let surplus = FairShares.surplus(shares, excess: excess)
            #expect(surplus.map(\.count).filter { $0 > 0 }.sorted(by: >) == removed)
        }

        @Test("saving takes the loop's thread no time, and 10 ms later it is written")
        func batches() throws {
            let bench = try Bench()
            let store = bench.store()
            _ = try bench.load(store)
            let start = Clock.monotonic()
            for number in 0..<10_000 {
                var row = AppRow(name: "app \(number % 1_000)")
                row.restarts = Int64(number)
                store.save(row)
                store.append(Bench.event("\(number)"))
            }
            let spent = Clock.monotonic() - start
            print("save and append: \(spent.inSeconds * 1e6 / 10_000) us each")
            #expect(try bench.flush(store))
            print("written after \((Clock.monotonic() - start).inSeconds * 1e3) ms")
            // Nothing asks for this one: the writer comes by itself.
            store.append(Bench.event("by itself"))
            let log = bench.path + "-wal"
            let before = try File.status(log).modifiedMicroseconds
            try bench.turn("the log grows") { try File.status(log).modifiedMicroseconds != before }
            #expect(store.close(within: Bench.patience))
            let again = bench.store()
            let apps = try bench.load(again).apps
            #expect(apps.count == 1_000 && apps["app 999"]?.restarts == 9_999)
        }

        @Test("the thread sleeps while there is nothing to do, and ends with the store")
        func idle() throws {
            func threads() throws -> [Int32] {
                try ProcFS.tasks(ThisProcess.pid).filter {
                    (try? File.readString("/proc/self/task/\($0)/comm")) == "store\n"
                }
            }
            let bench = try Bench()
            try bench.turn("those of earlier tests end") { try threads().isEmpty }
            let store = bench.store()
            #expect(try bench.flush(store))
            let thread = try #require(try threads().first)
            func switches() throws -> String? {
                try ProcFS.statusField(ThisProcess.pid, "voluntary_ctxt_switches", task: thread)
            }
            try bench.turn("it sleeps for 200 ms") {
                let before = try switches()
                while try bench.loop.runOnce(timeout: .milliseconds(200)) {}
                return try switches() == before
            }
            #expect(store.close(within: Bench.patience))
            try bench.turn("the thread ends") { try threads().isEmpty }
        }
    }
}
