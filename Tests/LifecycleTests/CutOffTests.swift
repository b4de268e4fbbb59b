// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("Launches that a restart cuts off")
struct CutOffTests {
    /// Begins the launch that waits, and restarts the app before it is ready.
    private static func cutOff(_ bench: inout Bench) throws -> Ending {
        _ = bench.machine.permitLaunch(now: bench.now)
        _ = bench.tell(.launched)
        _ = try bench.ask(.restart)
        return try bench.end(.signaled(15, coreDumped: false))
    }

    @Test("two in a row cost nothing, more are delayed and limited as launches that fail, whatever ‘restart’ says")
    func delayed() throws {
        var bench = Bench.attentive { ($0.backoff.jitter, $0.backoff.limit, $0.restart) = (0, 3, .never) }
        _ = try bench.ask(.start(background: false))
        for _ in 0..<2 {
            let ending = try Self.cutOff(&bench)
            #expect(ending.next == .relaunch && ending.reason == .stopped && !ending.isCutOff)
        }
        for delay in [100, 200, 400] {
            let ending = try Self.cutOff(&bench)
            #expect(ending.next == .restart(after: .milliseconds(delay)))
            #expect(ending.reason == .launchFailed && ending.isCutOff)
            #expect(bench.advance(.milliseconds(delay)) == [.requestLaunch])
        }
        #expect(bench.machine.restarts == 3)
        #expect(try Self.cutOff(&bench).next == .gaveUp)
        #expect(bench.machine.failed && bench.machine.lastEnding == .launchFailed)
        _ = try bench.ask(.start(background: false))
        #expect(try Self.cutOff(&bench).next == .relaunch)
    }

    @Test("a run that comes to be ready, and a stop, end the count")
    func counts() throws {
        for isStopped in [false, true] {
            var bench = Bench.attentive()
            _ = try bench.ask(.start(background: false))
            for _ in 0..<2 { #expect(try Self.cutOff(&bench).next == .relaunch) }
            bench.comeUp()
            _ = try bench.ask(isStopped ? .stop(.stopped) : .restart)
            _ = bench.tell(.answered(.willTerminate))
            _ = try bench.end(.exited(code: 0))
            if isStopped { _ = try bench.ask(.start(background: false)) }
            for _ in 0..<2 { #expect(try Self.cutOff(&bench).next == .relaunch) }
        }
    }

    @Test("an app that restarts what it requires while it is launched comes to an end, and leaves that one running")
    func requirement() throws {
        var rules = AppRules()
        rules.readiness = .notify
        rules.backoff.limit = 2
        var fleet = try Fleet([
            AppDefinition(name: "web", rules: rules, requires: ["db"]), AppDefinition(name: "db"),
        ])
        try fleet.ask(.start(background: false), "web")
        for _ in 0..<5 {
            #expect(fleet.coordinator.machine(fleet.id("web")).transition == .launching)
            try fleet.ask(.restart, "db")
            #expect(fleet.state("db") == .active)
            fleet.now += .seconds(1)
            fleet.tell(.deadline, "web")
        }
        #expect(fleet.coordinator.machine(fleet.id("web")).failed)
        #expect(fleet.state("db") == .active && fleet.state("web") == .notRunning)
    }
}
