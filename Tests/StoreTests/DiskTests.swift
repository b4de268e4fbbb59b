// SPDX-License-Identifier: Apache-2.0

import CSQLite
import EventLoop
import Foundation
import Linux
import Testing

@testable import Store

extension OneAtATime {
    @Suite("Disks that fail", .serialized)
    struct DiskTests {
        @Test("while the disk hangs nothing waits for it, memory is bounded, and apps lose nothing")
        func hanging() throws {
            let bench = try Bench()
            let disk = FaultyDisk()
            var limits = StoreQueue.Limits()
            limits.events = 1_000
            let store = bench.store(vfs: disk.name, limits: limits)
            #expect(try bench.flush(store))
            disk.set(.hangs)
            store.append(Bench.event("the first"))
            try bench.turn("the disk hangs") { disk.isBlocking }
            for number in 0..<20_000 {
                var row = AppRow(name: "app \(number % 100)")
                row.restarts = Int64(number)
                store.save(row)
                store.append(Bench.event("\(number)"))
            }
            // It hangs until it is told to work: had one waited for it, nobody would be here.
            #expect(disk.isBlocking)

            // Questions are answered in time, with a sentence.
            var answer: Result<[StoredEvent], Store.Unavailable>?
            store.events(EventQuery(), within: .milliseconds(50)) { answer = $0 }
            try bench.turn("the question is given up") { answer != nil }
            #expect(answer == .failure(Store.Unavailable(description: "the disk does not answer")))
            var written: Bool?
            store.flush(within: .milliseconds(10)) { written = $0 }
            try bench.turn("the flush is given up") { written != nil }
            #expect(written == false)

            // Somebody is told, once.
            try bench.turn("it is told") {
                store.append(Bench.event("again"))
                return bench.notices.map(\.kind).contains(.hangs)
            }
            disk.set(.works)
            #expect(try bench.flush(store))
            let lost = bench.notices.compactMap { if case .available(let lost) = $0.kind { lost } else { nil } }
            #expect(bench.notices.count { $0.kind == .hangs } == 1)
            try #require(lost.count == 1 && lost[0] > 18_000, "\(bench.notices)")
            var query = EventQuery()
            query.limit = 100_000
            let events = try bench.events(store, query)
            #expect(events.first?.text == "the first" && events.last?.text == "again")
            #expect(events.count <= 1_010 && events.count + Int(lost[0]) > 20_000)
            #expect(store.close(within: Bench.patience))
            let again = bench.store()
            #expect(try bench.load(again).apps.values.map(\.restarts).sorted() == Array(19_900..<20_000))
        }

        @Test(
            "a disk that fails some reads as the file is opened hides nothing that stands only in its log, and is no damage",
            arguments: [1, 2, 3, 6]
        )
        func failingReads(count: Int) throws {
            let bench = try Bench()
            let store = bench.store()
            store.save(AppRow(name: "web"))
            #expect(try bench.flush(store))
            // As a torpord that is killed leaves it: the row is in the log, and not yet in the file.
            let copy = bench.folder + "/killed.db"
            for suffix in ["", "-wal"] {
                try File.write(copy + suffix, try File.read(bench.path + suffix, limit: 1 << 24), mode: 0o600)
            }
            let disk = FaultyDisk()
            disk.failReads(count)
            let next = bench.store(path: copy, vfs: disk.name)
            #expect(try bench.load(next).apps.keys.sorted() == ["web"])
            #expect(disk.hasFailedReads && !bench.notices.map(\.kind).contains(.setAside))
        }

        @Test("a log that cannot be opened for lack of descriptors hides nothing", arguments: [1, 2, 9])
        func refusedLog(count: Int) throws {
            let bench = try Bench()
            let store = bench.store()
            store.save(AppRow(name: "web"))
            #expect(try bench.flush(store))
            let copy = bench.folder + "/killed.db"
            for suffix in ["", "-wal"] {
                try File.write(copy + suffix, try File.read(bench.path + suffix, limit: 1 << 24), mode: 0o600)
            }
            let disk = FaultyDisk()
            disk.refuseLog(count)
            let next = bench.store(path: copy, vfs: disk.name)
            #expect(try bench.load(next).apps.keys.sorted() == ["web"])
            #expect(disk.hasRefusedLog && bench.notices.isEmpty)
        }

        @Test(
            "a disk that is full at the start hides nothing that stands only in the log",
            arguments: [SQLITE_FULL, SQLITE_IOERR | 3 << 8]
        )
        func fullAtStart(code: Int32) throws {
            let bench = try Bench()
            let store = bench.store()
            #expect(try bench.flush(store))
            store.save(.full)
            let denial = StoredPermission(app: "web", name: "network", isAllowed: false, scope: "", by: "ann", at: 7)
            store.save(denial)
            #expect(try bench.flush(store))
            // As a torpord leaves it that cannot write the log into the file at its end.
            let copy = bench.folder + "/left.db"
            for suffix in ["", "-wal"] {
                try File.write(copy + suffix, try File.read(bench.path + suffix, limit: 1 << 24), mode: 0o600)
            }
            let disk = FaultyDisk()
            disk.set(.fails(code))
            let next = bench.store(path: copy, boot: "next", vfs: disk.name)
            let contents = try bench.load(next)
            #expect(contents.apps["web"]?.restarts == 7 && contents.permissions == [denial.key: denial])
            #expect(bench.notices.map(\.kind) == [.unavailable])
            next.save(AppRow(name: "db"))
            #expect(try !bench.flush(next))
            disk.set(.works)
            try bench.turn("it can be written again") { bench.notices.count == 2 }
            #expect(try bench.flush(next))
            #expect(next.close(within: Bench.patience))
            let again = try bench.load(bench.store(path: copy, boot: "next"))
            #expect(again.apps.keys.sorted() == ["db", "web"] && again.permissions == contents.permissions)
        }

        @Test("a store closes in bounded time while the disk hangs, and a load is given up")
        func closing() throws {
            let bench = try Bench()
            let disk = FaultyDisk()
            disk.set(.hangs)
            let store = bench.store(vfs: disk.name)
            var contents: StoreContents?
            store.load(within: .milliseconds(50)) { contents = $0 }
            try bench.turn("the load is given up") { contents != nil }
            #expect(contents == StoreContents() && disk.isBlocking)
            #expect(!store.close(within: .milliseconds(100)))
            #expect(disk.isBlocking, "it was not waited for")
            // The thread goes on, and touches nothing that is gone.
            disk.set(.works)
        }

        @Test(
            "what a disk refuses is told once, kept, tried again, and written when it can be",
            arguments: [SQLITE_FULL, SQLITE_IOERR | 3 << 8, SQLITE_READONLY]
        )
        func failing(code: Int32) throws {
            let bench = try Bench()
            let disk = FaultyDisk()
            let store = bench.store(vfs: disk.name)
            store.append(Bench.event("before"))
            #expect(try bench.flush(store))
            disk.set(.fails(code))
            store.save(.full)
            store.append(Bench.event("1"))
            #expect(try !bench.flush(store))
            store.append(Bench.event("2"))
            #expect(try !bench.flush(store))
            #expect(bench.notices.map(\.kind) == [.unavailable])
            // What is there can be read, which does not mean that it can be written.
            #expect(try bench.events(store).map(\.text) == ["before"])
            #expect(bench.notices.map(\.kind) == [.unavailable])
            disk.set(.works)
            try bench.turn("it is tried again") { bench.notices.count == 2 }
            #expect(bench.notices[1].kind == .available(lost: 0))
            #expect(try bench.events(store).map(\.text) == ["before", "1", "2"])
            #expect(store.close(within: Bench.patience))
            let again = bench.store()
            #expect(try bench.load(again).apps["web"]?.restarts == 7)
            #expect(bench.files("corrupt").isEmpty)
        }

        @Test("a real disk that is full, and one that cannot be written")
        func real() throws {
            try PrivateMounts.run {
                let bench = try Bench()
                let state = bench.folder + "/state"
                try PrivateMounts.mountSmallDisk(state, kibibytes: 512)
                defer { umount2(state, 2) }
                var store = bench.store()
                let filler = String(repeating: "x", count: 4_000)
                var count = 0
                while bench.notices.isEmpty {
                    for _ in 0..<10 {
                        count += 1
                        store.append(Bench.event("\(count) \(filler)"))
                    }
                    _ = try bench.flush(store)
                    try #require(count < 1_000)
                }
                #expect(bench.notices[0].kind == .unavailable)
                #expect(bench.notices[0].description.contains("the disk is full"))
                #expect(try bench.events(store).count > 20)
                var row = AppRow.full
                row.restarts = 8
                store.save(row)
                guard mount(nil, state, nil, 32, "size=8m") == 0 else { throw Errno(rawValue: errno) }
                // A disk that is nearly full may take a little and be full once more, before there is room for all.
                try bench.turn("there is room again") {
                    try bench.flush(store) && bench.notices.last?.kind == .available(lost: 0)
                }
                #expect(try bench.events(store).count == count)
                #expect(store.close(within: Bench.patience))

                try PrivateMounts.remount(state, readOnly: true)
                bench.notices = []
                store = bench.store()
                #expect(try bench.load(store).apps["web"]?.restarts == 8)
                row.restarts = 9
                store.save(row)
                #expect(try !bench.flush(store))
                #expect(try bench.events(store).count == count)
                #expect(bench.notices.map(\.kind) == [.unavailable])
                try PrivateMounts.remount(state, readOnly: false)
                try bench.turn("it can be written again") { bench.notices.count == 2 }
                #expect(store.close(within: Bench.patience))
                store = bench.store()
                #expect(try bench.load(store).apps["web"]?.restarts == 9)
                #expect(store.close(within: Bench.patience))
            }
        }

        @Test("a directory that cannot be made, or is lost, is made again later with all that is known of apps")
        func directories() throws {
            let bench = try Bench()
            let state = bench.folder + "/state"
            try File.write(state, "a file")
            let store = bench.store()
            store.onRowsWanted = { store.save(.full) }
            #expect(try bench.load(store) == StoreContents())
            store.save(.full)
            #expect(try !bench.flush(store))
            #expect(bench.notices.map(\.kind) == [.unavailable])
            try File.remove(state)
            try bench.turn("it is tried again") { bench.notices.count == 2 }
            #expect(try bench.flush(store))
            // SQLite alone would go on writing into the file that has no name any more.
            try File.removeTree(state)
            store.save(AppRow(name: "db"))
            #expect(try bench.flush(store))
            #expect(store.close(within: Bench.patience))
            let again = bench.store()
            #expect(try bench.load(again).apps == ["web": .full, "db": AppRow(name: "db")])
            #expect(bench.notices.count == 2, "\(bench.notices)")
        }

        @Test("a file that another program has open is told of, and taken when it is free")
        func locked() throws {
            let bench = try Bench()
            let first = bench.store()
            first.save(.full)
            #expect(try bench.flush(first))
            // POSIX locks do not count between threads of a process, but SQLite keeps them among its own connections.
            let second = bench.store()
            second.save(AppRow(name: "db"))
            #expect(try !bench.flush(second))
            #expect(bench.notices.map(\.kind) == [.unavailable])
            #expect(bench.notices.first?.description.contains("another torpord") == true)
            #expect(first.close(within: Bench.patience))
            try bench.turn("it is free") { bench.notices.count == 2 }
            #expect(second.close(within: Bench.patience))
            let again = bench.store()
            #expect(try bench.load(again).apps.count == 2)
        }

        @Test("a writer that is killed at any instant loses nothing that was written, and never damages the file")
        func killed() throws {
            let bench = try Bench()
            let rounds = 100
            let output = bench.folder + "/output"
            var written: Int64 = 0
            // What each writer was told is written. Of what comes behind that a row may be there without its event.
            var flushed: [ClosedRange<Int64>] = []
            var random = SystemRandomNumberGenerator()
            for round in 1...rounds {
                try File.write(output, "")
                let process = Process()
                process.executableURL = URL(filePath: Self.writer)
                process.arguments = [bench.path]
                process.standardOutput = try FileHandle(forWritingTo: URL(filePath: output))
                try process.run()
                // Killed some time after its beginning: within the opening as well as within the writing.
                try bench.turn("it begins") { try round % 4 == 0 || File.status(output).size > 0 }
                usleep(UInt32.random(in: 0..<20_000, using: &random))
                kill(process.processIdentifier, SIGKILL)
                process.waitUntilExit()
                let lines = try File.readString(output).split(separator: "\n")
                guard let loaded = lines.first.flatMap({ Int64($0.dropFirst("loaded ".count)) }) else { continue }
                #expect(loaded >= written, "round \(round)")
                guard let last = lines.dropFirst().last.flatMap({ Int64($0) }) else { continue }
                written = last
                flushed.append(loaded + 1...last)
            }
            #expect(written > 0)
            print("\(rounds) kills, \(written) rows written")
            let store = bench.store(machine: "m", boot: "b")
            let contents = try bench.load(store)
            var query = EventQuery()
            query.limit = 1_000_000
            let numbers = try bench.events(store, query).compactMap { Int64($0.text) }
            // The oldest may have reached the age of 100,000 younger ones.
            let oldest = numbers.count >= 100_000 ? numbers[0] : 1
            let found = Set(numbers)
            let missing = flushed.joined().filter { $0 >= oldest && !found.contains($0) }
            #expect(missing.isEmpty && zip(numbers, numbers.dropFirst()).allSatisfy(<), "every event once, in order")
            #expect(numbers.last! >= written && contents.apps["web"]!.restarts >= written)
            #expect(store.close(within: Bench.patience))
            #expect(bench.files("corrupt").isEmpty && bench.notices.isEmpty)
            let database = try Database(path: bench.path, mode: .readWrite, vfs: nil)
            let check = try database.prepare("PRAGMA integrity_check")
            #expect(try check.step() && check.text(0) == "ok")
        }

        private static let writer: String = {
            for start in [ThisProcess.executable] + CommandLine.arguments {
                var folder = start.flatMap { File.parent(of: $0) }
                for _ in 0..<4 {
                    guard let here = folder else { break }
                    if File.isExecutable(here + "/store-writer") { return here + "/store-writer" }
                    folder = File.parent(of: here)
                }
            }
            return FileManager.default.currentDirectoryPath + "/.build/debug/store-writer"
        }()
    }
}
