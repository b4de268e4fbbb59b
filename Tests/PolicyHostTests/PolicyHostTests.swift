import Testing

@testable import PolicyHost

@Suite struct FailureLedgerTests {
    @Test(
        "a policy that fails is tried again after growing delays, and after the sixth time within ten minutes no more"
    )
    func delays() {
        var ledger = FailureLedger()
        let delays = (0..<5).map { ledger.failed(at: .seconds($0)) }
        #expect(delays == [100, 200, 400, 800, 1600].map { .retry(after: .milliseconds($0)) })
        #expect(ledger.failed(at: .seconds(5)) == .quarantine)
        ledger.forget()
        #expect(ledger.failed(at: .seconds(6)) == .retry(after: .milliseconds(100)))
    }

    @Test("failures that are long ago do not count")
    func window() {
        var ledger = FailureLedger()
        for time in 0..<20 { #expect(ledger.failed(at: .seconds(time * 200)) != .quarantine) }
    }
}

@Suite struct GoalDampingTests {
    @Test("a few changes of mind are free, further ones come one in ten seconds, and the same goal is no change")
    func flips() {
        var damping = GoalDamping()
        var now = Duration.seconds(1000)
        var goals: [UInt32] = []
        for step in 0..<1000 {
            now += .milliseconds(1)
            let goal = UInt32(step % 2)
            guard goals.last != goal, damping.heldUntil(1, goal: goal, now: now) == nil else { continue }
            damping.sent(1, goal: goal, now: now)
            goals.append(goal)
        }
        #expect(goals.count == GoalDamping.free)
        #expect(goals.last.map { damping.heldUntil(1, goal: $0, now: now) } == .some(nil))
        #expect(damping.heldUntil(2, goal: 1, now: now) == nil)
        now += .seconds(100)
        #expect(damping.heldUntil(1, goal: 0, now: now) == nil && damping.heldUntil(1, goal: 1, now: now) == nil)
    }

    @Test("an hour of changing its mind each millisecond moves an app no more than once in ten seconds")
    func rate() {
        var damping = GoalDamping()
        var changes = 0
        var goal: UInt32 = 0
        for step in 0..<360_000 {
            let now = Duration.milliseconds(step * 10)
            guard damping.heldUntil(1, goal: 1 - goal, now: now) == nil else { continue }
            goal = 1 - goal
            damping.sent(1, goal: goal, now: now)
            changes += 1
        }
        #expect((360...360 + GoalDamping.free).contains(changes))
    }

    @Test("somebody else's word makes all changes free again")
    func forgotten() {
        var damping = GoalDamping()
        for goal in 0..<8 { damping.sent(1, goal: UInt32(goal), now: .seconds(1)) }
        #expect(damping.heldUntil(1, goal: 9, now: .seconds(1)) != nil)
        damping.forget(1)
        #expect(damping.heldUntil(1, goal: 9, now: .seconds(1)) == nil)
    }
}

@Suite struct LatencyTests {
    @Test("quantiles are right to six percent from nanoseconds to seconds")
    func quantiles() throws {
        for scale in [1, 1000, 1_000_000, 10_000_000] {
            var latency = Latency()
            #expect(latency.quantile(0.5) == nil)
            for step in 1...1000 { latency.add(.nanoseconds(step * scale)) }
            for (part, exact) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
                let (seconds, attoseconds) = try #require(latency.quantile(part)).components
                let found = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
                #expect(abs(found / Double(scale) - exact) <= exact * 0.065 + 1)
            }
        }
    }
}
