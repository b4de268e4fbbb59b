// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing
import TorporAPI

@testable import Supervisor

@Suite("Tokens that an app has taken") struct TakenTokensTests {
    @Test("the last four are known, and which of them are uncertain")
    func standing() {
        let tokens = (0..<5).map { _ in RequestToken.random() }
        var taken = TakenTokens()
        #expect(taken.standing(of: nil) == .unknown)
        for token in tokens { taken.take(token, isUncertain: token == tokens[4]) }
        #expect(tokens.map { taken.standing(of: $0) } == [.unknown, .taken, .taken, .taken, .uncertain])
        taken.take(tokens[4])
        taken.take(nil)
        #expect(tokens.map { taken.standing(of: $0) } == [.unknown, .taken, .taken, .taken, .taken])
    }

    @Test("the next torpord knows as many of them, in their order")
    func recorded() {
        var taken = TakenTokens()
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 8)
        defer { memory.deallocate() }
        var tokens: [RequestToken] = []
        for count in 0..<5 {
            var writer = RecordWriter(memory)
            taken.encode(into: &writer)
            #expect(writer.count == 32)
            var reader = RecordReader(UnsafeRawBufferPointer(memory))
            #expect(TakenTokens(from: &reader) == taken)
            tokens.append(.random())
            taken.take(tokens[count], isUncertain: count == 1)
        }
    }

    @Test("what was refused is forgotten, and those before it are not")
    func givenBack() {
        let (first, second) = (RequestToken.random(), RequestToken.random())
        var taken = TakenTokens()
        taken.take(first)
        taken.take(second, isUncertain: true)
        taken.giveBack(second)
        taken.giveBack(nil)
        #expect(taken.standing(of: second) == .unknown && taken.standing(of: first) == .taken)
    }
}
