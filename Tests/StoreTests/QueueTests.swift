// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing

@testable import Store

@Suite("What waits for the disk")
struct QueueTests {
    private func take(_ queue: inout StoreQueue, at now: Duration) -> (StoreQueue.Turn?, Duration?) {
        var deadline: Duration?
        let turn = queue.take(now: now, &deadline)
        return (turn, deadline)
    }

    @Test("work waits ten milliseconds for more, a flush does not, and nothing is taken without work")
    func delay() throws {
        var queue = StoreQueue()
        #expect(take(&queue, at: .seconds(1)).0 == nil && take(&queue, at: .seconds(1)).1 == nil)
        queue.save(.full, now: .seconds(1))
        queue.append(Bench.event("1"), now: .seconds(1) + .milliseconds(5))
        let early = take(&queue, at: .seconds(1) + .milliseconds(9))
        #expect(early.0 == nil && early.1 == .seconds(1) + .milliseconds(10))
        let turn = try #require(take(&queue, at: .seconds(1) + .milliseconds(10)).0)
        #expect(turn.work.rows == ["web": .full] && turn.work.events.count == 1)
        #expect(take(&queue, at: .seconds(9)).0 == nil)
        queue.append(Bench.event("2"), now: .seconds(9))
        _ = queue.ask(.flush, ticket: 3)
        let flushed = try #require(take(&queue, at: .seconds(9)).0)
        #expect(flushed.work.events.count == 1 && flushed.requests.map(\.ticket) == [3])
    }

    @Test("what could not be written goes before what came meanwhile, and rows yield to newer ones")
    func putBack() throws {
        var queue = StoreQueue()
        var row = AppRow.full
        queue.save(row, now: .zero)
        queue.save(AppRow(name: "gone"), now: .zero)
        queue.append(Bench.event("1"), now: .zero)
        queue.append(StoredReport(app: "gone", incarnation: 1, at: 1, json: "{}"), now: .zero)
        let older = try #require(take(&queue, at: .seconds(1)).0)
        row.restarts = 99
        queue.save(row, now: .seconds(1))
        queue.remove(app: "gone", now: .seconds(1))
        queue.append(Bench.event("2"), now: .seconds(1))
        queue.putBack(older.work, now: .seconds(1))
        queue.notBefore = .seconds(5)
        let early = take(&queue, at: .seconds(4))
        #expect(early.0 == nil && early.1 == .seconds(5))
        let turn = try #require(take(&queue, at: .seconds(5)).0)
        #expect(turn.work.rows == ["web": row] && turn.work.removed == ["gone"])
        #expect(turn.work.events.map(\.text) == ["1", "2"] && turn.work.reports.isEmpty)
    }

    @Test("beyond its bound the oldest events and reports go and are counted, rows of apps stay")
    func bound() throws {
        var limits = StoreQueue.Limits()
        limits.events = 100
        limits.reports = 10
        limits.bytes = 100_000
        limits.requests = 2
        var queue = StoreQueue(limits: limits)
        for number in 0..<1_000 {
            queue.append(Bench.event("\(number)"), now: .zero)
            queue.append(StoredReport(app: "web", incarnation: Int64(number), at: 1, json: "{}"), now: .zero)
            queue.save(AppRow(name: "\(number)"), now: .zero)
        }
        #expect(queue.work.events.count <= 100 && queue.work.events.last?.text == "999")
        #expect(queue.work.reports.count <= 10 && queue.work.reports.last?.incarnation == 999)
        #expect(queue.work.rows.count == 1_000)
        let dropped = [queue.takeDropped(), queue.takeDropped()]
        #expect(dropped == [Int64(2_000 - queue.work.events.count - queue.work.reports.count), 0])
        queue.append(Bench.event(String(repeating: "x", count: 200_000)), now: .zero)
        #expect(queue.work.events.isEmpty, "one that is larger than all the room")
        let taken = (1...3).map { queue.ask(.flush, ticket: $0) }
        #expect(taken == [true, true, false])
    }

    @Test("held writes are not taken, questions are")
    func held() throws {
        var queue = StoreQueue(holds: true)
        queue.save(.full, now: .zero)
        #expect(take(&queue, at: .seconds(1)).0 == nil)
        _ = queue.ask(.load, ticket: 1)
        let turn = try #require(take(&queue, at: .seconds(1)).0)
        #expect(turn.work.isEmpty && turn.holds)
        queue.holds = false
        #expect(take(&queue, at: .seconds(1)).0?.work.rows.count == 1)
    }
}
