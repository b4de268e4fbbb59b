// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import EventSources

@Suite("What waits when an app falls asleep") struct LeftBehindTests {
    @Test("wakes it at once, and ever more seldom when it is left there again")
    func delays() {
        var left = LeftBehind()
        let delays = (0..<16).map { _ in left.fellAsleep([7])[7] }
        #expect(delays[..<5] == [.zero, .seconds(1), .seconds(2), .seconds(4), .seconds(8)])
        #expect(delays.last == .seconds(3_600))
    }

    @Test("is forgotten when it is gone, and known for itself")
    func forgotten() {
        var left = LeftBehind()
        _ = left.fellAsleep([7])
        #expect(left.fellAsleep([7, 8]) == [7: .seconds(1), 8: .zero])
        #expect(left.fellAsleep([8]) == [8: .seconds(1)])
        #expect(left.fellAsleep([7, 8]) == [7: .zero, 8: .seconds(2)])
        _ = left.fellAsleep([])
        #expect(left.fellAsleep([8]) == [8: .zero])
    }
}
