// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporPolicyABI

@Suite("Server: apps that are protected later")
struct ServerProtectTests {
    @Test("an app that was sent away comes back once; one that a user put to sleep, or that is not protected, stays")
    func protectedLater() throws {
        let bench = try PolicyBench(
            "ServerPolicy",
            options: ["protect.0": "db", "protect.1": "own", "protect.2": "behind"]
        )
        for (name, state) in [("db", PolicyBench.State.suspended), ("behind", .background), ("web", .suspended)] {
            bench.add(name, state)
            bench.change(name) { $0.flags |= TORPOR_APP_SENT_AWAY_BIT }
        }
        bench.add("own", .suspended)
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["db → active", "behind → active"])
        #expect(bench.reasons.first == "it is protected now, and had been sent away")
        // Another policy may send it away again.
        #expect(try bench.ask(TORPOR_EVENT_APPS) == [])
    }

    @Test("an app that was sent away comes back when no event wakes it any longer; one that a user put to sleep stays")
    func stranded() throws {
        let bench = try PolicyBench("ServerPolicy", options: [:])
        for name in ["web", "db", "own"] { bench.add(name, .suspended) }
        for name in ["web", "db"] { bench.change(name) { $0.flags |= TORPOR_APP_SENT_AWAY_BIT } }
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == [])
        for name in ["web", "own"] { bench.change(name) { $0.flags |= TORPOR_APP_NEVER_WOKEN_BIT } }
        #expect(try bench.ask(TORPOR_EVENT_APPS) == ["web → active"])
        #expect(bench.reasons.last == "no event wakes it any longer")
    }
}
