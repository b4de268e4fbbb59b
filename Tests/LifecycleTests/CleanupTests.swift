// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("The end of an ending") struct CleanupTests {
    @Test("a force quit while after_stop runs kills nothing, but what remains of an app without a grace is killed")
    func quitWhileCleaningUp() throws {
        for isCleaningUp in [true, false] {
            var bench = Bench.attentive { $0.grace = nil }
            try bench.launch()
            _ = bench.tell(.mainExited(.exited(code: 0)))
            if isCleaningUp { _ = bench.tell(.cleaningUp) }
            #expect(bench.armed.isEmpty)
            #expect(try bench.ask(.forceQuit) == (isCleaningUp ? [] : [.killProcesses]))
            #expect(bench.armed == (isCleaningUp ? [:] : [.kill: .seconds(1)]))
            #expect(bench.tell(.allGone).ending?.reason == .forceQuit)
        }
    }

    @Test("a reset takes back a stop or a force quit of an app that has ended", arguments: [false, true])
    func takenBack(byForce: Bool) throws {
        var bench = Bench.attentive()
        try bench.launch()
        _ = try bench.ask(byForce ? .forceQuit : .stop(.stopped))
        // It still ends: the stop counts.
        _ = try bench.ask(.reset)
        #expect(bench.machine.isStopped != byForce && bench.machine.isForceQuit == byForce)
        _ = bench.tell(.mainExited(.exited(code: 0)))
        _ = bench.tell(.allGone)
        #expect(throws: RequestError.self) { try bench.ask(.wake(Wake())) }
        #expect(!bench.machine.isRearmed)
        #expect(try bench.ask(.reset) == [])
        #expect(bench.machine.isRearmed && !bench.machine.isStopped && !bench.machine.isForceQuit)
        #expect(!bench.machine.isAlive)
        #expect(try !bench.ask(.wake(Wake())).isEmpty)
        #expect(!bench.machine.isRearmed)
    }

    @Test("what follows an ending can be read from the machine, for a supervisor that must report it later")
    func recorded() throws {
        func ended(_ cause: ExitCause, _ configure: (inout AppRules) -> Void) throws -> (Ending, Ending?) {
            var bench = Bench.attentive(configure)
            #expect(bench.machine.recordedEnding(now: bench.now) == nil)
            try bench.launch()
            #expect(bench.machine.recordedEnding(now: bench.now) == nil)
            return (try bench.end(cause), bench.machine.recordedEnding(now: bench.now))
        }
        let rules: [(inout AppRules) -> Void] = [
            { $0.restart = .never }, { $0.backoff.limit = 0 }, { $0.backoff.initial = .zero }, { _ in },
        ]
        for rule in rules {
            let (ending, recorded) = try ended(crash, rule)
            #expect(recorded?.reason == .exitFailure && recorded?.incarnation == ending.incarnation)
            // A record stores whole microseconds.
            if case .restart(let after) = ending.next, case .restart(let again)? = recorded?.next {
                #expect(again <= after && after - again < .microseconds(1))
            } else {
                #expect(recorded?.next == ending.next)
            }
        }
        let (ending, recorded) = try ended(.exited(code: 0)) { _ in }
        #expect(recorded?.reason == .exitSuccess && recorded?.next == ending.next)
    }
}
