// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import EventSources

@Suite("What waits when an app falls asleep") struct LeftBehindTests {
    @Test("wakes it at once, and ever more seldom when it is left there again", arguments: [nil, Duration.seconds(1)])
    func delays(awake: Duration?) {
        var left = LeftBehind()
        let delays = (0..<16).map { _ in left.fellAsleep([7: .connection(ids: [1])], after: awake)[7] }
        #expect(delays[..<5] == [.zero, .seconds(1), .seconds(2), .seconds(4), .seconds(8)])
        #expect(delays.last == .seconds(3_600))
    }

    @Test("at a busy port it is another connection each time, and is answered at once")
    func busy() {
        var left = LeftBehind()
        for id in 0..<10 as Range<UInt64> {
            #expect(left.fellAsleep([7: .connection(ids: [2 * id, 2 * id + 1])], after: .seconds(3)) == [7: .zero])
        }
        // One that was not accepted among others that are new.
        #expect(left.fellAsleep([7: .connection(ids: [19, 20])], after: .seconds(3)) == [7: .seconds(1)])
        #expect(left.fellAsleep([7: .connection(ids: [19, 21])], after: .seconds(3)) == [7: .seconds(2)])
        #expect(left.fellAsleep([7: .connection(ids: [22])], after: .seconds(3)) == [7: .zero])
        // Where the kernel does not tell them apart nobody waits for long.
        var unknown = LeftBehind()
        let delays = (0..<8).map { _ in unknown.fellAsleep([7: .connection(ids: nil)], after: .seconds(3))[7] }
        #expect(delays.first == .zero && delays.dropFirst().allSatisfy { $0 == .seconds(1) })
    }

    @Test("is forgotten when it is gone, and known for itself")
    func forgotten() {
        var left = LeftBehind()
        func fellAsleep(_ sockets: [UInt32]) -> [UInt32: Duration] {
            left.fellAsleep(
                Dictionary(uniqueKeysWithValues: sockets.map { ($0, .data(received: .seconds(60))) }),
                after: .seconds(10)
            )
        }
        _ = fellAsleep([7])
        #expect(fellAsleep([7, 8]) == [7: .seconds(1), 8: .zero])
        #expect(fellAsleep([8]) == [8: .seconds(1)])
        #expect(fellAsleep([7, 8]) == [7: .zero, 8: .seconds(2)])
        _ = fellAsleep([])
        #expect(fellAsleep([8]) == [8: .zero])
    }

    @Test("a connection to accept is a new one after a moment awake, and data on one are not")
    func brief() {
        var left = LeftBehind()
        let moment = Duration.milliseconds(20)
        for _ in 0..<5 {
            #expect(left.fellAsleep([7: .connection(ids: [1])], after: moment) == [7: .zero])
        }
        #expect(
            left.fellAsleep([7: .connection(ids: [1]), 8: .data(received: nil)], after: moment) == [7: .zero, 8: .zero]
        )
        #expect(
            left.fellAsleep([7: .connection(ids: [1]), 8: .data(received: nil)], after: moment) == [
                7: .zero, 8: .seconds(1),
            ]
        )
        #expect(left.fellAsleep([7: .connection(ids: [1])], after: .seconds(1)) == [7: .seconds(1)])
    }

    @Test("data that came since it was last suspended are new, and an answer that it owes is never left")
    func fresh() {
        var left = LeftBehind()
        for _ in 0..<4 {
            let delays = left.fellAsleep(
                [7: .data(received: .milliseconds(300)), 8: .answer],
                after: .seconds(1)
            )
            #expect(delays == [7: .zero, 8: .zero])
        }
        let old = LeftBehind.Pending.data(received: .seconds(2))
        #expect(left.fellAsleep([7: old], after: .seconds(1)) == [7: .seconds(1)])
        #expect(left.fellAsleep([7: old], after: nil) == [7: .seconds(2)])
    }
}
