// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("Ends for what an app did not do in time, and launches that failed")
struct MissedEndTests {
    /// What happens in the next minute if the app answers nothing and ends only by SIGKILL.
    private func silence(_ bench: inout Bench) -> [Action] {
        var actions: [Action] = []
        for _ in 0..<60 { actions += bench.advance(.seconds(1)) }
        return actions
    }

    @Test(
        "They come with SIGTERM and without willTerminate, as the table of edges says",
        arguments: [TerminationReason.taskExpired, .backgroundDeadline, .unresponsive, .launchDeadline]
    )
    func withoutWarning(reason: TerminationReason) throws {
        var bench = Bench.attentive { if reason == .unresponsive { $0.onMissedTransition = .end } }
        if reason == .launchDeadline {
            _ = try bench.ask(.start(background: false))
            _ = bench.machine.permitLaunch(now: bench.now)
            _ = bench.tell(.launched)
        } else {
            try bench.launch()
            if reason == .taskExpired { _ = try bench.machine.beginTask("upload", now: bench.now) }
            _ = try bench.ask(.background)
            if reason == .taskExpired { bench.answerEverything() }
        }
        let actions = silence(&bench)
        #expect(actions.contains(.signalStop), "\(actions)")
        #expect(!actions.contains(.tell(.willTerminate)), "\(actions)")
        #expect(try bench.end(.signaled(9, coreDumped: false)).reason == reason)
    }

    @Test("tasks that get more time when torpord is replaced have no more of it left than their deadline gives")
    func grantedTasks() throws {
        var rules = AppRules()
        rules.taskTime = .seconds(6)
        var fleet = try Fleet([AppDefinition(name: "web", rules: rules)])
        try fleet.ask(.start(background: true), "web")
        let web = fleet.id("web")
        fleet.settle(try fleet.coordinator.beginTask("upload", of: web, now: fleet.now).actions)
        func times() throws -> [Duration] {
            let deadline = try #require(fleet.coordinator.machine(web).deadlines.first { $0.kind == .task })
            return [deadline.at - fleet.now, deadline.at - deadline.started]
        }
        fleet.now += .seconds(1)
        #expect(try times() == [.seconds(5), .seconds(6)])
        fleet.coordinator.grantTasks(web, .seconds(7), since: nil, now: fleet.now)
        #expect(try times() == [.seconds(7), .seconds(7)])
        // It is never less.
        fleet.coordinator.grantTasks(web, .seconds(3), since: nil, now: fleet.now)
        #expect(try times() == [.seconds(7), .seconds(7)])
        fleet.now += .seconds(4)
        fleet.coordinator.grantTasks(web, .seconds(5), since: nil, now: fleet.now)
        #expect(try times() == [.seconds(5), .seconds(7)])
        fleet.now += .seconds(5)
        fleet.tell(.deadline, "web")
        #expect(fleet.log.last == "web ended task-expired")
    }

    @Test("tasks get back the time without a torpord, and no more: replacements do not lengthen them")
    func timeGivenBack() throws {
        var rules = AppRules()
        rules.taskTime = .seconds(6)
        var fleet = try Fleet([AppDefinition(name: "web", rules: rules)])
        try fleet.ask(.start(background: true), "web")
        let web = fleet.id("web")
        fleet.settle(try fleet.coordinator.beginTask("upload", of: web, now: fleet.now).actions)
        func left() throws -> Duration {
            try #require(fleet.coordinator.machine(web).deadlines.first { $0.kind == .task }).at - fleet.now
        }
        fleet.now += .seconds(1)
        // One that is replaced every moment.
        for _ in 0..<3 { fleet.coordinator.grantTasks(web, .seconds(10), since: fleet.now, now: fleet.now) }
        #expect(try left() == .seconds(5))
        // One that was missing for four seconds.
        let since = fleet.now
        fleet.now += .seconds(4)
        fleet.coordinator.grantTasks(web, .seconds(10), since: since, now: fleet.now)
        #expect(try left() == .seconds(5))
        // It is not needed as a whole.
        fleet.now += .seconds(4)
        fleet.coordinator.grantTasks(web, .seconds(2), since: since, now: fleet.now)
        #expect(try left() == .seconds(2))
    }

    @Test("tasks with one name are named once, and an app in its grace is refused one with the true reason")
    func namesOfTasks() throws {
        var bench = Bench.attentive()
        try bench.launch()
        for name in ["many", "one", "many", "many"] { _ = try bench.machine.beginTask(name, now: bench.now) }
        #expect(bench.machine.holders == ["the task many (3 times)", "the task one"])
        _ = try bench.ask(.stop(.stopped))
        #expect(throws: RequestError("is being terminated, so it begins no task")) {
            _ = try bench.machine.beginTask("late", now: bench.now)
        }
    }

    @Test("a launch that failed counts as no stable run, even if every run does")
    func failedLaunches() throws {
        var bench = Bench { rules in
            rules.restart = .always
            (rules.backoff.initial, rules.backoff.stableAfter) = (.milliseconds(100), .zero)
            rules.backoff.jitter = 0
        }
        _ = try bench.ask(.start(background: false))
        for delay in [100, 200, 400] {
            _ = bench.machine.permitLaunch(now: bench.now)
            let ending = try #require(bench.tell(.launchFailed).ending)
            #expect(ending.next == .restart(after: .milliseconds(delay)))
            _ = bench.advance(.milliseconds(delay))
        }
        bench.comeUp()
        #expect(try bench.end(.exited(code: 1)).next == .restart(after: .milliseconds(100)))
    }
}
