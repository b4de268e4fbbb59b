// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
import Testing

@testable import Processes

@Suite("Messages to the keeper while memory is short", .serialized)
struct ShortageTests {
    @Test("are tried again after a while, not in each turn of the loop", arguments: [Errno.noBufferSpace, .noMemory])
    func retries(error: Errno) throws {
        try withBench { bench in
            let channel = bench.keeper.channel
            let (send, null) = (channel.transmit, try File.open("/dev/null"))
            var (tries, isShort) = (0, true)
            channel.transmit = { (socket, bytes, descriptors) throws(Errno) -> Bool in
                tries += 1
                if isShort { throw error }
                return try send(socket, bytes, descriptors)
            }
            var answers: [Errno?] = []
            let began = Clock.monotonic()
            for name in ["one", "two"] { bench.keeper.hold(name, [null.raw]) { answers.append($0) } }
            for _ in 0..<1_000 { try bench.loop.runOnce(timeout: .zero) }
            // One for the first message, and one each 10 ms.
            let most = 2 + Int((Clock.monotonic() - began).microseconds / 10_000)
            #expect((1...most).contains(tries), "\(tries) tries, of at most \(most)")
            #expect(answers.isEmpty)
            isShort = false
            #expect(try bench.turn { answers.count == 2 })
            #expect(answers.allSatisfy { $0 == nil } && !channel.isBlocked)
        }
    }

    @Test("are tried again after a while at the end too, where the loop no longer runs")
    func last() throws {
        try withBench { bench in
            let channel = bench.keeper.channel
            let (send, null) = (channel.transmit, try File.open("/dev/null"))
            let began = Clock.monotonic()
            var tries = 0
            channel.transmit = { (socket, bytes, descriptors) throws(Errno) -> Bool in
                tries += 1
                if Clock.monotonic() - began < .milliseconds(200) { throw .noMemory }
                return try send(socket, bytes, descriptors)
            }
            bench.keeper.hold("one", [null.raw]) { _ in }
            bench.keeper.finishSending()
            // One at once, and one each 10 ms.
            let most = 2 + Int((Clock.monotonic() - began).microseconds / 10_000)
            #expect((1...most).contains(tries), "\(tries) tries, of at most \(most)")
            #expect(!channel.isBlocked || Clock.monotonic() - began >= .seconds(2), "it waits for two seconds at most")
        }
    }
}
