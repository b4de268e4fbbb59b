// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("Random walks")
struct RandomWalkTests {
    @Test("whatever happens to an app, the machine asks for nothing impossible and comes to rest", arguments: 1...8)
    func oneApp(seed: Int) throws {
        var walk = Walk(seed: UInt64(seed))
        do {
            for _ in 0..<25 {
                walk.renew()
                for _ in 0..<600 { try walk.step() }
                try walk.quiesce()
            }
        } catch {
            Issue.record(
                "seed \(seed), step \(walk.steps): \(error)\n\(walk.recent.suffix(25).joined(separator: "\n"))"
            )
        }
        #expect(walk.steps >= 15_000)
    }
}

@Suite("Random walks of an app with scenes")
struct RandomSceneTests {
    @Test(
        "whatever happens, each scene hears its edges in order, one message at a time, and app and scenes come to rest",
        arguments: 1...8
    )
    func scenes(seed: Int) throws {
        var walk = Walk(seed: UInt64(seed) &+ 4_000)
        walk.hasScenes = true
        do {
            for _ in 0..<25 {
                walk.renew()
                for _ in 0..<600 { try walk.step() }
                try walk.quiesce()
            }
        } catch {
            Issue.record(
                "seed \(seed), step \(walk.steps): \(error)\n\(walk.recent.suffix(25).joined(separator: "\n"))"
            )
        }
        #expect(walk.steps >= 15_000)
        #expect(walk.connected >= 300, "scenes were connected")
    }
}

/// One app, its machine and the model of its processes.
struct Walk {
    var dice: Dice
    var machine = AppMachine(rules: AppRules())
    var app = ModelApp()
    var now: Duration = .seconds(1000)
    var steps = 0
    var recent: [String] = []
    var traced = false
    /// It shows scenes.
    var hasScenes = false
    /// How often one was connected.
    var connected = 0

    init(seed: UInt64) { dice = Dice(seed: seed) }

    mutating func renew() {
        var rules = Whim.rules(&dice)
        if hasScenes {
            rules.hasScenes = true
            rules.readiness = .delegate
            rules.exitsOnSuspend = false
            rules.isOneshot = false
        }
        machine = AppMachine(rules: rules, seed: dice.next())
        app = ModelApp()
        traced = false
        recent = []
    }

    mutating func step() throws(Violation) {
        steps += 1
        if dice.chance(5) {
            guard var again = Record.again(machine) else { throw Violation("its record is not the same again") }
            again.restore(machine.sceneMachines, now: now)
            machine = again
            try handle(.scenesRestored)
        }
        if hasScenes, dice.chance(15) { return try disturbScenes() }
        switch dice.below(10) {
        case 0, 1: try ask(Whim.request(&dice))
        case 2: try disturb()
        default: try passTime()
        }
    }

    mutating func ask(_ request: Request) throws(Violation) {
        let before = machine.phaseDescription
        let actions: [Action]
        do {
            actions = try machine.request(request, now: now)
        } catch {
            guard machine.phaseDescription == before else { throw Violation("refused \(request), but changed") }
            return
        }
        try take(actions, for: "\(request)")
    }

    private mutating func disturbScenes() throws(Violation) {
        let id = SceneID(dice.below(4) + 1)
        if app.tree == .alive, !machine.hasDelegate, dice.chance(70) { return try handle(.delegate(attached: true)) }
        switch dice.below(10) {
        case 0, 1, 2, 3: try ask(.scene(id, .active))
        case 4, 5: try ask(.scene(id, .background))
        case 6, 7: try ask(.scene(id, .unattached))
        case 8:
            let message = Message.allCases[dice.below(Message.allCases.count)]
            // Who has not been asked has nothing to say that counts.
            if machine.sceneMachines.contains(where: { $0.id == id && $0.awaiting == message }) { return }
            let before = machine.sceneMachines
            try handle(.scene(id, .answered(message, failed: dice.chance(50))))
            if machine.sceneMachines != before { throw Violation("an answer of nobody's counts") }
        default: try handle(.scene(id, .extends(dice.milliseconds(0...3_000))))
        }
    }

    /// Something that the app does by itself, or somebody does to it.
    private mutating func disturb() throws(Violation) {
        let alive = app.tree == .alive
        switch dice.below(25) {
        case 23:
            if machine.transition == .suspending { app.isUnsaved = true }
            try handle(.worked)
        case 24: try handle(.settles(dice.milliseconds(1...2_000)))
        case 20 where alive && !app.stopped && machine.hasDelegate: try handle(.messageSent)
        case 22 where alive: try handle(.messageAnswered)
        case 21 where alive: try handle(.messagePending(dice.milliseconds(0...3_000)))
        case 12 where alive: try handle(.delegate(attached: true))
        case 13 where alive: try handle(.delegate(attached: false))
        case 14: try handle(.lockHeld)
        case 18 where alive && !app.stopped: try handle(.showsNew)
        case 19 where alive && !app.stopped && dice.chance(30): try handle(.declinedSnapshot)
        case 15, 16:
            guard let (_, actions) = try? machine.beginTask("whim", now: now) else { return }
            try take(actions, for: "a task begins")
        case 17:
            guard let task = machine.tasks.first, let actions = machine.endTask(task.token, now: now) else { return }
            try take(actions, for: "a task ends")
        case 0 where alive && !app.mainGone && !app.stopped:
            app.mainGone = true
            try handle(.mainExited(.exited(code: dice.chance(50) ? 0 : 1)))
        case 1 where alive && !app.mainGone:
            app.mainGone = true
            try handle(.mainExited(dice.chance(50) ? .outOfMemory : .signaled(9, coreDumped: false)))
        case 2 where alive && !app.stopped: try handle(.stopping)
        case 3 where machine.state == .suspended: try handle(.foundRunning)
        case 4 where alive: try handle(.extendTimeout(dice.milliseconds(0...3_000)))
        case 5 where alive: try handle(.watchdogInterval(dice.chance(50) ? .seconds(2) : nil))
        case 6 where alive && dice.chance(20): try handle(.watchdogTriggered)
        case 7 where alive && machine.transition != .terminating:
            try handle(.traced(true))
            try passTime()
            try handle(.traced(false))
        case 8: try handle(.answered(Message.allCases[dice.below(Message.allCases.count)]))
        case 9: try handle(.stopConfirmedLate(machine))
        case 10: try handle(.ready)
        default: try handle(.heartbeat)
        }
    }

    /// Lets time pass to the next thing that is due, or to somewhere before it.
    mutating func passTime() throws(Violation) {
        let next = [machine.nextDeadline, app.nextNews].compactMap { $0 }.min()
        if dice.chance(20), !app.isCooperative {
            now = max(now, min(next ?? now + .seconds(1), now + dice.milliseconds(1...500)))
        } else {
            now = max(now, next ?? now + .seconds(1))
        }
        // The loop reads what waits before it judges a deadline.
        if let event = app.takeNews(now: now) {
            try handle(event)
        } else if let at = machine.nextDeadline, at <= now {
            try handle(.deadline)
            if let at = machine.nextDeadline, at <= now, machine.state != .notRunning {
                try handle(.deadline)
            }
        }
    }

    mutating func handle(_ event: AppEvent) throws(Violation) {
        try take(machine.handle(event, now: now), for: "\(event)")
    }

    private mutating func take(_ actions: [Action], for cause: String) throws(Violation) {
        recent.append(
            "\(now) \(cause) → \(actions) | \(machine.state) \(machine.transition.map(\.rawValue) ?? "") → \(machine.goal)"
        )
        if recent.count > 60 { recent.removeFirst(30) }
        for action in actions {
            if case .tellScene(_, .sceneWillConnect) = action { connected += 1 }
            try app.carryOut(action, now: now, dice: &dice)
            if action == .requestLaunch { try take(machine.permitLaunch(now: now), for: "permit") }
        }
        let asksToEnd = actions.contains { $0 == .signalStop || $0 == .signalWatchdog || $0 == .endRemains }
        // SIGKILL needs nobody to run.
        let isKilled = machine.deadlines.contains { $0.kind == .kill }
        if asksToEnd, app.stopped, !isKilled { throw Violation("is asked to end, but stopped") }
        if case .launching = machine.transition, app.tree == .alive, machine.rules.readiness != .exec,
            !app.news.contains(where: { $0.what == .ready }), app.isCooperative || dice.chance(30)
        {
            app.plan(.ready, 0...300, now, &dice)
        }
        try app.check(machine, now: now)
    }

    /// From here on everything goes as it should: the goal is reached, or the app rests for a reason.
    mutating func quiesce() throws(Violation) {
        app.isCooperative = true
        // Nothing covers it or keeps it awake any longer, or its goal would wait.
        try ask(.cover(begin: false))
        try ask(.release)
        for mode in machine.modes.modes { try ask(.mode(mode, isTrue: false)) }
        for task in machine.tasks {
            try take(machine.endTask(task.token, now: now) ?? [], for: "the last tasks end")
        }
        // Answers that were withheld come now, if they still matter.
        try handle(.messageAnswered)
        for message in Message.allCases { try handle(.answered(message)) }
        if hasScenes, app.tree == .alive { try handle(.delegate(attached: true)) }
        for scene in machine.sceneMachines {
            if let message = scene.awaiting { try handle(.scene(scene.id, .answered(message, failed: false))) }
        }
        let end = now + .seconds(120)
        while now < end, !isQuiet {
            if machine.deadlines.contains(where: { $0.kind == .watchdog }) { try handle(.heartbeat) }
            if machine.rules.isOneshot, machine.transition == .launching, app.tree == .alive, !app.mainGone {
                app.mainGone = true
                try handle(.mainExited(.exited(code: 0)))
            }
            try passTime()
        }
        guard isQuiet else { throw Violation("goal \(machine.goal) not reached from \(machine.state)") }
    }

    private var isQuiet: Bool {
        guard machine.transition == nil, app.areScenesQuiet(machine) else { return false }
        switch machine.state {
        case .notRunning: return machine.goal == .notRunning && !machine.isWaitingToLaunch
        case .inactive: return machine.goal == .active ? machine.interruptions > 0 : machine.goal == .inactive
        case .active: return machine.goal == .active
        case .background: return machine.goal == .background
        case .suspended: return machine.goal == .suspended
        }
    }
}

extension AppEvent {
    /// A confirmation that no stop is waiting for, or a heartbeat when one is: only the world confirms stops.
    fileprivate static func stopConfirmedLate(_ machine: AppMachine) -> AppEvent {
        machine.transition == .suspending ? .heartbeat : .stopConfirmed
    }
}
