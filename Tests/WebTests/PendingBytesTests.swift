// SPDX-License-Identifier: Apache-2.0

import HTTPServing
import Testing

@Suite("The bytes of a stream that wait for its client") struct PendingBytesTests {
    @Test("a client that never takes the last byte does not make what it has taken stay")
    func slow() {
        var pending = PendingBytes()
        var room = [UInt8](repeating: 0, count: 1000)
        var (next, wanted) = (UInt8(0), UInt8(0))
        pending.append([next])
        for _ in 0..<10_000 {
            pending.append(
                (0..<1000).map { _ in
                    next &+= 1
                    return next
                }
            )
            let taken = room.withUnsafeMutableBytes { pending.move(to: $0) }
            #expect(taken == 1000 && pending.count == 1)
            for byte in room {
                guard byte == wanted else {
                    Issue.record("\(byte) is not \(wanted)")
                    return
                }
                wanted &+= 1
            }
            #expect(pending.held < 4096)
        }
        let last = room.withUnsafeMutableBytes { pending.move(to: $0) }
        #expect(last == 1)
        #expect(pending.held == 0 && room[0] == wanted)
    }
}
