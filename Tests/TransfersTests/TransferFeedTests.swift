// SPDX-License-Identifier: Apache-2.0

import Schedules
import Testing
import TransferProtocol
import Varlink

@testable import Transfers

@Suite("A subscription is a transfer without end") struct TransferFeedTests {
    private static func clocks(_ seconds: Int64) -> ClockPair {
        ClockPair(running: .seconds(seconds), wall: 1_700_000_000_000_000 + seconds * 1_000_000)
    }

    @Test("It is looked at at once, and then the less often the less new there is") func intervals() throws {
        var feed = TransferFeed(name: "news", every: .seconds(100))
        var now: Int64 = 0
        #expect(feed.due(now: Self.clocks(0)) == nil)
        func wait() throws -> Int64 {
            (try #require(feed.due(now: Self.clocks(now))) - Self.clocks(now).wall) / 1_000_000
        }
        feed.looked(.newData, now: Self.clocks(now))
        #expect(try wait() == 100)
        for expected in [150, 225, 337] as [Int64] {
            now += try wait()
            feed.looked(.noData, now: Self.clocks(now))
            #expect(try wait() == expected)
        }
        feed.looked(.newData, now: Self.clocks(now))
        #expect(try (224...226).contains(wait()))
        let kept = try TransferFeed(json: feed.json)
        #expect(kept == feed)
        for failures in 1...3 {
            feed.looked(.failed, now: Self.clocks(now))
            #expect(feed.failures == failures)
        }
        #expect(try wait() == 800)
    }

    @Test("It stands beside what the app asked for, and is kept with it") func queue() throws {
        var queue = TransferQueue()
        var order = TransferOrder(id: 7, direction: .download, url: "http://h/", root: 0, file: "news", method: "GET")
        order.isDiscretionary = true
        var transfer = Transfer(order: order, app: "a", session: "torpor.feed:news", createdAt: 1)
        transfer.feed = TransferFeed(name: "news", every: .seconds(60))
        queue.add(transfer)
        #expect(queue.feeds(of: "a") == [7] && queue.count(of: "a") == 1 && queue.countAsked(of: "a") == 0)
        #expect(try Transfer(json: transfer.json) == transfer)
        let limits = TransferQueue.Limits(connections: 1, perApp: 1, perServer: 1)
        var asked: [Transfer.Kind] = []
        #expect(
            queue.next(limits, isInForeground: { _ in true }, user: { _ in "" }) { _, kind in
                asked.append(kind)
                return false
            } == nil
        )
        #expect(asked == [.feed] && !transfer.canGoOnLater)
        queue.remove(7)
        #expect(queue.feeds(of: "a").isEmpty && queue.count == 0)
    }
}
