// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("Edges")
struct EdgeTests {
    @Test("a launch goes through inactive to active, and is under the launch deadline until ready")
    func launch() throws {
        var bench = Bench.attentive()
        #expect(try bench.ask(.start(background: false)) == [.requestLaunch])
        #expect(bench.machine.isWaitingForPermission)
        let order = bench.machine.permitLaunch(now: bench.now)
        guard case .launch(let launch) = order.first else {
            Issue.record("no launch: \(order)")
            return
        }
        #expect(launch.incarnation == 1 && launch.foreground && launch.reason == .user)
        #expect(launch.previousEnding == nil)
        #expect(bench.machine.transition == .launching)
        #expect(bench.machine.state == .notRunning)
        #expect(bench.armed == [.launch: .seconds(5)])
        #expect(bench.tell(.launched) == [.entered(.inactive)])
        #expect(bench.machine.permitLaunch(now: bench.now).isEmpty)
        bench.now += .seconds(2)
        #expect(bench.tell(.ready) == [.tell(.didBecomeActive)])
        #expect(bench.machine.transition == .activating)
        #expect(bench.armed == [.transition: .seconds(5)])
        #expect(bench.tell(.answered(.didEnterBackground)).isEmpty)
        #expect(bench.tell(.answered(.didBecomeActive)) == [.entered(.active)])
        #expect(bench.machine.transition == nil)
        #expect(bench.armed.isEmpty)
    }

    @Test("an unaware app is ready with its exec and answers everything at once")
    func unaware() throws {
        var bench = Bench()
        _ = try bench.ask(.start(background: false))
        _ = bench.machine.permitLaunch(now: bench.now)
        #expect(bench.tell(.launched) == [.entered(.inactive), .tell(.didBecomeActive), .entered(.active)])
        #expect(
            try bench.ask(.suspend) == [
                .tell(.willResignActive), .entered(.inactive), .tell(.didEnterBackground), .entered(.background),
                .stopProcesses,
            ]
        )
        #expect(bench.tell(.stopConfirmed) == [.entered(.suspended)])
        #expect(
            try bench.ask(.foreground) == [
                .continueProcesses, .entered(.background), .tell(.resumed), .tell(.willEnterForeground),
                .entered(.inactive), .tell(.didBecomeActive), .entered(.active),
            ]
        )
    }

    @Test("READY that comes before the exec is reported counts when it is")
    func earlyReady() throws {
        var bench = Bench.attentive()
        _ = try bench.ask(.start(background: false))
        _ = bench.machine.permitLaunch(now: bench.now)
        #expect(bench.tell(.ready).isEmpty)
        #expect(bench.tell(.launched) == [.entered(.inactive), .tell(.didBecomeActive)])
    }

    @Test("a background launch is told didEnterBackground under a deadline of its own")
    func backgroundLaunch() throws {
        var bench = Bench.attentive()
        _ = try bench.ask(.start(background: true))
        _ = bench.machine.permitLaunch(now: bench.now)
        #expect(bench.tell(.launched) == [.entered(.background)])
        #expect(bench.armed == [.launch: .seconds(5)])
        #expect(bench.tell(.ready) == [.tell(.didEnterBackground)])
        #expect(bench.machine.transition == .enteringBackground)
        #expect(bench.armed == [.background: .seconds(5)])
        #expect(bench.tell(.answered(.didEnterBackground)).isEmpty)
        #expect(bench.machine.state == .background)
        #expect(bench.armed == [.backgroundTime: .seconds(5)])
        #expect(bench.advance(.seconds(5)) == [.report(.backgroundTimeUsed)])
        #expect(bench.machine.state == .background)
        #expect(bench.armed.isEmpty)
    }

    @Test("a missed launch deadline ends the app and restarts it")
    func launchDeadline() throws {
        var bench = Bench.attentive()
        _ = try bench.ask(.start(background: false))
        _ = bench.machine.permitLaunch(now: bench.now)
        _ = bench.tell(.launched)
        #expect(bench.advance(.milliseconds(4_999)).isEmpty)
        #expect(bench.advance(.milliseconds(1)) == [.signalStop])
        #expect(bench.tell(.ready).isEmpty)
        #expect(bench.armed == [.grace: .seconds(5)])
        let ending = try bench.end(.signaled(15, coreDumped: false))
        #expect(ending.reason == .launchDeadline)
        #expect(ending.transition == .launching)
        #expect(ending.state == .inactive)
        #expect(bench.machine.isWaitingToLaunch)
    }

    @Test("a missed background deadline ends the app, on either way into the background")
    func backgroundDeadline() throws {
        for background in [true, false] {
            var bench = Bench.attentive()
            if background {
                _ = try bench.ask(.start(background: true))
                _ = bench.machine.permitLaunch(now: bench.now)
                _ = bench.tell(.launched)
                #expect(bench.tell(.ready) == [.tell(.didEnterBackground)])
            } else {
                try bench.launch()
                _ = try bench.ask(.background)
                #expect(bench.armed == [.transition: .seconds(5)])
                bench.now += .seconds(3)
                #expect(
                    bench.tell(.answered(.willResignActive)) == [.entered(.inactive), .tell(.didEnterBackground)]
                )
            }
            #expect(bench.armed == [.background: .seconds(5)])
            #expect(bench.advance(.seconds(5)) == [.signalStop])
            #expect(try bench.end(done).reason == .backgroundDeadline)
        }
    }

    @Test("a missed transition deadline is reported and the edge goes on")
    func transitionGoesOn() throws {
        var bench = Bench.attentive()
        try bench.launch()
        _ = try bench.ask(.background)
        #expect(
            bench.advance(.seconds(5)) == [
                .report(.missed(.transition, .enteringBackground)), .entered(.inactive), .tell(.didEnterBackground),
            ]
        )
        #expect(bench.tell(.answered(.willResignActive)).isEmpty)
        _ = bench.tell(.answered(.didEnterBackground))
        #expect(try bench.ask(.foreground) == [.tell(.willEnterForeground)])
        #expect(
            bench.advance(.seconds(5)) == [
                .report(.missed(.transition, .enteringForeground)), .entered(.inactive), .tell(.didBecomeActive),
            ]
        )
        #expect(
            bench.advance(.seconds(5)) == [.report(.missed(.transition, .enteringForeground)), .entered(.active)]
        )
    }

    @Test("on_missed_transition = end makes it an ending as unresponsive")
    func transitionEnds() throws {
        var bench = Bench.attentive { $0.onMissedTransition = .end }
        try bench.launch()
        _ = try bench.ask(.interrupt(begin: true))
        #expect(bench.advance(.seconds(5)) == [.report(.missed(.transition, .deactivating)), .signalStop])
        let ending = try bench.end(done)
        #expect(ending.reason == .unresponsive)
        #expect(ending.transition == .deactivating)
    }

    @Test("an interrupted app goes to the background without resigning again")
    func interruptedToBackground() throws {
        var bench = Bench.attentive()
        try bench.launch()
        #expect(try bench.ask(.interrupt(begin: true)) == [.tell(.willResignActive)])
        #expect(bench.armed == [.transition: .seconds(5)])
        #expect(bench.tell(.answered(.willResignActive)) == [.entered(.inactive)])
        #expect(try bench.ask(.background) == [.tell(.didEnterBackground)])
        #expect(bench.armed == [.background: .seconds(5)])
        #expect(bench.tell(.answered(.didEnterBackground)) == [.entered(.background)])
    }

    @Test("interrupts nest and are counted")
    func nested() throws {
        var bench = Bench()
        try bench.launch()
        #expect(try bench.ask(.interrupt(begin: true)) == [.tell(.willResignActive), .entered(.inactive)])
        #expect(try bench.ask(.interrupt(begin: true)).isEmpty)
        #expect(bench.machine.interruptions == 2)
        #expect(try bench.ask(.interrupt(begin: false)).isEmpty)
        #expect(bench.machine.goal == .active)
        #expect(try bench.ask(.interrupt(begin: false)) == [.tell(.didBecomeActive), .entered(.active)])
        #expect(bench.refusal(.interrupt(begin: false)) == "is not interrupted: there is nothing to end")
    }

    @Test("an interrupt that begins while the app launches leaves it inactive")
    func interruptedLaunch() throws {
        var bench = Bench.attentive()
        _ = try bench.ask(.start(background: false))
        _ = bench.machine.permitLaunch(now: bench.now)
        _ = bench.tell(.launched)
        #expect(try bench.ask(.interrupt(begin: true)).isEmpty)
        #expect(bench.tell(.ready).isEmpty)
        #expect(bench.machine.state == .inactive)
        #expect(try bench.ask(.interrupt(begin: false)) == [.tell(.didBecomeActive)])
    }

    @Test("suspending is under its deadline; a miss continues the app and is reported, not an end")
    func suspendDeadline() throws {
        var bench = Bench()
        try bench.launch(background: true)
        #expect(try bench.ask(.suspend) == [.stopProcesses])
        #expect(bench.machine.transition == .suspending)
        #expect(bench.machine.state == .background)
        #expect(bench.armed == [.suspend: .seconds(2)])
        #expect(bench.advance(.seconds(2)) == [.report(.suspendFailed), .continueProcesses])
        #expect(bench.machine.state == .background)
        #expect(bench.machine.transition == nil)
        #expect(bench.machine.goal == .background)
        #expect(bench.tell(.stopConfirmed).isEmpty)
    }

    @Test("resuming continues first, then tells resumed with the gap, under the transition deadline")
    func resume() throws {
        var bench = Bench.attentive()
        try bench.launch(background: true)
        try bench.suspend()
        #expect(bench.machine.state == .suspended)
        #expect(bench.armed.isEmpty)
        #expect(bench.machine.nextDeadline == nil)
        bench.now += .seconds(3600)
        #expect(try bench.ask(.resume) == [.continueProcesses, .entered(.background), .tell(.resumed)])
        #expect(bench.machine.lastGap == .seconds(3600))
        #expect(bench.armed == [.transition: .seconds(5)])
        #expect(bench.tell(.answered(.resumed)).isEmpty)
        #expect(bench.armed == [.backgroundTime: .seconds(5)])
    }

    @Test("a missed answer to resumed goes on, reported")
    func resumeMissed() throws {
        var bench = Bench.attentive()
        try bench.launch(background: true)
        try bench.suspend()
        _ = try bench.ask(.foreground)
        #expect(
            bench.advance(.seconds(5)) == [.report(.missed(.transition, .resuming)), .tell(.willEnterForeground)]
        )
    }

    @Test("a deadline of none is never armed")
    func noDeadlines() throws {
        var bench = Bench.attentive { rules in
            rules.launchDeadline = nil
            rules.transitionDeadline = nil
            rules.backgroundDeadline = nil
            rules.suspendDeadline = nil
            rules.grace = nil
            rules.backgroundTime = nil
        }
        _ = try bench.ask(.start(background: false))
        _ = bench.machine.permitLaunch(now: bench.now)
        #expect(bench.machine.nextDeadline == nil)
        _ = bench.tell(.launched)
        _ = bench.tell(.ready)
        #expect(bench.machine.nextDeadline == nil)
        _ = bench.tell(.answered(.didBecomeActive))
        _ = try bench.ask(.suspend)
        #expect(bench.machine.nextDeadline == nil)
        bench.answerEverything()
        #expect(bench.machine.transition == .suspending)
        #expect(bench.machine.nextDeadline == nil)
        _ = try bench.ask(.stop(.stopped))
        #expect(bench.machine.nextDeadline == nil)
    }

    @Test("only the messages that the app answers are waited for")
    func awaited() throws {
        var bench = Bench { $0.answeredMessages = [.didEnterBackground] }
        try bench.launch()
        #expect(
            try bench.ask(.background) == [.tell(.willResignActive), .entered(.inactive), .tell(.didEnterBackground)]
        )
        #expect(bench.tell(.answered(.willResignActive)).isEmpty)
        #expect(bench.tell(.answered(.didEnterBackground)) == [.entered(.background)])
    }

    @Test("an edge in flight is finished before a newer goal is walked to")
    func newerGoalWaits() throws {
        var bench = Bench.attentive()
        try bench.launch()
        _ = try bench.ask(.background)
        let generation = bench.machine.goalGeneration
        #expect(try bench.ask(.foreground).isEmpty)
        #expect(bench.machine.goalGeneration == generation + 1)
        #expect(bench.tell(.answered(.willResignActive)) == [.entered(.inactive), .tell(.didEnterBackground)])
        #expect(
            bench.tell(.answered(.didEnterBackground)) == [.entered(.background), .tell(.willEnterForeground)]
        )
    }

    @Test("suspend or background asked of a launching app waits for ready")
    func suspendWhileLaunching() throws {
        for request in [Request.suspend, .background] {
            var bench = Bench.attentive()
            _ = try bench.ask(.start(background: false))
            _ = bench.machine.permitLaunch(now: bench.now)
            #expect(try bench.ask(request).isEmpty)
            #expect(bench.tell(.launched) == [.entered(.inactive)])
            #expect(bench.tell(.ready) == [.tell(.didEnterBackground)])
            let after = bench.tell(.answered(.didEnterBackground))
            #expect(after == [.entered(.background)] + (request == .suspend ? [.stopProcesses] : []))
        }
    }

    @Test("a restarted app that is to sleep has its background time first, where it does not say that it is ready")
    func settlesIn() throws {
        for readiness in [Readiness.exec, .probe, .notify] {
            var bench = Bench { $0.readiness = readiness }
            try bench.launch(background: true)
            try bench.suspend()
            // By a person, who sees it suspended at once if that is what is asked for again.
            for again in [false, true] {
                _ = try bench.ask(.restart)
                _ = bench.tell(.mainExited(.exited(code: 0)))
                _ = bench.tell(.allGone)
                _ = bench.machine.permitLaunch(now: bench.now)
                _ = bench.tell(.launched)
                _ = bench.tell(.ready)
                #expect(bench.machine.goal == .suspended)
                guard readiness != .notify else {
                    #expect(bench.machine.transition == .suspending)
                    continue
                }
                #expect(bench.machine.state == .background && bench.machine.transition == nil)
                #expect(bench.armed == [.backgroundTime: .seconds(5)])
                #expect(bench.advance(.milliseconds(4_999)).isEmpty)
                if again {
                    #expect(try bench.ask(.suspend) == [.stopProcesses])
                } else {
                    #expect(bench.advance(.milliseconds(1)) == [.stopProcesses])
                    #expect(bench.tell(.stopConfirmed) == [.entered(.suspended)])
                }
            }
        }
    }

    @Test("held when that time is over, it is suspended when nothing holds it; where that has no limit, after 5 s")
    func settlesInLater() throws {
        var bench = Bench()
        try bench.launch(background: true)
        try bench.suspend()
        func restart(_ bench: inout Bench) throws {
            _ = try bench.ask(.restart)
            _ = bench.tell(.mainExited(.exited(code: 0)))
            _ = bench.tell(.allGone)
            _ = bench.machine.permitLaunch(now: bench.now)
            _ = bench.tell(.launched)
        }
        try restart(&bench)
        _ = try bench.ask(.hold(reason: "look", until: nil))
        #expect(bench.advance(.seconds(5)).isEmpty)
        #expect(bench.machine.state == .background)
        #expect(try bench.ask(.release) == [.stopProcesses])
        var without = Bench { $0.backgroundTime = nil }
        try without.launch(background: true)
        try without.suspend()
        try restart(&without)
        #expect(without.armed == [.backgroundTime: .seconds(5)])
        #expect(without.advance(.seconds(5)) == [.stopProcesses])
    }

    @Test("an app that could not be woken yet stays awake for a while, and is then stopped; a goal in between counts")
    func settles() throws {
        var bench = Bench { $0.readiness = .notify }
        try bench.launch(background: true)
        #expect(bench.tell(.settles(.seconds(1))).isEmpty, "it is not about to be stopped")
        #expect(try bench.ask(.suspend) == [.stopProcesses])
        for _ in 0..<3 {
            #expect(bench.tell(.settles(.seconds(1))) == [.continueProcesses])
            #expect(bench.machine.state == .background && bench.machine.goal == .suspended)
            #expect(bench.armed == [.backgroundTime: .seconds(1)])
            #expect(bench.advance(.seconds(1)) == [.stopProcesses])
        }
        _ = bench.tell(.settles(.seconds(1)))
        _ = try bench.ask(.resume)
        #expect(bench.advance(.seconds(1)) == [.report(.backgroundTimeUsed)])
        #expect(bench.machine.state == .background && bench.machine.transition == nil)
        _ = try bench.ask(.forceSuspend)
        #expect(bench.tell(.settles(.seconds(1))).isEmpty, "it is stopped all the same")
        #expect(bench.tell(.stopConfirmed) == [.entered(.suspended)])
    }

    @Test("an app that exits before it is ready has failed, even with status 0", arguments: [Readiness.notify, .probe])
    func unready(_ readiness: Readiness) throws {
        var bench = Bench {
            $0.readiness = readiness
            $0.backoff.jitter = 0
        }
        _ = try bench.ask(.start(background: true))
        _ = bench.machine.permitLaunch(now: bench.now)
        _ = bench.tell(.launched)
        let ending = try bench.end(done)
        #expect(ending.reason == .exitFailure && ending.next == .restart(after: .milliseconds(100)))
        var ready = Bench { $0.readiness = readiness }
        try ready.launch(background: true)
        #expect(try ready.end(done).reason == .exitSuccess)
        var oneshot = Bench {
            $0.readiness = readiness
            $0.isOneshot = true
        }
        _ = try oneshot.ask(.start(background: true))
        _ = oneshot.machine.permitLaunch(now: oneshot.now)
        _ = oneshot.tell(.launched)
        #expect(try oneshot.end(done).reason == .exitSuccess)
    }
}
