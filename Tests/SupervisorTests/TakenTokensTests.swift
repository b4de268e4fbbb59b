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

    @Test("all bits of a token count, also while it is uncertain whether its request was carried out")
    func everyBit() throws {
        var tokens = try (1...300).map { try #require(RequestToken(text: String($0, radix: 16))) }
        let random = RequestToken.random()
        for bit in 0..<64 {
            let other = String(random.value ^ 1 << UInt64(bit), radix: 16)
            if let other = RequestToken(text: other) { tokens += [random, other] }
        }
        for isUncertain in [false, true] {
            for (one, next) in zip(tokens, tokens.dropFirst()) {
                var taken = TakenTokens()
                taken.take(one, isUncertain: isUncertain)
                #expect(taken.standing(of: one) == (isUncertain ? .uncertain : .taken), "\(one.text)")
                #expect(taken.standing(of: next) == .unknown, "\(one.text) and \(next.text)")
                taken.giveBack(next)
                taken.take(next)
                #expect(taken.standing(of: one) == (isUncertain ? .uncertain : .taken), "\(one.text)")
            }
        }
    }

    @Test("a record of an earlier version is read, in which all tokens are even and 1 is added to uncertain ones")
    func earlierRecord() throws {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 8)
        defer { memory.deallocate() }
        var writer = RecordWriter(memory)
        for value in [0xd0, 0xd3, 0, 0] as [UInt64] { writer.put(value) }
        var reader = RecordReader(UnsafeRawBufferPointer(memory))
        let taken = TakenTokens(from: &reader)
        func standings(_ taken: TakenTokens) -> [TakenTokens.Standing] {
            ["d0", "d1", "d2", "d3"].map { taken.standing(of: RequestToken(text: $0)) }
        }
        #expect(standings(taken) == [.taken, .unknown, .uncertain, .unknown])
        // An odd token that was in flight during the upgrade is known, too.
        var upgraded = taken
        upgraded.areOfEarlierVersion()
        #expect(standings(upgraded) == [.taken, .taken, .uncertain, .uncertain])
        upgraded.take(RequestToken(text: "d3"))
        #expect(standings(upgraded) == [.taken, .taken, .unknown, .taken])
        for text in ["e1", "e3", "e5"] { upgraded.take(RequestToken(text: text)) }
        #expect(standings(upgraded) == [.unknown, .unknown, .unknown, .taken])
        upgraded.take(RequestToken(text: "d0"))
        #expect(standings(upgraded) == [.taken, .unknown, .unknown, .unknown])
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
