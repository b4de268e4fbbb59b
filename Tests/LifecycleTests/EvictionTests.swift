// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("Eviction of apps that run")
struct EvictionTests {
    @Test("one that runs hears willTerminate and has a short grace, half for its answer", arguments: [false, true])
    func politely(background: Bool) throws {
        var bench = Bench.attentive { $0.grace = .seconds(30) }
        try bench.launch(background: background)
        #expect(try bench.ask(.evict) == [.tell(.willTerminate)])
        #expect(bench.armed == [.willTerminate: .seconds(1)])
        #expect(bench.advance(.seconds(1)) == [.signalStop])
        #expect(bench.armed == [.grace: .seconds(1)])
        #expect(bench.advance(.seconds(1)) == [.report(.killed), .killProcesses])
        let ending = try bench.end(.signaled(9, coreDumped: false))
        #expect(ending.reason == .evicted && ending.next == .rest)
        #expect(ending.state == (background ? .background : .active))
    }

    @Test("an answer is not waited for any longer than it takes")
    func answered() throws {
        var bench = Bench.attentive()
        try bench.launch()
        _ = try bench.ask(.evict)
        bench.now += .milliseconds(300)
        #expect(bench.tell(.answered(.willTerminate)) == [.signalStop])
        #expect(bench.armed == [.grace: .milliseconds(1_700)])
    }

    @Test("an unaware one gets SIGTERM at once")
    func unaware() throws {
        var bench = Bench()
        try bench.launch()
        #expect(try bench.ask(.evict) == [.tell(.willTerminate), .signalStop])
        #expect(bench.armed == [.grace: AppMachine.shortGrace])
    }

    @Test("a grace of its own that is shorter counts, a longer one and none do not", arguments: [500, 60_000, nil])
    func graces(milliseconds: Int?) throws {
        var bench = Bench { $0.grace = milliseconds.map { .milliseconds($0) } }
        try bench.launch(background: true)
        _ = try bench.ask(.evict)
        #expect(bench.armed == [.grace: min(.milliseconds(milliseconds ?? 60_000), AppMachine.shortGrace)])
    }

    @Test("asked to end within the short grace also when it is suspended and could not prepare")
    func suspended() throws {
        var bench = Bench { $0.grace = .seconds(30) }
        try bench.launch(background: true)
        try bench.suspend()
        #expect(try bench.ask(.evict) == [.signalStop, .continueProcesses, .entered(.background)])
        #expect(bench.armed == [.grace: .seconds(2)])
    }

    @Test("one that could prepare is killed without notice when it is suspended, and told when it runs")
    func prepared() throws {
        var bench = Bench.attentive()
        bench.machine.rules.eviction = .automatic
        try bench.launch()
        try bench.suspend()
        #expect(bench.machine.isEvictedWithoutNotice)
        #expect(try bench.ask(.evict) == [.killProcesses])
        #expect(try bench.end(.signaled(9, coreDumped: false)).reason == .evicted)
        try bench.launch()
        _ = try bench.ask(.background)
        bench.answerEverything()
        #expect(bench.machine.state == .background)
        #expect(try bench.ask(.evict) == [.tell(.willTerminate)])
    }

    @Test("even one that is always restarted rests, and comes back when it is asked for", arguments: [false, true])
    func rests(event: Bool) throws {
        var bench = Bench { $0.restart = .always }
        try bench.launch()
        _ = try bench.ask(.evict)
        #expect(try bench.end(.exited(code: 1)).next == .rest)
        #expect(bench.machine.goal == .notRunning && !bench.machine.failed)
        #expect(try bench.ask(event ? .wake(Wake()) : .foreground) == [.requestLaunch])
        _ = bench.machine.permitLaunch(now: bench.now)
        #expect(bench.machine.launchOrder.previousEnding == .evicted)
        #expect(bench.machine.launchOrder.foreground == !event)
    }

    @Test("who comes back for it while it is ending is launched again when all is gone")
    func wantedMeanwhile() throws {
        var bench = Bench()
        try bench.launch()
        try bench.suspend()
        _ = try bench.ask(.evict)
        #expect(try bench.ask(.foreground).isEmpty)
        _ = bench.tell(.mainExited(.signaled(15, coreDumped: false)))
        let actions = bench.tell(.allGone)
        #expect(actions.ending?.reason == .evicted && actions.ending?.next == .relaunch)
        #expect(actions.last == .requestLaunch)
    }

    @Test("an app that is being launched, ends, is on its way or is protected is not evicted, and nothing changes")
    func refusals() throws {
        var bench = Bench.attentive()
        _ = try bench.ask(.start(background: false))
        #expect(bench.refusal(.evict) == "is not running")
        _ = bench.machine.permitLaunch(now: bench.now)
        #expect(bench.refusal(.evict) == "is being launched, or is ending")
        _ = bench.tell(.launched)
        _ = bench.tell(.ready)
        bench.answerEverything()
        _ = try bench.ask(.background)
        #expect(bench.refusal(.evict) == "is on its way to another state")
        bench.answerEverything()
        bench.machine.rules.eviction = .never
        #expect(bench.refusal(.evict) == "is protected from eviction (evict = \"never\")")
        bench.machine.rules.eviction = .kill
        _ = try bench.ask(.evict)
        #expect(bench.refusal(.evict) == "is being launched, or is ending")
    }

    @Test("a person's force quit overtakes an eviction, and its reason counts")
    func overtaken() throws {
        var bench = Bench()
        try bench.launch()
        _ = try bench.ask(.evict)
        #expect(try bench.ask(.forceQuit) == [.killProcesses])
        #expect(try bench.end(.signaled(9, coreDumped: false)).reason == .forceQuit)
        #expect(bench.refusal(.wake(Wake())) == "is not launched by events until a user starts it")
    }

    @Test("a supervisor that takes over in the middle gives it the ordinary grace, and the reason stays")
    func recovered() throws {
        var bench = Bench.attentive { $0.grace = .seconds(30) }
        try bench.launch()
        _ = try bench.ask(.evict)
        bench.machine = try #require(Record.again(bench.machine))
        #expect(bench.tell(.answered(.willTerminate)) == [.signalStop])
        #expect(bench.armed == [.grace: .seconds(30)])
        let ending = try bench.end(.signaled(15, coreDumped: false))
        #expect(ending.reason == .evicted && ending.next == .rest)
    }
}
