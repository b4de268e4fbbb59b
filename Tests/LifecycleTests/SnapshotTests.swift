// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("When a snapshot is taken")
struct SnapshotTests {
    private func bench(_ configure: (inout AppRules) -> Void = { _ in }) throws -> Bench {
        var bench = Bench.attentive { rules in
            rules.snapshotDeadline = .seconds(2)
            configure(&rules)
        }
        try bench.launch()
        return bench
    }

    @Test("after didEnterBackground is answered; the app is not stopped before it is there")
    func before() throws {
        var bench = try bench()
        #expect(try !bench.ask(.suspend).contains(.takeSnapshot))
        _ = bench.tell(.answered(.willResignActive))
        let actions = bench.tell(.answered(.didEnterBackground))
        #expect(actions == [.entered(.background), .takeSnapshot])
        #expect(bench.machine.awaitsSnapshot && bench.machine.state == .background)
        _ = try bench.ask(.forceSuspend)
        #expect(bench.machine.transition == nil, "force does not spoil it")
        #expect(bench.tell(.snapshotOver) == [.stopProcesses])
        #expect(bench.tell(.snapshotOver).isEmpty)
        _ = bench.tell(.stopConfirmed)
        #expect(bench.machine.state == .suspended)
    }

    @Test("its own deadline is the most that the app waits for it")
    func deadline() throws {
        var bench = try bench()
        _ = try bench.ask(.suspend)
        bench.answerEverything()
        #expect(bench.machine.nextDeadline == bench.now + .seconds(2))
        #expect(bench.advance(.milliseconds(1_999)).isEmpty)
        #expect(bench.advance(.milliseconds(1)) == [.report(.snapshotMissed), .stopProcesses])
        #expect(!bench.machine.awaitsSnapshot)
    }

    @Test("a launch into the background has one too, and no app that has none configured")
    func launch() throws {
        var bench = Bench.attentive { $0.snapshotDeadline = .seconds(2) }
        try bench.launch(background: true)
        #expect(bench.machine.awaitsSnapshot)
        var plain = Bench.attentive()
        try plain.launch()
        try plain.suspend()
        #expect(plain.machine.state == .suspended && plain.tell(.showsNew).isEmpty)
    }

    @Test("whoever leaves the background, or is ended, does not wait for it")
    func overtaken() throws {
        for request in [Request.foreground, .stop(.stopped), .forceQuit] {
            var bench = try bench()
            _ = try bench.ask(.background)
            bench.answerEverything()
            #expect(bench.machine.awaitsSnapshot)
            _ = try bench.ask(request)
            #expect(!bench.machine.awaitsSnapshot, "\(request)")
            #expect(bench.tell(.snapshotOver).isEmpty)
        }
    }

    @Test("again when the app shows something new in the background, and nowhere else")
    func again() throws {
        var bench = try bench()
        #expect(bench.tell(.showsNew).isEmpty, "it is active")
        try bench.suspend()
        _ = bench.tell(.snapshotOver)
        _ = bench.tell(.stopConfirmed)
        #expect(bench.tell(.showsNew).isEmpty, "it is suspended")
        _ = try bench.ask(.wake(Wake()))
        bench.answerEverything()
        #expect(bench.tell(.showsNew) == [.takeSnapshot])
        let due = bench.machine.nextDeadline
        bench.now += .seconds(1)
        #expect(bench.tell(.showsNew) == [.takeSnapshot] && bench.machine.nextDeadline == due, "in what time is left")
        #expect(bench.tell(.snapshotOver).isEmpty)
    }

    @Test("not when the app declined, until it enters the background again")
    func declined() throws {
        var bench = try bench()
        _ = try bench.ask(.background)
        _ = bench.tell(.answered(.willResignActive))
        _ = bench.tell(.declinedSnapshot)
        #expect(bench.tell(.answered(.didEnterBackground)) == [.entered(.background)])
        #expect(bench.tell(.showsNew).isEmpty)
        _ = try bench.ask(.foreground)
        bench.answerEverything()
        _ = try bench.ask(.suspend)
        bench.answerEverything()
        #expect(bench.machine.awaitsSnapshot)
        #expect(bench.tell(.declinedSnapshot) == [.stopProcesses], "it is given up")
    }

    @Test("who takes over has it taken again, and knows what was declined")
    func recovery() throws {
        var bench = try bench()
        _ = try bench.ask(.suspend)
        bench.answerEverything()
        let again = try #require(Record.again(bench.machine))
        #expect(again.awaitsSnapshot && again.actionsToRepeat([]) == [.takeSnapshot])
        #expect(again.nextDeadline == bench.machine.nextDeadline)
        _ = bench.tell(.declinedSnapshot)
        var declined = try #require(Record.again(bench.machine))
        #expect(!declined.awaitsSnapshot && declined.handle(.showsNew, now: bench.now).isEmpty)
    }
}
