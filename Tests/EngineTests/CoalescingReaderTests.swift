// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
import Testing

@testable import Engine

@Suite("What is read beside the loop") struct CoalescingReaderTests {
    @Test("Each who asks is answered by a reading that began after it asked, also those who ask again at once")
    func askAgain() throws {
        let loop = try EventLoop()
        let readings = Monitor(0)
        let aside = CoalescingReader<Void, Int>(loop, named: "test") {
            readings.withLock { count in
                count += 1
                return count
            }
        }
        var answers: [String: Int] = [:]
        for name in ["a", "b", "c"] {
            aside.ask { first in
                answers[name] = first
                aside.ask { answers[name + " again"] = $0 }
            }
        }
        let deadline = Clock.monotonic() + .seconds(20)
        while answers.count < 6 {
            try #require(Clock.monotonic() < deadline, "answered so far: \(answers)")
            try loop.runOnce(timeout: .milliseconds(10))
        }
        for name in ["a", "b", "c"] {
            #expect(try #require(answers[name + " again"]) > #require(answers[name]))
        }
    }

    @Test("Questions that wait are joined into one")
    func joined() throws {
        let loop = try EventLoop()
        let aside = CoalescingReader<Set<Int>, Set<Int>>(loop, named: "test", joining: { $0.formUnion($1) }) { $0 }
        var answers: [Set<Int>] = []
        for number in 0..<3 { aside.ask([number]) { answers.append($0) } }
        let deadline = Clock.monotonic() + .seconds(20)
        while answers.count < 3 {
            try #require(Clock.monotonic() < deadline)
            try loop.runOnce(timeout: .milliseconds(10))
        }
        #expect(answers == [[0], [1, 2], [1, 2]])
    }
}
