// SPDX-License-Identifier: Apache-2.0

import Testing
import Transfers

@Suite("Which transfer a repeated request has started") struct TransferTokensTests {
    @Test("An app's latest tokens are known, however many another one uses") func shares() {
        var tokens = TransferTokens()
        tokens.note(7, of: "a", is: 1)
        let count = UInt64(3 * TransferTokens.mostOfApp)
        for token in 1...count { tokens.note(token, of: "b", is: Int64(token)) }
        #expect(tokens[7, "a"] == 1 && tokens[8, "a"] == nil && tokens.count(of: "a") == 1)
        #expect(tokens.count(of: "b") == TransferTokens.mostOfApp)
        #expect(tokens[count, "b"] == Int64(count) && tokens[7, "b"] == nil)
        let oldest = count - UInt64(TransferTokens.mostOfApp) + 1
        #expect(tokens[oldest, "b"] == Int64(oldest) && tokens[oldest - 1, "b"] == nil)
    }

    @Test("A token that is given back, and those of an app that is forgotten, are new again") func removed() {
        var tokens = TransferTokens()
        for token in 1...3 as ClosedRange<UInt64> { tokens.note(token, of: "a", is: Int64(token)) }
        tokens.note(0, of: "a", is: 9)
        tokens.giveBack(2, of: "a")
        tokens.giveBack(2, of: "b")
        #expect(tokens[2, "a"] == nil && tokens[0, "a"] == nil && tokens.count(of: "a") == 2)
        tokens.note(2, of: "a", is: 5)
        #expect(tokens[2, "a"] == 5)
        tokens.forget("a")
        #expect(tokens[1, "a"] == nil && tokens.count(of: "a") == 0)
    }
}
