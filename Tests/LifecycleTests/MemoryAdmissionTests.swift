// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("Memory, among the apps")
struct MemoryAdmissionTests {
    private var now: Duration { .seconds(100) }

    private func asked(_ actions: [AppAction]) -> [AppID] {
        actions.filter { $0.action == .askForMemory }.map(\.app)
    }

    private func launched(_ actions: [AppAction]) -> [AppID] {
        actions.compactMap { if case .launch = $0.action { $0.app } else { nil } }
    }

    /// `big` needs memory, `small` does not, `web` requires big.
    private func coordinator(_ rules: AppRules = AppRules()) throws -> Coordinator {
        try Coordinator([
            AppDefinition(name: "big", rules: rules, needsMemory: true), AppDefinition(name: "small", rules: rules),
            AppDefinition(name: "web", rules: rules, requires: ["big"]),
        ])
    }

    @Test("an app that needs memory is launched when there is some, asked for once; others are not asked for")
    func admitted() throws {
        let coordinator = try coordinator()
        var actions = try coordinator.request(.start(background: false), of: 0, now: now)
        #expect(asked(actions) == [0] && launched(actions).isEmpty)
        #expect(coordinator.waitsForMemory(0) && coordinator.launchesIntoForeground(0))
        #expect(coordinator.nextDeadline(0) == nil, "the launch deadline of one that waits does not run")
        actions = try coordinator.request(.start(background: false), of: 0, now: now)
        #expect(actions.isEmpty, "asked for twice, it waits once")
        actions = try coordinator.request(.start(background: false), of: 1, now: now)
        #expect(asked(actions).isEmpty && launched(actions) == [1])
        #expect(!coordinator.waitsForMemory(1))
        #expect(launched(coordinator.admitMemory(0, now: now)) == [0])
        #expect(!coordinator.waitsForMemory(0))
        #expect(coordinator.admitMemory(0, now: now).isEmpty, "once is enough")
        #expect(coordinator.admitMemory(1, now: now).isEmpty && coordinator.refuseMemory(1, now: now).isEmpty)
    }

    @Test("each launch is asked for anew: a restart waits too")
    func again() throws {
        var rules = AppRules()
        rules.restart = .always
        rules.backoff.initial = .zero
        let coordinator = try coordinator(rules)
        _ = try coordinator.request(.start(background: false), of: 0, now: now)
        _ = coordinator.admitMemory(0, now: now)
        _ = coordinator.handle(.launched, of: 0, now: now)
        _ = coordinator.handle(.mainExited(.exited(code: 1)), of: 0, now: now)
        #expect(asked(coordinator.handle(.allGone, of: 0, now: now)) == [0])
        #expect(coordinator.waitsForMemory(0))
    }

    @Test("a launch that does not come to pass any more needs no memory")
    func withdrawn() throws {
        let coordinator = try coordinator()
        _ = try coordinator.request(.start(background: false), of: 0, now: now)
        _ = try coordinator.request(.stop(.stopped), of: 0, now: now)
        #expect(!coordinator.waitsForMemory(0))
        #expect(coordinator.admitMemory(0, now: now).isEmpty, "an answer that comes too late changes nothing")
        #expect(coordinator.machine(0).state == .notRunning)
        // And is asked for again when it is wanted again.
        #expect(asked(try coordinator.request(.start(background: true), of: 0, now: now)) == [0])
        #expect(!coordinator.launchesIntoForeground(0))
    }

    @Test("refused, it is not running and says so; who requires it fails for the requirement")
    func refused() throws {
        let coordinator = try coordinator()
        let actions = try coordinator.request(.start(background: false), of: 2, now: now)
        #expect(asked(actions) == [0] && launched(actions).isEmpty)
        #expect(coordinator.blockers(2) == ["big"])
        let endings = coordinator.refuseMemory(0, now: now).compactMap { action in
            if case .ended(let ending) = action.action { "\(action.app) \(ending.reason.rawValue)" } else { nil }
        }
        #expect(endings.prefix(2) == ["0 launch-failed", "2 dependency-failed"])
        #expect(!coordinator.waitsForMemory(0) && coordinator.isEverythingGone)
    }

    @Test("what is required and waits for memory holds up who requires it, and nobody else")
    func required() throws {
        let coordinator = try coordinator()
        _ = try coordinator.request(.start(background: false), of: 2, now: now)
        _ = coordinator.admitMemory(0, now: now)
        #expect(launched(coordinator.handle(.launched, of: 0, now: now)) == [2])
    }

    @Test("an app that waits for memory does not wait for the turn of others as well")
    func turns() throws {
        let coordinator = try coordinator()
        coordinator.launchesAtOnce = 1
        #expect(asked(coordinator.launch([(0, true), (1, true)], now: now)) == [0])
        #expect(coordinator.machine(1).transition == .launching, "it had its turn")
        #expect(launched(coordinator.admitMemory(0, now: now)).isEmpty)
        #expect(launched(coordinator.handle(.launched, of: 1, now: now)) == [0])
    }

    @Test("nobody is launched in a shutdown, whatever memory there is")
    func shutdown() throws {
        let coordinator = try coordinator()
        _ = try coordinator.request(.start(background: false), of: 0, now: now)
        _ = coordinator.shutDown(now: now)
        #expect(launched(coordinator.admitMemory(0, now: now)).isEmpty && coordinator.isEverythingGone)
    }

    @Test("the next supervisor asks again for those that waited")
    func recovery() throws {
        var coordinator = try coordinator()
        _ = try coordinator.request(.start(background: false), of: 0, now: now)
        coordinator = try Record.again(coordinator, [0, 1, 2])
        #expect(asked(coordinator.carryOn(shuttingDown: false, now: now)) == [0])
        #expect(launched(coordinator.admitMemory(0, now: now)) == [0])
    }

    // MARK: Who may go

    @Test("who is active, required, traced or on its way is left alone, and who says never")
    func protection() throws {
        var fleet = try Fleet([
            AppDefinition(name: "web", requires: ["db"]), AppDefinition(name: "db"),
            AppDefinition(
                name: "safe",
                rules: {
                    var rules = AppRules()
                    rules.eviction = .never
                    return rules
                }()
            ),
        ])
        try fleet.ask(.start(background: false), "web")
        try fleet.ask(.start(background: true), "safe")
        func protection(_ name: String, lastResort: Bool = false) -> MemoryLadder.Protection? {
            fleet.coordinator.memoryProtection(fleet.id(name), lastResort: lastResort)
        }
        #expect(protection("web") == .active && protection("web", lastResort: true) == nil)
        #expect(protection("safe") == .never)
        try fleet.ask(.background, "db")
        #expect(protection("db") == .required)
        try fleet.ask(.suspend, "web")
        #expect(protection("web") == nil && protection("db") == nil, "one that sleeps does not miss it yet")
        fleet.tell(.traced(true), "web")
        #expect(protection("web") == .traced)
        fleet.tell(.traced(false), "web")
        #expect(protection("web") == nil)
        // Woken, it gets back what it requires.
        try fleet.ask(.evict, "db")
        #expect(fleet.state("db") == .notRunning)
        fleet.log = []
        try fleet.ask(.foreground, "web")
        #expect(fleet.takeLog("launch") == ["db"] && fleet.state("web") == .active)
    }

    @Test("one that is on its way to another state is left alone, and so is one whose stop waits")
    func busy() throws {
        let coordinator = try coordinator()
        _ = try coordinator.request(.start(background: false), of: 1, now: now)
        #expect(coordinator.memoryProtection(1, lastResort: true) == .busy, "it is being launched")
        _ = coordinator.handle(.launched, of: 1, now: now)
        #expect(coordinator.memoryProtection(1, lastResort: true) == nil)
        _ = try coordinator.request(.suspend, of: 1, now: now)
        #expect(coordinator.memoryProtection(1, lastResort: true) == .busy)
        _ = coordinator.handle(.stopConfirmed, of: 1, now: now)
        #expect(coordinator.memoryProtection(1, lastResort: false) == nil)
        _ = try coordinator.request(.evict, of: 1, now: now)
        #expect(coordinator.memoryProtection(1, lastResort: true) == .busy, "it is ending: one at a time")
    }

    @Test("short memory is told to whoever runs and is ready, at once")
    func told() throws {
        let coordinator = try coordinator()
        #expect(coordinator.warnOfMemory(1, now: now).isEmpty)
        _ = try coordinator.request(.start(background: false), of: 1, now: now)
        #expect(coordinator.warnOfMemory(1, now: now).isEmpty, "not ready yet")
        _ = coordinator.handle(.launched, of: 1, now: now)
        #expect(coordinator.warnOfMemory(1, now: now).map(\.action) == [.tell(.didReceiveMemoryWarning)])
        _ = try coordinator.request(.suspend, of: 1, now: now)
        #expect(coordinator.warnOfMemory(1, now: now).isEmpty, "it is being stopped")
        _ = coordinator.handle(.stopConfirmed, of: 1, now: now)
        #expect(coordinator.warnOfMemory(1, now: now).isEmpty, "it is stopped")
        _ = try coordinator.request(.stop(.stopped), of: 1, now: now)
        #expect(coordinator.warnOfMemory(1, now: now).isEmpty, "it is ending")
    }
}
