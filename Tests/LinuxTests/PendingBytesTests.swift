// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing

@Suite("Bytes that wait for a reader") struct PendingBytesTests {
    @Test("a reader that never takes the last byte does not make what it has taken stay")
    func slow() {
        var pending = PendingBytes()
        var (next, wanted) = (UInt8(0), UInt8(0))
        pending.append([next])
        for _ in 0..<10_000 {
            pending.append(
                (0..<1000).map { _ in
                    next &+= 1
                    return next
                }
            )
            let taken = Array(pending.first(1000))
            pending.drop(taken.count)
            let expected = (0..<1000).map { wanted &+ UInt8(truncatingIfNeeded: $0) }
            wanted &+= UInt8(truncatingIfNeeded: 1000)
            guard taken == expected, pending.count == 1 else {
                Issue.record("\(taken.prefix(8)) is not \(expected.prefix(8)), or \(pending.count) wait")
                return
            }
            #expect(pending.held < 4096)
        }
        #expect(Array(pending.first(1000)) == [wanted])
        pending.drop(1)
        #expect(pending.isEmpty && pending.held == 0)
    }
}
