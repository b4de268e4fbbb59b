// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Lifecycle

@Suite("What is remembered of an app")
struct RememberedTests {
    private let second = Duration.seconds(1)

    private func launch(_ machine: inout AppMachine, at now: Duration = .zero) {
        _ = machine.permitLaunch(now: now)
        _ = machine.handle(.launched, now: now)
    }

    private func end(_ machine: inout AppMachine, _ cause: ExitCause, at now: Duration) {
        _ = machine.handle(.mainExited(cause), now: now)
        _ = machine.handle(.allGone, now: now)
    }

    @Test("a failed app that a user stops is stopped, and has all its restarts again when it is launched")
    func stopOfFailed() throws {
        var bench = Bench { $0.backoff.limit = 1 }
        try bench.launch()
        _ = try bench.end(crash)
        _ = bench.advance(.seconds(1))
        bench.comeUp()
        #expect(try bench.end(crash).next == .gaveUp)
        // The end of the supervisor does not make a failed app a stopped one.
        _ = try bench.ask(.stop(.shutdown))
        #expect(bench.machine.failed && !bench.machine.isStopped)
        _ = try bench.ask(.stop(.stopped))
        #expect(!bench.machine.failed && bench.machine.isStopped && !bench.machine.isDown)
        #expect(!bench.machine.allowsLaunchByEvent && bench.refusal(.wake(Wake())) != nil)
        #expect(bench.machine.remembered.ledger.isEmpty && !bench.machine.remembered.failed)
        #expect(bench.machine.launch(foreground: true, reason: .dependency, now: bench.now) == [.requestLaunch])
        bench.comeUp()
        guard case .restart = try bench.end(crash).next else {
            Issue.record("it is given up at once")
            return
        }
    }

    @Test("a stop is a person's as soon as it is asked for, and until the next start")
    func stopped() throws {
        var machine = AppMachine(rules: AppRules())
        #expect(!machine.isStopped && !machine.isForceQuit)
        _ = machine.launch(foreground: true, reason: .user, now: .zero)
        launch(&machine)
        #expect(!machine.isStopped)
        _ = try machine.request(.stop(.stopped), now: second)
        #expect(machine.isStopped && machine.state == .active)
        end(&machine, .exited(code: 0), at: second)
        #expect(machine.isStopped)
        _ = try machine.request(.start(background: false), now: second)
        #expect(!machine.isStopped)
    }

    @Test("a restart, a shutdown and an end of its own are no person's stop")
    func notStopped() throws {
        for (request, cause) in [
            (Request.restart, nil), (.stop(.shutdown), nil), (nil, ExitCause.exited(code: 0)),
        ] {
            var machine = AppMachine(rules: AppRules())
            _ = machine.launch(foreground: true, reason: .user, now: .zero)
            launch(&machine)
            if let request { _ = try machine.request(request, now: second) }
            #expect(!machine.isStopped && !machine.isForceQuit)
            end(&machine, cause ?? .signaled(15, coreDumped: false), at: second)
            #expect(!machine.isStopped && !machine.isForceQuit)
        }
    }

    @Test(
        "a restart that a shutdown cuts short is no person's stop, however far it has come",
        arguments: [false, true]
    )
    func restartCutShort(hasEnded: Bool) throws {
        for requests in [[Request.restart], [.stop(.stopped), .start(background: false)]] {
            var machine = AppMachine(rules: AppRules())
            _ = machine.launch(foreground: true, reason: .user, now: .zero)
            launch(&machine)
            for request in requests { _ = try machine.request(request, now: second) }
            if hasEnded { end(&machine, .exited(code: 0), at: second) }
            #expect(machine.state == (hasEnded ? .notRunning : .active) && machine.isWaitingToLaunch)
            _ = try machine.request(.stop(.shutdown), now: second)
            #expect(!machine.isStopped)
            if !hasEnded { end(&machine, .exited(code: 0), at: second) }
            #expect(!machine.isStopped && machine.state == .notRunning && !machine.isWaitingToLaunch)
            #expect(machine.remembered.lastEnding == .shutdown)
        }
    }

    @Test("a stop that was asked for before a shutdown stays one") func stoppedBeforeShutdown() throws {
        var machine = AppMachine(rules: AppRules())
        _ = machine.launch(foreground: true, reason: .user, now: .zero)
        launch(&machine)
        for request in [Request.restart, .stop(.stopped), .stop(.shutdown)] {
            _ = try machine.request(request, now: second)
        }
        #expect(machine.isStopped)
        end(&machine, .exited(code: 0), at: second)
        #expect(machine.isStopped)
    }

    @Test("a force quit is remembered as one, also where nothing ran")
    func forceQuit() throws {
        var resting = AppMachine(rules: AppRules())
        _ = try resting.request(.forceQuit, now: .zero)
        #expect(resting.isForceQuit && !resting.isStopped)
        var machine = AppMachine(rules: AppRules())
        _ = machine.launch(foreground: true, reason: .user, now: .zero)
        launch(&machine)
        _ = try machine.request(.forceQuit, now: second)
        #expect(machine.isForceQuit)
    }

    @Test("the restart ledger goes on: one more within the window gives up")
    func ledger() {
        var rules = AppRules()
        rules.backoff.limit = 3
        rules.backoff.window = .seconds(300)
        var app = RememberedApp()
        app.incarnation = 7
        app.restarts = 3
        app.ledger = [.seconds(-400), .seconds(-100), .seconds(-50)]
        var machine = AppMachine(rules: rules)
        machine.remember(app)
        #expect(machine.remembered == app)
        _ = machine.launch(foreground: true, reason: .boot, now: second)
        launch(&machine, at: second)
        #expect(machine.incarnation == 8)
        end(&machine, .exited(code: 1), at: .seconds(2))
        #expect(machine.restarts == 4 && !machine.failed, "the oldest is out of its window")
        _ = machine.handle(.deadline, now: .seconds(10))
        launch(&machine, at: .seconds(10))
        end(&machine, .exited(code: 1), at: .seconds(11))
        #expect(machine.failed)
    }

    @Test("a failed one stays so, and no event launches it, until it is reset or started")
    func failed() throws {
        var app = RememberedApp()
        app.failed = true
        app.lastEnding = .exitFailure
        var machine = AppMachine(rules: AppRules())
        machine.remember(app)
        #expect(machine.failed && !machine.allowsLaunchByEvent)
        #expect(throws: RequestError.self) { try machine.request(.wake(Wake()), now: .zero) }
        _ = try machine.request(.start(background: true), now: .zero)
        #expect(!machine.failed)
    }

    @Test("what was asked for before it is remembered stands, and only the numbers go on")
    func overtaken() throws {
        var app = RememberedApp()
        app.incarnation = 7
        app.failed = true
        app.lastEnding = .stopped
        var machine = AppMachine(rules: AppRules())
        _ = try machine.request(.start(background: false), now: .zero)
        machine.remember(app)
        #expect(!machine.failed && machine.goal == .active && machine.lastEnding == nil)
        launch(&machine)
        #expect(machine.incarnation == 8)
        machine.remember(app)
        #expect(machine.incarnation == 8 && machine.state == .active)
    }
}
