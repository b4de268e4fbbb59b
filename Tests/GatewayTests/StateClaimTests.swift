// SPDX-License-Identifier: Apache-2.0

import Foundation
import Gateway
import Testing

@Suite("A claim of a state") struct StateClaimTests {
    private func source(
        _ kept: StateClaim.Kept?,
        savedAt: Int64?,
        owner: String = "none",
        isForced: Bool = false
    ) -> StateClaim.Source {
        StateClaim.source(of: "shop", kept: kept, node: "north", savedAt: savedAt, owner: owner, isForced: isForced)
    }

    @Test("takes what the server has, unless this machine had it last and has a newer one")
    func newest() {
        let ours = StateClaim.Kept(node: "north", savedAt: 100)
        let theirs = StateClaim.Kept(node: "south", savedAt: 100)
        #expect(source(nil, savedAt: nil) == .here && source(nil, savedAt: 5) == .here)
        #expect(source(ours, savedAt: 101) == .here && source(ours, savedAt: 100) == .server)
        #expect(source(ours, savedAt: 99) == .server && source(ours, savedAt: nil) == .server)
        // The clocks of two machines say nothing.
        #expect(source(theirs, savedAt: 101) == .server && source(theirs, savedAt: nil) == .server)
        // The last owner had discarded its state.
        #expect(source(StateClaim.Kept(node: "north", savedAt: nil), savedAt: 1) == .here)
        #expect(source(StateClaim.Kept(node: "south", savedAt: nil), savedAt: 1) == .server)
    }

    @Test("of an app that is owned here brings nothing, and is refused if another machine has claimed it")
    func owned() {
        let theirs = StateClaim.Kept(node: "south", savedAt: 100)
        #expect(source(StateClaim.Kept(node: "north", savedAt: 100), savedAt: 1, owner: "here") == .here)
        #expect(source(nil, savedAt: 1, owner: "here") == .here)
        guard case .refused(let sentence) = source(theirs, savedAt: 200, owner: "here") else {
            Issue.record("it was taken")
            return
        }
        #expect(sentence.contains("south has claimed its state since"))
        #expect(source(theirs, savedAt: nil, isForced: true) == .here)
        #expect(source(theirs, savedAt: 1, owner: "here", isForced: true) == .here)
    }

    @Test("leaves a token, and what is no token is none")
    func tokens() throws {
        let folder = NSTemporaryDirectory() + "tokens-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let tokens = StateTokens(folder: folder + "/deep")
        #expect(tokens.token(of: "shop") == nil)
        let token = StateTokens.Token(claim: "abc", sequence: 17)
        try tokens.keep(token, of: "shop")
        #expect(tokens.token(of: "shop") == token && tokens.token(of: "other") == nil)
        for wrong in ["", "{}", "{\"claim\": 1, \"sequence\": 2}", String(repeating: "x", count: 9000)] {
            try wrong.write(toFile: folder + "/deep/shop.token", atomically: true, encoding: .utf8)
            #expect(tokens.token(of: "shop") == nil)
        }
        #expect(!tokens.wasOwned(token, "shop"))
        tokens.noteOwned(token, of: "shop")
        #expect(tokens.wasOwned(token, "shop") && !tokens.wasOwned(token, "other"))
        // Not under a later claim.
        #expect(!tokens.wasOwned(StateTokens.Token(claim: "abd", sequence: 18), "shop"))
        tokens.remove("shop")
        #expect(tokens.token(of: "shop") == nil && !tokens.wasOwned(token, "shop"))
    }
}
