// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Gateway

@Suite("Messages that recur") struct LogThrottleTests {
    @Test("are logged once in an interval, and then with the number of times that they were left out")
    func repeated() {
        var throttle = LogThrottle()
        #expect(throttle.take("a", at: .seconds(1)) == .message(left: 0))
        for _ in 0..<5 { #expect(throttle.take("a", at: .seconds(2)) == .nothing) }
        #expect(throttle.take("b", at: .seconds(2)) == .message(left: 0))
        #expect(throttle.take("a", at: .seconds(31)) == .message(left: 5))
    }

    @Test("are no more than fifty in an interval, however many names a stranger invents")
    func invented() {
        var throttle = LogThrottle()
        let many = (0..<5_000).map { throttle.take("name \($0)", at: .seconds(1)) }
        #expect(many.count { $0 != .nothing } == LogThrottle.most)
        let later = LogThrottle.interval + .seconds(1)
        #expect(throttle.take("name", at: later) == .others(5_000 - LogThrottle.most, left: 0))
        #expect(throttle.take("another", at: later) == .message(left: 0))
    }
}
