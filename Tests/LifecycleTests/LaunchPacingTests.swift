// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("Launches take turns") struct LaunchPacingTests {
    private var now: Duration { .seconds(100) }

    private func started(_ actions: [AppAction]) -> [AppID] {
        actions.compactMap { if case .launch = $0.action { $0.app } else { nil } }
    }

    private func coordinator(_ count: Int, atOnce limit: Int) throws -> Coordinator {
        let coordinator = try Coordinator((0..<count).map { AppDefinition(name: "app\($0)") })
        coordinator.launchesAtOnce = limit
        return coordinator
    }

    @Test("no more than so many are on their way to exec, and the next begins when one is there or has failed")
    func turns() throws {
        let coordinator = try coordinator(5, atOnce: 2)
        #expect(started(coordinator.launch((0..<5).map { ($0, true) }, now: now)) == [0, 1])
        #expect(coordinator.isHoldingLaunches)
        #expect(coordinator.nextDeadline(2) == nil, "the launch deadline of one that waits does not run")
        #expect(started(coordinator.handle(.launched, of: 1, now: now)) == [2])
        #expect(started(coordinator.handle(.launchFailed, of: 0, now: now)) == [3])
        #expect(started(coordinator.handle(.launched, of: 2, now: now)) == [4])
        #expect(!coordinator.isHoldingLaunches)
        #expect(started(coordinator.handle(.launched, of: 3, now: now)).isEmpty)
    }

    @Test("launches that take too long hold up nobody")
    func passOver() throws {
        let coordinator = try coordinator(5, atOnce: 2)
        _ = coordinator.launch((0..<5).map { ($0, true) }, now: now)
        #expect(started(coordinator.passOverLaunches(now: now)) == [2, 3])
        // Those that were passed over make no room twice.
        #expect(started(coordinator.handle(.launched, of: 0, now: now)).isEmpty)
        #expect(started(coordinator.handle(.launched, of: 3, now: now)) == [4])
    }

    @Test("one that is stopped before its turn comes is not launched")
    func stoppedBefore() throws {
        let coordinator = try coordinator(3, atOnce: 1)
        _ = coordinator.launch((0..<3).map { ($0, true) }, now: now)
        _ = try coordinator.request(.stop(.stopped), of: 1, now: now)
        #expect(started(coordinator.handle(.launched, of: 0, now: now)) == [2])
        #expect(coordinator.machine(1).state == .notRunning && !coordinator.machine(1).isWaitingToLaunch)
        // And is, when it is asked for again.
        #expect(started(try coordinator.request(.start(background: false), of: 1, now: now)).isEmpty)
        #expect(started(coordinator.handle(.launched, of: 2, now: now)) == [1])
    }

    @Test("restarts have their turn after all others, also one that a person asks for while it waits")
    func restartsLast() throws {
        let crashing = (0..<5).map { number in
            var definition = AppDefinition(name: "app\(number)")
            definition.rules.restart = .always
            definition.rules.backoff.initial = .zero
            return definition
        }
        let quiet = AppDefinition(name: "quiet", requires: ["app4"])
        let coordinator = try Coordinator(crashing + [quiet])
        coordinator.launchesAtOnce = 1
        var order = started(coordinator.launch((0..<5).map { ($0, true) }, now: now))
        for _ in 0..<4 { order += started(coordinator.handle(.launched, of: order.last ?? -1, now: now)) }
        _ = coordinator.handle(.launched, of: order.last ?? -1, now: now)
        #expect(order.sorted() == [0, 1, 2, 3, 4])
        // All crash at once; the first begins again, the others wait.
        var again: [AppID] = []
        for app in 0..<5 {
            _ = coordinator.handle(.mainExited(.exited(code: 1)), of: app, now: now)
            again += started(coordinator.handle(.allGone, of: app, now: now))
        }
        #expect(again == [0])
        #expect(started(try coordinator.request(.start(background: false), of: 5, now: now)).isEmpty)
        #expect(started(try coordinator.request(.start(background: false), of: 3, now: now)).isEmpty)
        for _ in 0..<5 { again += started(coordinator.handle(.launched, of: again.last ?? -1, now: now)) }
        #expect(again == [0, 4, 5, 3, 1, 2], "what is required for one that is asked for is no restart either")
        #expect(!coordinator.isHoldingLaunches)
    }

    @Test("what an app requires has its turn before it")
    func requirements() throws {
        let coordinator = try Coordinator([
            AppDefinition(name: "web", requires: ["db"]), AppDefinition(name: "db"), AppDefinition(name: "other"),
        ])
        coordinator.launchesAtOnce = 1
        var order = started(coordinator.launch([(0, true), (2, true)], now: now))
        for _ in 0..<2 { order += started(coordinator.handle(.launched, of: order.last ?? -1, now: now)) }
        #expect(Set(order) == [0, 1, 2] && order.firstIndex(of: 1) ?? 9 < order.firstIndex(of: 0) ?? 0)
    }

    @Test("a restart without delay asks for its launch at once, and for no more than the limit allows")
    func restartAtOnce() throws {
        var bench = Bench {
            $0.restart = .always
            $0.backoff.initial = .zero
            $0.backoff.limit = 3
        }
        try bench.launch()
        for _ in 0..<3 {
            _ = bench.tell(.mainExited(.exited(code: 1)))
            #expect(bench.tell(.allGone).contains(.requestLaunch))
            _ = bench.machine.permitLaunch(now: bench.now)
            _ = bench.tell(.launched)
        }
        #expect(try bench.end(.exited(code: 1)).next == .gaveUp)
    }
}
