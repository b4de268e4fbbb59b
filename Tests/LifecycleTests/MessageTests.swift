// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Lifecycle

/// Messages that no transition waits for: their deadline, and the app that works on one.
@Suite("Messages with a deadline of their own") struct MessageTests {
    private func awake(_ configure: (inout AppRules) -> Void = { _ in }) throws -> Bench {
        var bench = Bench.attentive { rules in
            rules.messageDeadline = .seconds(10)
            rules.eventTime = .seconds(6)
            configure(&rules)
        }
        try bench.launch()
        _ = bench.tell(.delegate(attached: true))
        try bench.suspend()
        _ = try bench.ask(.wake(Wake()))
        _ = bench.tell(.answered(.resumed))
        return bench
    }

    @Test("An app in the background that does not answer is terminated as unresponsive")
    func missed() throws {
        var bench = try awake()
        #expect(bench.tell(.messageSent).isEmpty && bench.armed[.message] == .seconds(10))
        #expect(bench.advance(.seconds(6)).isEmpty, "it is not suspended in the middle of a message")
        #expect(bench.machine.messageTime(now: bench.now) == .seconds(6))
        #expect(bench.advance(.seconds(4)) == [.report(.messageMissed), .signalStop])
        #expect(bench.machine.messageTime(now: bench.now) == nil)
        #expect(try bench.end(crash).reason == .unresponsive)
    }

    @Test("If its background time is over too when it is judged, what it missed is the message")
    func missedLate() throws {
        var bench = try awake()
        _ = bench.tell(.messageSent)
        bench.now += .seconds(60)
        #expect(bench.machine.deadlines.filter { $0.at <= bench.now }.map(\.kind) == [.backgroundTime, .message])
        #expect(bench.machine.missedDeadline(now: bench.now)?.kind == .message)
        #expect(bench.advance(.zero) == [.report(.messageMissed), .signalStop])
        var idle = try awake()
        idle.now += .seconds(60)
        #expect(idle.machine.missedDeadline(now: idle.now) == nil, "it had nothing to do by then")
    }

    @Test("In the foreground the miss is reported, and the app is left alone")
    func foreground() throws {
        var bench = Bench.attentive { $0.messageDeadline = .seconds(10) }
        try bench.launch()
        _ = bench.tell(.delegate(attached: true))
        _ = bench.tell(.messageSent)
        #expect(bench.advance(.seconds(10)) == [.report(.messageMissed)])
        #expect(bench.machine.state == .active && bench.armed.isEmpty)
        #expect(bench.advance(.seconds(10)).isEmpty)
        #expect(bench.machine.messageTime(now: bench.now) == .seconds(20) && bench.machine.messageDue == nil)
        var strict = Bench.attentive { $0.onMissedTransition = .end }
        try strict.launch()
        _ = strict.tell(.delegate(attached: true))
        _ = strict.tell(.messageSent)
        #expect(strict.advance(.seconds(30)).contains(.report(.messageMissed)))
        #expect(strict.machine.endingReason == .unresponsive)
    }

    @Test("It finishes the message that it works on, then saves and sleeps")
    func finishes() throws {
        var bench = try awake()
        _ = bench.tell(.messageSent)
        #expect(bench.advance(.seconds(8)).isEmpty)
        #expect(bench.tell(.messageAnswered) == [.report(.sleepsAgain), .tell(.didEnterBackground)])
        // A person does not wait for it longer than for an answer.
        var asked = try awake()
        _ = asked.tell(.messageSent)
        #expect(try asked.ask(.suspend) == [.tell(.didEnterBackground)])
        #expect(asked.advance(.seconds(5)).last == .stopProcesses)
    }

    @Test("Time in which it is suspended or debugged does not count")
    func pauses() throws {
        var bench = try awake()
        _ = bench.tell(.messageSent)
        bench.now += .seconds(3)
        try bench.suspend()
        #expect(bench.machine.state == .suspended && bench.armed[.message] == nil)
        bench.now += .seconds(1_000)
        #expect(bench.machine.messageTime(now: bench.now) == .seconds(3))
        #expect(bench.tell(.deadline).isEmpty)
        _ = try bench.ask(.wake(Wake()))
        #expect(bench.armed[.message] == .seconds(7))
        _ = bench.tell(.traced(true))
        bench.now += .seconds(50)
        _ = bench.tell(.traced(false))
        #expect(bench.armed[.message] == .seconds(7))
    }

    @Test("pending gives it more time, up to extension_limit; a delegate that leaves owes nothing")
    func pending() throws {
        var bench = try awake { $0.extensionLimit = .seconds(25) }
        _ = bench.tell(.messageSent)
        _ = bench.tell(.messagePending(.seconds(20)))
        #expect(bench.armed[.message] == .seconds(20))
        bench.now += .seconds(1)
        _ = bench.tell(.messagePending(.seconds(100)))
        #expect(bench.armed[.message] == .seconds(24))
        _ = bench.tell(.delegate(attached: false))
        #expect(bench.armed[.message] == nil && !bench.machine.isBusyWithMessage)
    }

    @Test("Without a deadline a message keeps nothing awake")
    func none() throws {
        var bench = try awake { $0.messageDeadline = nil }
        _ = bench.tell(.messageSent)
        #expect(bench.armed[.message] == nil && bench.machine.messageTime(now: bench.now) == .zero)
        #expect(bench.advance(.seconds(6)) == [.report(.sleepsAgain), .tell(.didEnterBackground)])
    }
}
