// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Lifecycle

@Suite("Events that wake")
struct WakeTests {
    @Test("A sleeping app that an event woke sleeps again when its time is over")
    func sleepsAgain() throws {
        var bench = Bench()
        try bench.launch(background: true)
        try bench.suspend()
        #expect(try bench.ask(.wake(Wake())) == [.continueProcesses, .entered(.background), .tell(.resumed)])
        #expect(bench.advance(.seconds(29)).isEmpty)
        #expect(bench.advance(.seconds(1)) == [.report(.sleepsAgain), .tell(.didEnterBackground), .stopProcesses])
        #expect(bench.machine.goal == .suspended)
    }

    @Test("One that somebody wants in the background meanwhile stays there")
    func staysWhenAsked() throws {
        var bench = Bench()
        try bench.launch(background: true)
        try bench.suspend()
        _ = try bench.ask(.wake(Wake()))
        _ = try bench.ask(.background)
        #expect(bench.advance(.seconds(30)) == [.report(.backgroundTimeUsed)])
    }

    @Test("An event may grant less time than the app's own, and never shortens what another gave")
    func time() throws {
        var bench = Bench()
        try bench.launch(background: true)
        try bench.suspend()
        _ = try bench.ask(.wake(Wake(time: .seconds(10))))
        #expect(bench.machine.grant?.at == bench.now + .seconds(10))
        _ = try bench.ask(.wake(Wake(time: .seconds(20))))
        #expect(bench.machine.grant?.at == bench.now + .seconds(20))
        _ = try bench.ask(.wake(Wake(time: .seconds(10))))
        #expect(bench.machine.grant?.at == bench.now + .seconds(20))
    }

    @Test("An event for the foreground takes a sleeping app there")
    func foreground() throws {
        var bench = Bench()
        try bench.launch(background: true)
        try bench.suspend()
        _ = try bench.ask(.wake(Wake(foreground: true)))
        #expect(bench.machine.state == .active)
    }

    @Test("An app that opts out of the background is launched by events for the foreground only")
    func exitsOnSuspend() throws {
        var bench = Bench { $0.exitsOnSuspend = true }
        #expect(bench.refusal(.wake(Wake()))?.hasSuffix("the event waits") == true)
        #expect(try bench.ask(.wake(Wake(foreground: true))) == [.requestLaunch])
    }

    @Test("After a force quit only what overrides it launches the app")
    func forceQuit() throws {
        var bench = Bench()
        _ = try bench.ask(.forceQuit)
        #expect(bench.refusal(.wake(Wake())) != nil)
        #expect(try bench.ask(.wake(Wake(overridesForceQuit: true))) == [.requestLaunch])
    }

    @Test("A timer's time gives an app all its restarts again, also one that was restarted too often")
    func startsAfresh() throws {
        var bench = Bench {
            $0.isOneshot = true
            $0.backoff.limit = 2
        }
        func fail() throws -> Ending.Next {
            bench.comeUp()
            return try bench.end(crash).next
        }
        func failOften() throws {
            for _ in 0..<2 {
                guard case .restart = try fail() else {
                    Issue.record("it is not restarted")
                    return
                }
                _ = bench.advance(.seconds(1))
            }
        }
        _ = try bench.ask(.wake(Wake(startsAfresh: true)))
        try failOften()
        #expect(try fail() == .gaveUp)
        #expect(bench.machine.failed)
        #expect(bench.refusal(.wake(Wake()))?.hasPrefix("is not launched by events") == true)
        #expect(try bench.ask(.wake(Wake(startsAfresh: true))) == [.requestLaunch])
        #expect(!bench.machine.failed)
        try failOften()
        bench.comeUp()
        #expect(try bench.end(done).next == .rest)
        // The next time has its own restarts, although these are within the same window.
        _ = try bench.ask(.wake(Wake(startsAfresh: true)))
        try failOften()
        #expect(try fail() == .gaveUp)
        _ = try bench.ask(.stop(.stopped))
        #expect(bench.refusal(.wake(Wake(startsAfresh: true)))?.hasPrefix("is not launched by events") == true)
    }

    @Test("An app whose health check has failed does not fall asleep by itself before the verdict")
    func awaitsVerdict() throws {
        var bench = Bench()
        try bench.launch(background: true)
        try bench.suspend()
        #expect(bench.tell(.awaitsVerdict(true)).isEmpty && !bench.machine.awaitsVerdict)
        _ = try bench.ask(.wake(Wake()))
        #expect(bench.tell(.awaitsVerdict(true)).isEmpty)
        #expect(bench.advance(.seconds(30)).isEmpty)
        #expect(bench.machine.state == .background && bench.machine.goal == .background)
        #expect(
            bench.tell(.awaitsVerdict(false)) == [.report(.sleepsAgain), .tell(.didEnterBackground), .stopProcesses]
        )
        _ = bench.tell(.stopConfirmed)
        // What a person asks is done at once.
        _ = try bench.ask(.wake(Wake()))
        _ = bench.tell(.awaitsVerdict(true))
        #expect(try bench.ask(.suspend) == [.tell(.didEnterBackground), .stopProcesses])
        _ = bench.tell(.stopConfirmed)
        #expect(bench.machine.state == .suspended && !bench.machine.awaitsVerdict)
        // A policy is asked again after the verdict.
        _ = try bench.ask(.background)
        _ = bench.tell(.awaitsVerdict(true))
        #expect(bench.advance(.seconds(5)).isEmpty)
        #expect(bench.tell(.awaitsVerdict(false)) == [.report(.backgroundTimeUsed)])
    }

    @Test("What was woken survives in a record")
    func record() throws {
        var bench = Bench()
        try bench.launch(background: true)
        try bench.suspend()
        _ = try bench.ask(.wake(Wake(time: .seconds(7))))
        bench.machine.wokenFor = .seconds(7)
        bench.machine.settlesIn = true
        bench.machine.isToldOnlyAtLaunch = true
        #expect(bench.machine.isUnsaved)
        var bytes = [UInt8](repeating: 0, count: AppMachine.wakeBytes)
        bytes.withUnsafeMutableBytes {
            var writer = RecordWriter($0)
            bench.machine.encodeWake(into: &writer)
            #expect(writer.count == AppMachine.wakeBytes && !writer.isOverfull)
        }
        var machine = AppMachine(rules: AppRules())
        bytes.withUnsafeBytes {
            var reader = RecordReader($0)
            machine.restoreWake(from: &reader)
        }
        #expect(machine.sleepsAgain && machine.wokenFor == .seconds(7) && machine.settlesIn)
        #expect(machine.isUnsaved && machine.isToldOnlyAtLaunch)
        // A record of before it has nothing of it.
        var reader = RecordReader(UnsafeRawBufferPointer(start: nil, count: 0))
        machine.restoreWake(from: &reader)
        #expect(!machine.sleepsAgain && machine.wokenFor == nil && !machine.settlesIn && !machine.isUnsaved)
    }

    @Test("What a policy undoes again and again is done more and more seldom, and at will again after a while")
    func undone() {
        let rules = WakeStormRules()
        var ledger = WakeLedger()
        var now = Duration.seconds(100)
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            #expect(ledger.wake(rules, now: now) == .allowed)
            let until = ledger.undone(rules, now: now)
            #expect(until == now + .seconds(pause))
            #expect(ledger.wake(rules, now: until - .milliseconds(1)) == .heldBack(until: until))
            #expect(ledger.isHeldForPolicy)
            now = until
        }
        now += .seconds(121)
        #expect(ledger.wake(rules, now: now) == .allowed)
        #expect(ledger.undone(rules, now: now) == now + .seconds(1))
        ledger.forget()
        #expect(ledger.wake(rules, now: now) == .allowed)
    }

    @Test("Too many wakes within the window are a storm, and hold the app back for a while")
    func storm() {
        var rules = WakeStormRules()
        rules.limit = 3
        rules.window = .seconds(10)
        rules.hold = .seconds(5)
        var ledger = WakeLedger()
        for second in 1...3 { #expect(ledger.wake(rules, now: .seconds(second)) == .allowed) }
        #expect(ledger.wake(rules, now: .seconds(4)) == .storm(count: 3, until: .seconds(9)))
        #expect(ledger.wake(rules, now: .seconds(8)) == .heldBack(until: .seconds(9)))
        #expect(ledger.wake(rules, now: .seconds(9)) == .allowed)
        // Spread over more than the window they never are.
        for second in stride(from: 20, to: 200, by: 5) {
            #expect(ledger.wake(rules, now: .seconds(second)) == .allowed)
        }
    }
}
