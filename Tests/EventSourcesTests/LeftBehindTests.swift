// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import EventSources

@Suite("What waits when an app falls asleep") struct LeftBehindTests {
    @Test("wakes it at once, and ever more seldom when it is left there again", arguments: [nil, Duration.seconds(1)])
    func delays(awake: Duration?) {
        var left = LeftBehind()
        let delays = (0..<16).map { _ in left.fellAsleep([7: .connection], after: awake)[7] }
        #expect(delays[..<5] == [.zero, .seconds(1), .seconds(2), .seconds(4), .seconds(8)])
        #expect(delays.last == .seconds(3_600))
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
            #expect(left.fellAsleep([7: .connection], after: moment) == [7: .zero])
        }
        #expect(left.fellAsleep([7: .connection, 8: .data(received: nil)], after: moment) == [7: .zero, 8: .zero])
        #expect(
            left.fellAsleep([7: .connection, 8: .data(received: nil)], after: moment) == [7: .zero, 8: .seconds(1)]
        )
        #expect(left.fellAsleep([7: .connection], after: .seconds(1)) == [7: .seconds(1)])
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
