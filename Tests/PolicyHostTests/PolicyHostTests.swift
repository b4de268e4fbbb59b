// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing

@testable import PolicyHost

@Suite struct FailureLedgerTests {
    @Test("a policy that fails is tried again after growing delays, and after the sixth time within ten minutes later")
    func delays() {
        var ledger = FailureLedger()
        let delays = (0..<5).map { ledger.failed(at: .seconds($0)) }
        #expect(delays == [100, 200, 400, 800, 1600].map { .retry(after: .milliseconds($0)) })
        #expect(ledger.failed(at: .seconds(5)) == .quarantine(for: .seconds(60)))
        ledger.forget()
        #expect(ledger.failed(at: .seconds(6)) == .retry(after: .milliseconds(100)))
    }

    @Test("a quarantine that was too short is followed by one of twice the time, up to an hour, and never by none")
    func quarantines() {
        var ledger = FailureLedger()
        var now = Duration.zero
        for _ in 0..<5 { _ = ledger.failed(at: now) }
        var minutes: [Int64] = []
        for _ in 0..<100 {
            guard case .quarantine(let time) = ledger.failed(at: now) else {
                Issue.record("it is not quarantined at \(now)")
                return
            }
            minutes.append(time.components.seconds / 60)
            // It works for nearly long enough to be trusted.
            now += time + FailureLedger.window - .seconds(1)
        }
        #expect(minutes.prefix(8) == [1, 2, 4, 8, 16, 32, 60, 60])
        #expect(Set(minutes.dropFirst(6)) == [60])
    }

    @Test("a policy that has worked for ten minutes after a quarantine is as good as new")
    func trust() {
        var ledger = FailureLedger()
        for _ in 0..<6 { _ = ledger.failed(at: .zero) }
        #expect(ledger.failed(at: .seconds(60)) == .quarantine(for: .seconds(120)))
        let now = Duration.seconds(60 + 120) + FailureLedger.window
        #expect(ledger.failed(at: now) == .retry(after: .milliseconds(100)))
    }

    @Test("failures that are long ago do not count")
    func window() {
        var ledger = FailureLedger()
        for time in 0..<20 {
            guard case .retry = ledger.failed(at: .seconds(time * 200)) else {
                Issue.record("failure \(time) is one too many")
                return
            }
        }
    }

    @Test(
        "the pages have the numbers that are in force",
        arguments: ["docs/policies.md", "docs/internals.md", "docs/lifecycle.md"]
    )
    func documented(page: String) throws {
        let root = #filePath.split(separator: "/").dropLast(3).reduce("") { $0 + "/" + $1 }
        let text = try File.readString(root + "/" + page)
        func minutes(_ time: Duration) -> String { "\(time.components.seconds / 60) min" }
        let count = FailureLedger.limit + 1
        var phrases = [minutes(FailureLedger.quarantine), "up to \(minutes(FailureLedger.longestQuarantine))"]
        if page.hasSuffix("lifecycle.md") {
            phrases.append("\(count) times within \(minutes(FailureLedger.window))")
        } else {
            phrases += [
                "\(count)th failure within \(minutes(FailureLedger.window))",
                "\(FailureLedger.initial.microseconds / 1000) ms",
                "after \(FailureLedger.afterStall.components.seconds) s", "\(Patience.shortest.inSeconds) s",
            ]
        }
        for phrase in phrases { #expect(text.contains(phrase), "\(phrase)") }
        if page.hasSuffix("policies.md") {
            #expect(text.contains("\(PolicyChain.stallShare / 100) % of the last 10 s"))
        }
    }
}

@Suite("How long a late answer is waited for") struct PatienceTests {
    private func look(_ state: Character, ran: Int = 0, waited: Int = 0, stalled: Bool = false) -> Patience.Look {
        Patience.Look(
            state: state,
            scheduling: Scheduling(ran: .milliseconds(ran), waited: .milliseconds(waited)),
            isMachineStalled: stalled
        )
    }

    private static let again = Patience.Verdict.look(after: Patience.interval)

    /// How often it is looked at, and the verdict in the end.
    private func judge(_ patience: Patience, _ look: (Int) -> Patience.Look) -> (looks: Int, end: Patience.Verdict) {
        var patience = patience
        for count in 0..<10_000 {
            let verdict = patience.judge(look(count))
            if verdict != Self.again { return (count, verdict) }
        }
        return (10_000, Self.again)
    }

    @Test("a library that loops while it is opened is late when its five seconds are over")
    func looping() {
        let begin = Scheduling(ran: .zero, waited: .zero)
        let loading = Patience(deadline: .seconds(5), first: begin)
        let outcome = judge(loading) { look("R", ran: 4_900 + 50 * $0, waited: 100) }
        #expect(outcome == (0, .late))
    }

    @Test("a policy that calculates is late at the second look, and one that sleeps at the first")
    func busy() {
        let asked = Patience(deadline: .milliseconds(50))
        #expect(judge(asked) { look("R", ran: 50 * $0, waited: 10) } == (1, .late))
        #expect(judge(asked) { _ in look("S") } == (0, .late))
        #expect(judge(asked) { _ in look("T") } == (0, .late))
    }

    @Test(
        "one that waits for a processor has a second and a half, or as long again as a longer deadline, and is late then"
    )
    func waiting() {
        #expect(judge(Patience(deadline: .milliseconds(50))) { look("R", ran: $0, waited: 50 * $0) } == (30, .late))
        #expect(judge(Patience(deadline: .seconds(5))) { look("R", ran: $0, waited: 50 * $0) } == (100, .late))
    }

    @Test("while work waits for memory, or the process for a page, it is waited for as long, and is then no failure")
    func stalled() {
        let asked = Patience(deadline: .milliseconds(50))
        #expect(judge(asked) { _ in look("D") } == (30, .stalled))
        #expect(judge(asked) { look("R", ran: 50 * $0, stalled: true) } == (30, .stalled))
        #expect(judge(asked) { _ in look("S", stalled: true) } == (30, .stalled))
        // What ends before that is the policy's again.
        #expect(judge(asked) { look($0 < 10 ? "D" : "S") } == (10, .late))
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
