// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporPolicyABI

@Suite("Server, with clients whose traffic cannot be measured")
struct ServerUntracedTests {
    private let bench: PolicyBench

    init() throws { bench = try PolicyBench("ServerPolicy") }

    private func begin(_ bench: PolicyBench) throws {
        bench.add("web", .active)
        bench.change("web") {
            $0.connections = 0
            $0.measured_at = bench.now
        }
        #expect(try bench.ask(TORPOR_EVENT_STARTED) == ["ask again in 600 s"])
        pass(.seconds(600), on: bench)
    }

    private func pass(_ duration: Duration, on bench: PolicyBench) {
        bench.pass(duration)
        bench.change("web") { $0.measured_at = bench.now }
    }

    /// The app falls asleep, and a client wakes it after this time. What the policy says shortly before its time for
    /// that is over.
    private func wake(after sleep: Duration, isUntraced: Bool = true, on bench: PolicyBench) throws -> [String] {
        for state in [PolicyBench.State.background, .suspended] {
            #expect(try bench.comes("web", to: state) == [])
            pass(.seconds(5), on: bench)
        }
        pass(sleep - .seconds(5), on: bench)
        bench.change("web") {
            $0.last_use = bench.now
            if isUntraced { $0.flags |= TORPOR_APP_WOKEN_UNTRACED_BIT }
        }
        #expect(try bench.comes("web", to: .background) == ["ask again in 3 s"])
        pass(.seconds(3), on: bench)
        return try bench.ask(TORPOR_EVENT_TIMER)
    }

    @Test("an app that clients wake soon after it was suspended was in use: it comes back, and stays longer each time")
    func wokenSoon() throws {
        try begin(bench)
        var patience = 600
        for _ in 0..<5 {
            #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background"])
            #expect(try wake(after: .seconds(10), on: bench) == ["web → active"])
            #expect(bench.reasons == ["it is in use again: a client woke it 10 s after it was suspended"])
            patience = min(patience * 4, 600 * 64)
            #expect(try bench.comes("web", to: .active) == ["ask again in \(patience) s"])
            pass(.seconds(patience), on: bench)
        }
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background"])
        #expect(
            bench.reasons == ["not used for 10 h 40 min: no connection, no data at all, hardly any processor time"]
        )
        // A client that comes after a long time wakes it for as long as it answers, and all is as at first.
        #expect(try wake(after: .seconds(600), on: bench) == [])
        #expect(try bench.comes("web", to: .active) == ["ask again in 600 s"])
    }

    @Test("an app with traffic that can be measured is judged by that alone")
    func measured() throws {
        try begin(bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background"])
        #expect(try wake(after: .seconds(10), isUntraced: false, on: bench) == [])
    }

    @Test("no client counts if connections are ignored")
    func ignored() throws {
        let bench = try PolicyBench("ServerPolicy", options: ["connections": "ignore"])
        try begin(bench)
        #expect(try bench.ask(TORPOR_EVENT_TIMER) == ["web → background"])
        #expect(try wake(after: .seconds(10), on: bench) == [])
    }
}
