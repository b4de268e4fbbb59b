// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("Endings and restarts")
struct EndingTests {
    @Test("terminate: willTerminate, SIGTERM once answered, SIGKILL after the grace, and again every second")
    func terminate() throws {
        var bench = Bench.attentive()
        try bench.launch()
        #expect(try bench.ask(.stop(.stopped)) == [.tell(.willTerminate)])
        #expect(bench.armed == [.willTerminate: .milliseconds(2_500)])
        bench.now += .seconds(1)
        #expect(bench.tell(.answered(.willTerminate)) == [.signalStop])
        #expect(bench.armed == [.grace: .seconds(4)])
        #expect(bench.advance(.seconds(4)) == [.report(.killed), .killProcesses])
        #expect(bench.advance(.seconds(1)) == [.killProcesses])
        let ending = try bench.end(.signaled(9, coreDumped: false))
        #expect(ending.reason == .stopped && ending.next == .rest && ending.state == .active)
        #expect(bench.armed.isEmpty)
    }

    @Test("a launch that failed is tried again, one that was refused for good is not")
    func refused() throws {
        for event in [AppEvent.launchFailed, .launchRefused] {
            var bench = Bench.attentive { $0.restart = .always }
            _ = try bench.ask(.start(background: false))
            _ = bench.machine.permitLaunch(now: bench.now)
            let ending = try #require(bench.tell(event).ending)
            #expect(ending.reason == .launchFailed)
            #expect((ending.next == .rest) == (event == .launchRefused))
            #expect((bench.machine.goal == .notRunning) == (event == .launchRefused))
        }
        // It comes too late for a process.
        var bench = Bench.attentive()
        try bench.launch()
        #expect(bench.tell(.launchRefused).isEmpty)
        #expect(bench.machine.goal == .active)
    }

    @Test("what must be done before a launch does not count against its deadline")
    func held() throws {
        var bench = Bench.attentive()
        _ = try bench.ask(.start(background: false))
        _ = bench.machine.permitLaunch(now: bench.now)
        #expect(bench.machine.deadlines.map(\.kind) == [.launch])
        #expect(bench.tell(.launchHeld).isEmpty)
        #expect(bench.machine.nextDeadline == nil)
        bench.now += .seconds(1000)
        #expect(bench.tell(.launchContinues).isEmpty)
        #expect(bench.machine.deadlines.map(\.started) == [bench.now])
        #expect(bench.machine.deadlines.map(\.kind) == [.launch])
        // It comes too late for a process.
        bench = Bench.attentive()
        try bench.launch()
        let armed = bench.machine.deadlines
        for event in [AppEvent.launchHeld, .launchContinues] { #expect(bench.tell(event).isEmpty) }
        #expect(bench.machine.deadlines == armed)
    }

    @Test("an unanswered willTerminate costs half the grace; one that was extended leaves SIGTERM the other half")
    func unanswered() throws {
        var bench = Bench.attentive()
        try bench.launch()
        _ = try bench.ask(.stop(.stopped))
        #expect(bench.advance(.milliseconds(2_500)) == [.signalStop])
        #expect(bench.armed == [.grace: .milliseconds(2_500)])
        bench = Bench.attentive()
        try bench.launch()
        _ = try bench.ask(.stop(.stopped))
        _ = bench.tell(.extendTimeout(.seconds(20)))
        bench.now += .seconds(19)
        #expect(bench.tell(.answered(.willTerminate)) == [.signalStop])
        #expect(bench.armed == [.grace: .milliseconds(2_500)])
    }

    @Test("a suspended app gets SIGTERM queued, then continues, then the grace starts")
    func terminateSuspended() throws {
        var bench = Bench.attentive()
        try bench.launch()
        try bench.suspend()
        #expect(try bench.ask(.stop(.stopped)) == [.signalStop, .continueProcesses, .entered(.background)])
        #expect(bench.armed == [.grace: .seconds(5)])
    }

    @Test("terminating overtakes suspending and launching, also before the exec is reported")
    func overtakes() throws {
        var bench = Bench.attentive()
        try bench.launch(background: true)
        _ = try bench.ask(.suspend)
        #expect(try bench.ask(.stop(.stopped)) == [.signalStop, .continueProcesses])
        #expect(bench.tell(.stopConfirmed).isEmpty)

        for (request, action) in [(Request.stop(.stopped), Action.signalStop), (.forceQuit, .killProcesses)] {
            bench = Bench.attentive()
            _ = try bench.ask(.start(background: false))
            _ = bench.machine.permitLaunch(now: bench.now)
            #expect(try bench.ask(request).isEmpty)
            #expect(bench.armed.isEmpty)
            #expect(bench.tell(.launched) == [action])
            #expect(bench.tell(.ready).isEmpty)
            #expect(try bench.end(done).next == .rest)
        }
    }

    @Test("a force quit overtakes terminating, and the reason becomes its")
    func forceQuit() throws {
        var bench = Bench.attentive()
        try bench.launch()
        _ = try bench.ask(.stop(.stopped))
        #expect(try bench.ask(.forceQuit) == [.killProcesses])
        #expect(try bench.end(done).reason == .forceQuit)
        #expect(bench.refusal(.wake(Wake())) == "is not launched by events until a user starts it")
        #expect(try bench.ask(.start(background: false)) == [.requestLaunch])
    }

    @Test("a start that comes while terminating launches when all is gone; a suspend is refused")
    func whileTerminating() throws {
        var bench = Bench()
        try bench.launch()
        _ = try bench.ask(.stop(.stopped))
        #expect(bench.refusal(.suspend) == "is ending and will not run: start it first, then suspend it")
        #expect(try bench.ask(.start(background: false)).isEmpty)
        _ = bench.tell(.mainExited(done))
        let actions = bench.tell(.allGone)
        #expect(actions.ending?.next == .relaunch)
        #expect(actions.last == .requestLaunch)
    }

    @Test("what cannot be asked is refused with a sentence, and changes nothing")
    func refusals() throws {
        var bench = Bench()
        for request in [Request.background, .suspend, .resume, .interrupt(begin: true), .interrupt(begin: false)] {
            #expect(bench.refusal(request) == "is not running: start it first")
        }
        #expect(bench.refusal(.evict) == "is not running")
        try bench.launch()
        #expect(
            bench.refusal(.resume)
                == "is active: only a suspended app is resumed; ‘background’ takes this one to the background"
        )
        _ = try bench.ask(.background)
        #expect(
            bench.refusal(.interrupt(begin: true))
                == "is not in the foreground: only an active app is interrupted; bring it there with ‘foreground’ first"
        )
    }

    @Test("evict follows its rule, rests, and events bring the app back")
    func evict() throws {
        for (rule, actions) in [
            (EvictionRule.kill, [Action.killProcesses]),
            (.terminate, [.signalStop, .continueProcesses, .entered(.background)]),
        ] {
            var bench = Bench {
                $0.eviction = rule
                $0.restart = .always
            }
            try bench.launch(background: true)
            try bench.suspend()
            #expect(try bench.ask(.evict) == actions)
            let ending = try bench.end(.signaled(9, coreDumped: false))
            #expect(ending.reason == .evicted && ending.next == .rest)
            #expect(try bench.ask(.wake(Wake())) == [.requestLaunch])
        }
        var bench = Bench { $0.eviction = .never }
        try bench.launch(background: true)
        try bench.suspend()
        #expect(bench.refusal(.evict) == "is protected from eviction (evict = \"never\")")
    }

    @Test("a SIGKILL or the OOM killer while suspended counts as evicted, any other death as itself")
    func deathWhileSuspended() throws {
        for (cause, reason) in [
            (ExitCause.signaled(9, coreDumped: false), TerminationReason.evicted), (.outOfMemory, .evicted),
            (.signaled(11, coreDumped: true), .coreDump),
        ] {
            var bench = Bench()
            try bench.launch(background: true)
            try bench.suspend()
            #expect(bench.tell(.mainExited(cause)) == [.endRemains, .continueProcesses])
            #expect(bench.tell(.allGone).ending?.reason == reason)
        }
    }

    @Test(
        "each reason has its code, its restart and its events, as in the table",
        arguments: TerminationReason.allCases
    )
    func table(reason: TerminationReason) {
        let restarted: Set<TerminationReason> = [
            .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog, .taskExpired,
            .lockWhileSuspending, .oomKill, .unknown, .memoryLimit, .unresponsive, .wakeStorm, .launchFailed,
            .gpuInBackground, .noPurposeString,
        ]
        let codes: [TerminationReason: UInt32] = [
            .launchDeadline: 0x8bad_f00d, .backgroundDeadline: 0x8bad_f00d, .watchdog: 0x8bad_f00d,
            .taskExpired: 0x8bad_f00d, .lockWhileSuspending: 0xdead_10cc, .wakeStorm: 0xbad2_2222,
            .forceQuit: 0xdead_fa11,
        ]
        #expect(reason.isFailure == restarted.contains(reason))
        #expect(reason.code == codes[reason])
        #expect(reason.allowsLaunchByEvent == ![.stopped, .forceQuit, .dependencyFailed].contains(reason))
        #expect(reason.wasAskedFor == [.stopped, .forceQuit, .evicted, .exitsOnSuspend, .shutdown].contains(reason))
    }

    @Test("restart = always, on-failure and never, by how it ended", arguments: RestartPolicy.allCases)
    func policies(policy: RestartPolicy) throws {
        for cause in [done, crash] {
            var bench = Bench { $0.restart = policy }
            try bench.launch()
            _ = try bench.end(cause)
            let restarts = policy == .always || policy == .onFailure && cause == crash
            #expect(bench.machine.isWaitingToLaunch == restarts)
        }
        for reason in [TerminationReason.stopped, .shutdown, .exitsOnSuspend] {
            var bench = Bench { $0.restart = policy }
            try bench.launch()
            _ = try bench.ask(.stop(reason))
            #expect(try bench.end(done).next == .rest)
        }
        for reason in [TerminationReason.replaced, .permissionChanged, .protectedDataOpen] {
            // More often than a crash may happen.
            var bench = Bench { ($0.restart, $0.backoff.limit) = (policy, 1) }
            try bench.launch()
            for _ in 0..<3 {
                _ = try bench.ask(.stop(reason))
                let ending = try bench.end(crash)
                #expect(
                    ending.reason == reason && ending.next == .restart(after: .zero)
                        && reason.isReported != reason.isReplacement
                )
                #expect(bench.machine.remembered.ledger.isEmpty && bench.machine.remembered.restarts == 0)
                _ = bench.tell(.deadline)
                bench.comeUp()
            }
        }
    }

    @Test("an ending for cause keeps the goal and is restarted like a failure")
    func forCause() throws {
        var bench = Bench()
        try bench.launch(background: true)
        _ = try bench.ask(.stop(.memoryLimit))
        let ending = try bench.end(done)
        #expect(ending.reason == .memoryLimit && bench.machine.goal == .background)
        #expect(bench.machine.isWaitingToLaunch)
    }

    @Test("a stop while a restart waits keeps events from launching the app")
    func stopWhileDelayed() throws {
        var bench = Bench()
        try bench.launch()
        _ = try bench.end(crash)
        _ = try bench.ask(.stop(.stopped))
        #expect(bench.armed.isEmpty)
        #expect(bench.refusal(.wake(Wake())) != nil)
        try bench.launch()
        _ = bench.tell(.mainExited(crash))
        _ = try bench.ask(.stop(.stopped))
        #expect(bench.refusal(.wake(Wake())) != nil)
        #expect(bench.tell(.allGone).ending?.reason == .exitFailure)
        #expect(bench.refusal(.wake(Wake())) != nil)
    }

    @Test("delays double up to the cap, each within its jitter, and more than limit in the window fails")
    func backoff() throws {
        var bench = Bench { $0.backoff.cap = .seconds(1) }
        try bench.launch()
        for base in [100, 200, 400, 800, 1000, 1000, 1000, 1000, 1000, 1000] {
            guard case .restart(let delay) = try bench.end(crash).next else {
                Issue.record("no restart")
                return
            }
            #expect(delay >= .milliseconds(base) * 0.9 && delay <= .milliseconds(base) * 1.1)
            #expect(bench.advance(delay) == [.requestLaunch])
            _ = bench.machine.permitLaunch(now: bench.now)
            _ = bench.tell(.launched)
        }
        #expect(try bench.end(crash).next == .gaveUp)
        #expect(bench.machine.failed && bench.refusal(.wake(Wake())) != nil)
        try bench.launch()
        #expect(!bench.machine.failed)
        guard case .restart = try bench.end(crash).next else {
            Issue.record("a start did not clear what made it fail")
            return
        }
    }

    @Test("a user who starts an app that waits for its restart begins the count of restarts anew")
    func startAgain() throws {
        var bench = Bench { $0.backoff.limit = 1 }
        try bench.launch()
        for _ in 0..<3 {
            guard case .restart = try bench.end(crash).next else {
                Issue.record("it was given up")
                return
            }
            try bench.launch()
        }
    }

    @Test("stable_after counts running time, and not the time spent suspended")
    func stable() throws {
        for (running, suspended, expected) in [(4, 1000, 200), (11, 0, 100)] {
            var bench = Bench { $0.backoff.jitter = 0 }
            try bench.launch()
            _ = try bench.end(crash)
            _ = bench.advance(.milliseconds(100))
            _ = bench.machine.permitLaunch(now: bench.now)
            _ = bench.tell(.launched)
            bench.now += .seconds(running)
            try bench.suspend()
            bench.now += .seconds(suspended)
            _ = try bench.ask(.resume)
            #expect(try bench.end(crash).next == .restart(after: .milliseconds(expected)))
        }
    }

    @Test("a restart resets the delays like a stop and a start, and one for a dependency does after a stable run")
    func restartResets() throws {
        func delay(_ seconds: Int, _ request: (inout Bench) throws -> Void) throws -> Ending.Next {
            var bench = Bench { $0.backoff.jitter = 0 }
            try bench.launch()
            for delay in [100, 200, 400] {
                #expect(try bench.end(crash).next == .restart(after: .milliseconds(delay)))
                _ = bench.advance(.milliseconds(delay))
                bench.comeUp()
            }
            bench.now += .seconds(seconds)
            try request(&bench)
            bench.comeUp()
            return try bench.end(crash).next
        }
        for seconds in [1, 11] {
            let next = try delay(seconds) { bench in
                _ = try bench.ask(.restart)
                #expect(try bench.end(done).next == .relaunch)
            }
            #expect(next == .restart(after: .milliseconds(100)))
        }
        for (seconds, expected) in [(1, 800), (11, 100)] {
            let next = try delay(seconds) { bench in
                _ = try bench.ask(.stop(.stopped))
                _ = bench.machine.launch(foreground: true, reason: .dependency, now: bench.now)
                #expect(try bench.end(done).next == .relaunch)
            }
            #expect(next == .restart(after: .milliseconds(expected)))
        }
    }

    @Test("exits_on_suspend: the way into the background is the way out, and events wait")
    func exitsOnSuspend() throws {
        var bench = Bench { $0.exitsOnSuspend = true }
        #expect(bench.refusal(.wake(Wake()))?.hasSuffix("the event waits") == true)
        try bench.launch(background: true)
        #expect(bench.machine.state == .active)
        #expect(
            try bench.ask(.suspend) == [
                .tell(.willResignActive), .entered(.inactive), .tell(.willTerminate), .signalStop,
            ]
        )
        let ending = try bench.end(done)
        #expect(ending.reason == .exitsOnSuspend && ending.next == .rest)
    }

    @Test("a oneshot is up once it exits with success")
    func oneshot() throws {
        var bench = Bench {
            $0.isOneshot = true
            $0.restart = .always
        }
        _ = try bench.ask(.start(background: false))
        _ = bench.machine.permitLaunch(now: bench.now)
        _ = bench.tell(.launched)
        _ = bench.tell(.ready)
        #expect(bench.machine.transition == .launching && !bench.machine.isUp)
        #expect(try bench.end(done).next == .rest)
        #expect(bench.machine.isUp && bench.machine.state == .notRunning)
    }
}

@Suite("Clocks")
struct ClockTests {
    @Test("the watchdog is armed at ready, off while stopped, whole again on resume")
    func watchdog() throws {
        var bench = Bench.attentive { $0.watchdog = .seconds(10) }
        _ = try bench.ask(.start(background: true))
        _ = bench.machine.permitLaunch(now: bench.now)
        _ = bench.tell(.launched)
        #expect(bench.armed[.watchdog] == nil)
        _ = bench.tell(.ready)
        bench.answerEverything()
        bench.now += .seconds(4)
        #expect(bench.armed[.watchdog] == .seconds(6))
        _ = bench.tell(.extendTimeout(.seconds(20)))
        #expect(bench.armed[.watchdog] == .seconds(6))
        _ = try bench.ask(.suspend)
        #expect(bench.armed[.watchdog] == nil)
        _ = bench.tell(.stopConfirmed)
        #expect(bench.tell(.heartbeat).isEmpty && bench.tell(.watchdogTriggered).isEmpty)
        #expect(bench.armed.isEmpty)
        _ = try bench.ask(.resume)
        bench.answerEverything()
        #expect(bench.armed[.watchdog] == .seconds(10))
        _ = bench.tell(.watchdogInterval(.seconds(2)))
        #expect(bench.advance(.seconds(2)) == [.signalWatchdog])
        #expect(bench.armed == [.grace: .seconds(5)])
        #expect(bench.advance(.seconds(5)) == [.report(.killed), .killProcesses])
        #expect(try bench.end(.signaled(6, coreDumped: true)).reason == .watchdog)
    }

    @Test("WATCHDOG=trigger fires it, and an abandoned suspend arms it again")
    func trigger() throws {
        var bench = Bench { $0.watchdog = .seconds(10) }
        try bench.launch(background: true)
        _ = try bench.ask(.suspend)
        #expect(try bench.ask(.wake(Wake())) == [.continueProcesses])
        #expect(bench.armed == [.watchdog: .seconds(10), .backgroundTime: .seconds(30)])
        #expect(bench.tell(.watchdogTriggered) == [.signalWatchdog])
    }

    @Test("EXTEND_TIMEOUT extends the edge up to its limit, and never shortens it")
    func extend() throws {
        for (limit, most) in [(nil, 50), (Duration.seconds(20), 20)] {
            var bench = Bench.attentive { $0.extensionLimit = limit }
            try bench.launch()
            _ = try bench.ask(.background)
            _ = bench.tell(.extendTimeout(.seconds(1)))
            #expect(bench.armed == [.transition: .seconds(5)])
            _ = bench.tell(.extendTimeout(.seconds(12)))
            #expect(bench.armed == [.transition: .seconds(12)])
            _ = bench.tell(.extendTimeout(.seconds(1_000)))
            #expect(bench.armed == [.transition: .seconds(most)])
        }
    }

    @Test("a traced app has no deadlines, and gets only its own time back")
    func traced() throws {
        var bench = Bench.attentive { $0.watchdog = .seconds(10) }
        #expect(bench.tell(.traced(true)).isEmpty && !bench.machine.isTraced)
        try bench.launch()
        _ = try bench.ask(.background)
        bench.now += .seconds(2)
        _ = bench.tell(.traced(true))
        #expect(bench.machine.isTraced && bench.machine.nextDeadline == nil)
        bench.now += .seconds(50)
        #expect(bench.tell(.deadline).isEmpty)
        _ = bench.tell(.heartbeat)
        bench.now += .seconds(50)
        _ = bench.tell(.traced(false))
        #expect(bench.armed == [.transition: .seconds(3), .watchdog: .seconds(10)])
    }

    @Test("a suspended app that is found running is stopped three times, then left running and reported")
    func foundRunning() throws {
        var bench = Bench()
        try bench.launch(background: true)
        try bench.suspend()
        for time in 1...3 {
            #expect(bench.tell(.foundRunning) == [.report(.stoppedAgain(time)), .stopProcesses])
        }
        #expect(bench.tell(.foundRunning) == [.report(.keepsRunning), .continueProcesses, .entered(.background)])
        #expect(bench.machine.goal == .background)
    }

    @Test("STOPPING=1 starts the grace and the exit tells the reason")
    func stopping() throws {
        var bench = Bench { $0.watchdog = .seconds(10) }
        try bench.launch(background: true)
        _ = try bench.ask(.suspend)
        #expect(bench.tell(.stopping) == [.continueProcesses])
        #expect(bench.armed == [.grace: .seconds(5)])
        #expect(try bench.end(done).reason == .exitSuccess)
    }

    @Test("an event grants event_time, whether it wakes or launches")
    func eventTime() throws {
        var bench = Bench.attentive()
        _ = try bench.ask(.wake(Wake()))
        _ = bench.machine.permitLaunch(now: bench.now)
        _ = bench.tell(.launched)
        _ = bench.tell(.ready)
        #expect(try bench.ask(.suspend).isEmpty)
        #expect(try bench.ask(.wake(Wake())).isEmpty)
        bench.answerEverything()
        #expect(bench.armed == [.backgroundTime: .seconds(30)])
        try bench.suspend()
        _ = try bench.ask(.wake(Wake()))
        bench.answerEverything()
        #expect(bench.armed == [.backgroundTime: .seconds(30)])
    }
}
