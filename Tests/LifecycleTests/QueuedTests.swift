// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Lifecycle

/// Messages of a transition that wait in the queue because the app works on an earlier message.
@Suite("Messages that wait behind another one") struct QueuedTests {
    /// An active app that has just been sent mail.
    private func busy(_ configure: (inout AppRules) -> Void = { _ in }) throws -> Bench {
        var bench = Bench.attentive { rules in
            rules.messageDeadline = .seconds(20)
            configure(&rules)
        }
        try bench.launch()
        _ = bench.tell(.delegate(attached: true))
        _ = bench.tell(.messageSent)
        return bench
    }

    @Test("The deadline of a message begins when it is delivered, not while another one is open")
    func begins() throws {
        var bench = try busy()
        #expect(try bench.ask(.background) == [.tell(.willResignActive)])
        #expect(bench.armed == [.message: .seconds(20), .transition: .seconds(25)])
        #expect(bench.advance(.seconds(19)).isEmpty && bench.machine.state == .active)
        #expect(bench.tell(.messageAnswered).isEmpty && bench.armed == [.transition: .seconds(5)])
        bench.now += .seconds(1)
        _ = bench.tell(.delivered(.willResignActive))
        #expect(bench.armed == [.transition: .seconds(5)])
        #expect(bench.tell(.answered(.willResignActive)) == [.entered(.inactive), .tell(.didEnterBackground)])
        #expect(bench.armed == [.background: .seconds(5)])
        #expect(bench.advance(.seconds(5)).last == .signalStop && bench.machine.endingReason == .backgroundDeadline)
    }

    @Test("When the open message is overdue, the time of the queued one begins: no app stays in a transition forever")
    func overdue() throws {
        var bench = try busy()
        _ = try bench.ask(.background)
        #expect(bench.advance(.seconds(20)) == [.report(.messageMissed)] && bench.armed == [.transition: .seconds(5)])
        let actions = bench.advance(.seconds(5))
        #expect(actions.contains(.report(.missed(.transition, .enteringBackground))))
        #expect(actions.last == .tell(.didEnterBackground) && bench.armed == [.background: .seconds(5)])
        _ = bench.advance(.seconds(5))
        #expect(bench.machine.endingReason == .backgroundDeadline)
        // torpord was away for so long that both are overdue: the open message is judged first.
        var late = try busy()
        _ = try late.ask(.background)
        #expect(late.advance(.seconds(60)) == [.report(.messageMissed)] && late.armed == [.transition: .seconds(5)])
    }

    @Test("Behind a message without a deadline, the time of the queued one begins at once")
    func unlimited() throws {
        var bench = try busy { $0.messageDeadline = nil }
        _ = try bench.ask(.background)
        #expect(bench.armed == [.transition: .seconds(5)])
    }

    @Test("It follows the open message: pending, a debugger, the next message that goes before it")
    func follows() throws {
        var bench = try busy()
        _ = try bench.ask(.background)
        _ = bench.tell(.messagePending(.seconds(50)))
        #expect(bench.armed == [.message: .seconds(50), .transition: .seconds(55)])
        _ = bench.tell(.traced(true))
        bench.now += .seconds(1_000)
        _ = bench.tell(.traced(false))
        #expect(bench.armed == [.message: .seconds(50), .transition: .seconds(55)])
        _ = bench.tell(.messageAnswered)
        _ = bench.tell(.messageSent)
        #expect(bench.armed == [.message: .seconds(20), .transition: .seconds(25)])
        _ = bench.tell(.delegate(attached: false))
        #expect(bench.machine.transition != nil && bench.armed[.message] == nil, "it answers by sd_notify from now on")
        #expect(bench.armed == [.transition: .seconds(5)])
    }

    @Test("A user waits for an app that hangs in a message no longer than for an app that does not answer")
    func comesToForeground() throws {
        var bench = try busy()
        _ = bench.tell(.messageAnswered)
        _ = try bench.ask(.background)
        bench.answerEverything()
        _ = bench.tell(.messageSent)
        #expect(try bench.ask(.foreground) == [.tell(.willEnterForeground)])
        #expect(bench.armed == [.message: .seconds(20), .transition: .seconds(5)])
        let missed = Action.report(.missed(.transition, .enteringForeground))
        #expect(bench.advance(.seconds(5)) == [missed, .entered(.inactive), .tell(.didBecomeActive)])
        // Neither more time for the message nor another message delays it.
        _ = bench.tell(.messagePending(.seconds(50)))
        #expect(bench.armed[.transition] == .seconds(5))
        _ = bench.tell(.messageAnswered)
        _ = bench.tell(.messageSent)
        #expect(bench.armed == [.message: .seconds(20), .transition: .seconds(5)])
        #expect(bench.advance(.seconds(5)) == [missed, .entered(.active)])
        #expect(bench.advance(.seconds(15)) == [.report(.messageMissed)])
        #expect(bench.machine.state == .active && bench.machine.endingReason == nil)
    }

    @Test("A URL that is sent before didBecomeActive does not use up its time, if a miss would end the app")
    func before() throws {
        var bench = try busy { $0.onMissedTransition = .end }
        _ = bench.tell(.messageAnswered)
        _ = try bench.ask(.interrupt(begin: true))
        _ = bench.tell(.answered(.willResignActive))
        #expect(try bench.ask(.interrupt(begin: false)) == [.tell(.didBecomeActive)])
        #expect(bench.armed == [.transition: .seconds(5)])
        _ = bench.tell(.messageSent)
        #expect(bench.armed == [.message: .seconds(20), .transition: .seconds(25)])
    }

    @Test("The next torpord knows the deadline of a queued message, and moves it when it learns what is open")
    func takenOver() throws {
        var bench = try busy()
        _ = try bench.ask(.background)
        bench.machine = try #require(Record.again(bench.machine))
        #expect(bench.armed == [.transition: .seconds(25)])
        bench.now += .seconds(2)
        _ = bench.tell(.messageSent)
        #expect(bench.armed == [.message: .seconds(20), .transition: .seconds(25)])
    }

    @Test("A person who suspends it in the background waits no longer, and on_missed_transition = end does not end it")
    func savingAgain() throws {
        var bench = try busy { $0.onMissedTransition = .end }
        _ = bench.tell(.messageAnswered)
        _ = try bench.ask(.background)
        bench.answerEverything()
        _ = bench.tell(.messageSent)
        #expect(try bench.ask(.suspend) == [.tell(.didEnterBackground)])
        #expect(bench.armed[.transition] == .seconds(5) && bench.machine.isAboutToSuspend)
        #expect(bench.advance(.seconds(5)).last == .stopProcesses && bench.machine.endingReason == nil)
        // It is resumed in the middle of the message.
        _ = bench.tell(.stopConfirmed)
        bench.now += .seconds(100)
        #expect(try bench.ask(.resume) == [.continueProcesses, .entered(.background), .tell(.resumed)])
        #expect(bench.armed[.message] == .seconds(15) && bench.armed[.transition] == .seconds(20))
    }

    @Test("The same holds for messages about scenes")
    func scenes() throws {
        var bench = Bench { rules in
            rules.readiness = .delegate
            rules.hasScenes = true
            rules.messageDeadline = .seconds(20)
        }
        _ = try bench.ask(.scene(1, .active))
        _ = bench.machine.permitLaunch(now: bench.now)
        _ = bench.tell(.launched)
        _ = bench.tell(.delegate(attached: true))
        for message in [Message.willFinishLaunching, .restoreState, .didFinishLaunching] {
            _ = bench.tell(.answered(message))
        }
        for message in [Message.sceneWillConnect, .sceneDidBecomeActive] {
            _ = bench.tell(.scene(1, .answered(message, failed: false)))
        }
        #expect(bench.machine.state == .active)
        func left() -> Duration? { bench.machine.sceneMachines.first?.deadline.map { $0.at - bench.now } }
        _ = bench.tell(.messageSent)
        #expect(try bench.ask(.scene(1, .background)) == [.tellScene(1, .sceneWillResignActive)])
        #expect(left() == .seconds(25))
        #expect(bench.advance(.seconds(19)).isEmpty)
        _ = bench.tell(.messageAnswered)
        #expect(left() == .seconds(5))
        bench.now += .seconds(1)
        _ = bench.tell(.scene(1, .delivered(.sceneWillResignActive)))
        #expect(left() == .seconds(5))
        #expect(bench.advance(.seconds(5)).contains(.report(.sceneMissed(1, .sceneWillResignActive))))
        #expect(left() == .seconds(5), "sceneDidEnterBackground")
    }
}
