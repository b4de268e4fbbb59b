// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("Random walks of many apps")
struct RandomFleetTests {
    @Test("nothing launches before what it requires, nothing is stopped before what requires it", arguments: 1...12)
    func manyApps(seed: Int) throws {
        var walk = try FleetWalk(seed: UInt64(seed) &+ 1000)
        do {
            for _ in 0..<6 {
                try walk.renew()
                for _ in 0..<500 { try walk.step() }
                try walk.finish()
            }
        } catch {
            Issue.record(
                "seed \(seed), step \(walk.steps): \(error)\n\(walk.recent.suffix(25).joined(separator: "\n"))"
            )
        }
        #expect(walk.steps >= 3_000)
    }
}

/// A handful of apps with random dependencies, their coordinator and the model of their processes.
struct FleetWalk {
    var dice: Dice
    var coordinator: Coordinator
    var apps: [ModelApp] = []
    var requires: [[Int]] = []
    /// Names of apps that were declared at some time; the number is the order in which they may require each other.
    static let names = (0..<8).map { "\($0)" }
    var now: Duration = .seconds(1000)
    var steps = 0
    var recent: [String] = []
    /// For each app, the oneshots that it required at its last launch, and their incarnations then.
    var work: [AppID: [AppID: UInt32]] = [:]
    /// The apps that had exited with success before the last event.
    var done: Set<AppID> = []

    init(seed: UInt64) throws {
        dice = Dice(seed: seed)
        coordinator = try Coordinator([])
    }

    /// Some of the names, each with random requirements among those before it, so that there is no cycle.
    private mutating func definitions() -> [AppDefinition] {
        var chosen: [String] = []
        return Self.names.filter { _ in dice.chance(75) }.map { name in
            defer { chosen.append(name) }
            return AppDefinition(
                name: name,
                rules: Whim.rules(&dice),
                requires: chosen.filter { _ in dice.chance(35) },
                after: chosen.filter { _ in dice.chance(15) },
                launchesIntoForeground: dice.chance(50)
            )
        }
    }

    mutating func renew() throws {
        let definitions = definitions()
        coordinator = try Coordinator(definitions)
        apps = definitions.map { _ in ModelApp() }
        (recent, work, done) = ([], [:], [])
        lookUpRequirements()
    }

    private mutating func lookUpRequirements() {
        requires = (0..<coordinator.count).map { app in
            guard coordinator.exists(app) else { return [] }
            return coordinator.definition(app).requires.compactMap { coordinator.id(of: $0) }
        }
    }

    /// Another configuration: apps go, come, come back and change.
    private mutating func reconfigure() throws(Violation) {
        let new = definitions()
        let old = Dictionary(
            uniqueKeysWithValues: (0..<coordinator.count).filter { coordinator.exists($0) }.map {
                (coordinator.definition($0).name, coordinator.machine($0))
            }
        )
        let changes = new.map { definition in
            var change = AppChange(definition, launchesNew: dice.chance(30) ? nil : dice.chance(50))
            if let machine = old[definition.name] {
                // What a running app was launched with stays.
                change.liveRules.readiness = machine.rules.readiness
                change.liveRules.isOneshot = machine.rules.isOneshot
            }
            change.isReplaced = dice.chance(20)
            return change
        }
        let before = (0..<coordinator.count).map { coordinator.exists($0) ? coordinator.definition($0).name : "" }
        let actions: [AppAction]
        do {
            actions = try coordinator.reconfigure(changes, now: now)
        } catch {
            throw Violation("\(error)")
        }
        for app in 0..<coordinator.count {
            let name = coordinator.exists(app) ? coordinator.definition(app).name : ""
            if app == apps.count {
                apps.append(ModelApp())
            } else if name != before[app] {
                guard before[app].isEmpty, apps[app].tree == .none else {
                    throw Violation("\(app) was \(before[app]) and became \(name)")
                }
                apps[app] = ModelApp()
            }
        }
        for definition in new {
            guard let app = coordinator.id(of: definition.name), coordinator.definition(app) == definition,
                !coordinator.isLeaving(app)
            else { throw Violation("\(definition.name) is not as it was declared") }
        }
        lookUpRequirements()
        let leaving = (0..<coordinator.count).filter { coordinator.isLeaving($0) }
        try take(actions, for: "reconfigure: \(new.map { "\($0.name) \($0.requires)" })", stopping: leaving)
    }

    /// One app comes or goes that no other requires, as scenes do.
    private mutating func addOrRemove() throws(Violation) {
        let name = "scene\(dice.below(3))"
        let known = coordinator.id(of: name)
        if let known, !coordinator.isLeaving(known) {
            return try take(coordinator.remove(known, now: now), for: "remove \(name)", stopping: [known])
        }
        guard !coordinator.isShuttingDown else { return }
        let declared = (0..<coordinator.count).filter { coordinator.exists($0) && !coordinator.isLeaving($0) }
            .map { coordinator.definition($0).name }.filter { !$0.hasPrefix("scene") }
        let definition = AppDefinition(
            name: name,
            rules: Whim.rules(&dice),
            requires: declared.filter { _ in dice.chance(35) },
            after: declared.filter { _ in dice.chance(15) },
            launchesIntoForeground: dice.chance(50)
        )
        var change = AppChange(definition)
        if let known {
            change.liveRules.readiness = coordinator.machine(known).rules.readiness
            change.liveRules.isOneshot = coordinator.machine(known).rules.isOneshot
        }
        let actions: [AppAction]
        do {
            actions = try coordinator.add(change, now: now)
        } catch {
            throw Violation("\(error)")
        }
        guard let app = coordinator.id(of: name), coordinator.definition(app) == definition else {
            throw Violation("\(name) is not as it was added")
        }
        if app == apps.count {
            apps.append(ModelApp())
        } else if known == nil {
            guard apps[app].tree == .none else { throw Violation("\(app) lives, and its place is given to \(name)") }
            apps[app] = ModelApp()
        }
        lookUpRequirements()
        try take(actions, for: "add \(name) \(definition.requires)", stopping: [])
    }

    mutating func step() throws(Violation) {
        steps += 1
        if dice.chance(3) { try replaceDaemon() }
        if dice.chance(3) { return try reconfigure() }
        if dice.chance(5) { return try addOrRemove() }
        switch dice.below(10) {
        case 0, 1: try ask(Whim.request(&dice), of: dice.below(apps.count))
        case 2:
            let app = dice.below(apps.count)
            guard apps[app].tree == .alive, !apps[app].mainGone else { return }
            apps[app].mainGone = true
            let killed = apps[app].stopped || dice.chance(50)
            let code: Int32 = dice.chance(50) ? 0 : 1
            try handle(.mainExited(killed ? .signaled(9, coreDumped: false) : .exited(code: code)), of: app)
        default: try passTime()
        }
    }

    /// The supervisor dies, and the next one goes on from the records of what its configuration names; what was
    /// leaving is ended otherwise.
    private mutating func replaceDaemon() throws(Violation) {
        let all = 0..<coordinator.count
        guard !all.contains(where: { coordinator.isLeaving($0) }) else { return }
        let places = all.filter { coordinator.exists($0) }
        do {
            let shuttingDown = coordinator.isShuttingDown
            coordinator = try Record.again(coordinator, places)
            work = [:]
            apps = places.map { apps[$0] }
            lookUpRequirements()
            try take(coordinator.carryOn(shuttingDown: shuttingDown, now: now), for: "recovery", stopping: [])
        } catch {
            throw Violation("recovery: \(error)")
        }
    }

    private mutating func ask(_ request: Request, of app: AppID) throws(Violation) {
        let actions: [AppAction]
        do {
            actions = try coordinator.request(request, of: app, now: now)
        } catch {
            return
        }
        // One that is stopped for what it did leaves its dependents, like a crash.
        let orderly: [TerminationReason] = [.stopped, .exitsOnSuspend, .replaced, .permissionChanged]
        let isOrderly = request == .restart || orderly.contains { request == .stop($0) }
        try take(actions, for: "\(app): \(request)", stopping: isOrderly ? [app] : [])
    }

    /// Ends one for its memory; to be refused is a violation.
    mutating func evict(_ app: AppID) throws(Violation) {
        let actions: [AppAction]
        do {
            actions = try coordinator.request(.evict, of: app, now: now)
        } catch {
            throw Violation("\(app) cannot be evicted: \(error)")
        }
        try take(actions, for: "\(app): evict", stopping: [])
    }

    private mutating func handle(_ event: AppEvent, of app: AppID) throws(Violation) {
        try take(coordinator.handle(event, of: app, now: now), for: "\(app): \(event)", stopping: [])
    }

    /// Whether the app has exited with success, so that those that require it need not wait for it.
    private func isDone(_ app: AppID) -> Bool {
        let machine = coordinator.machine(app)
        return !machine.isAlive && !machine.isWaitingToLaunch && machine.lastEnding == .exitSuccess
    }

    private mutating func take(_ actions: [AppAction], for cause: String, stopping: [AppID]) throws(Violation) {
        recent.append("\(now) \(cause) → \(actions.map { "\($0.app): \($0.action)" })")
        if recent.count > 60 { recent.removeFirst(30) }
        for item in actions {
            switch item.action {
            case .launch:
                // One that was done may be launched again for yet another app, by the same event.
                for other in requires[item.app]
                where !coordinator.machine(other).isUp && !isDone(other) && !done.contains(other) {
                    throw Violation("\(item.app) is launched, but \(other) is not up")
                }
                try checkWork(for: item.app)
                if coordinator.isShuttingDown { throw Violation("\(item.app) is launched in a shutdown") }
                if coordinator.isLeaving(item.app) { throw Violation("\(item.app) is launched and was removed") }
            case .signalStop, .tell(.willTerminate):
                guard stopping.contains(item.app) || coordinator.isShuttingDown else { break }
                for other in apps.indices where requires[other].contains(item.app) && apps[other].tree != .none {
                    throw Violation("\(item.app) is stopped, but \(other) requires it and lives")
                }
            default: break
            }
            try apps[item.app].carryOut(item.action, now: now, dice: &dice)
        }
        for app in apps.indices {
            let machine = coordinator.machine(app)
            if machine.transition == .launching, apps[app].tree == .alive, machine.rules.readiness != .exec,
                !apps[app].news.contains(where: { $0.what == .ready }), apps[app].isCooperative || dice.chance(30)
            {
                apps[app].plan(.ready, 0...300, now, &dice)
            }
            do { try apps[app].check(machine, now: now) } catch { throw Violation("\(app): \(error)") }
        }
        done = Set(apps.indices.filter { isDone($0) })
        for app in coordinator.takeForgotten() {
            if apps[app].tree != .none { throw Violation("\(app) is forgotten, but lives") }
            recent.append("\(app) is forgotten")
        }
    }

    /// A launch launches the oneshots that the app requires, also if they had done their work before.
    private mutating func checkWork(for app: AppID) throws(Violation) {
        var done: [AppID: UInt32] = [:]
        for other in requires[app] where coordinator.machine(other).rules.isOneshot && isDone(other) {
            done[other] = coordinator.machine(other).incarnation
            if let last = work[app]?[other], last == done[other] {
                throw Violation("\(app) is launched, but \(other) has not done its work again")
            }
        }
        work[app] = done
    }

    private mutating func passTime() throws(Violation) {
        var next: Duration?
        for app in apps.indices {
            for at in [coordinator.nextDeadline(app), apps[app].nextNews].compactMap({ $0 }) {
                next = next.map { min($0, at) } ?? at
            }
        }
        now = max(now, next ?? now + .seconds(1))
        for app in apps.indices {
            if let event = apps[app].takeNews(now: now) {
                try handle(event, of: app)
            } else if let at = coordinator.nextDeadline(app), at <= now {
                try handle(.deadline, of: app)
            }
        }
    }

    /// Everything goes well for a while: what waited gets its turn. Then a shutdown ends all, in bounded time.
    mutating func finish() throws(Violation) {
        for app in apps.indices { apps[app].isCooperative = true }
        try cooperate(for: .seconds(200)) { walk in
            walk.apps.indices.allSatisfy {
                walk.coordinator.machine($0).transition == nil && !walk.coordinator.machine($0).isWaitingToLaunch
                    && !walk.coordinator.isHeld($0)
            }
        }
        try take(coordinator.shutDown(now: now), for: "shutdown", stopping: [])
        try cooperate(for: .seconds(100)) { $0.coordinator.isEverythingGone }
    }

    private mutating func cooperate(for time: Duration, until isDone: (FleetWalk) -> Bool) throws(Violation) {
        let end = now + time
        while !isDone(self) {
            guard now < end else {
                let rest = apps.indices.map { app in
                    let machine = coordinator.machine(app)
                    return
                        "\(app) requires \(requires[app]): \(machine.state) \(String(describing: machine.transition)) "
                        + "→ \(machine.goal), waits: \(machine.isWaitingToLaunch), held: \(coordinator.isHeld(app))"
                }
                throw Violation("did not settle:\n\(rest.joined(separator: "\n"))")
            }
            for app in apps.indices {
                let machine = coordinator.machine(app)
                if machine.deadlines.contains(where: { $0.kind == .watchdog }) { try handle(.heartbeat, of: app) }
                let works = machine.rules.isOneshot && machine.transition == .launching
                if works, apps[app].tree == .alive, !apps[app].mainGone {
                    apps[app].mainGone = true
                    try handle(.mainExited(.exited(code: 0)), of: app)
                }
            }
            try passTime()
        }
    }
}
