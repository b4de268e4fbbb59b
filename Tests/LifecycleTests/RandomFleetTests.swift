import Lifecycle
import Testing

@Suite("Random walks of many apps")
struct RandomFleetTests {
    @Test("nothing launches before what it requires, nothing is stopped before what requires it", arguments: 1...6)
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
    var definitions: [AppDefinition] = []
    var apps: [ModelApp] = []
    var requires: [[Int]] = []
    var now: Duration = .seconds(1000)
    var steps = 0
    var recent: [String] = []

    init(seed: UInt64) throws {
        dice = Dice(seed: seed)
        coordinator = try Coordinator([])
    }

    /// Apps whose requirements come before them, so that there is no cycle.
    mutating func renew() throws {
        let count = 6
        requires = (0..<count).map { app in (0..<app).filter { _ in dice.chance(35) } }
        definitions = (0..<count).map { app in
            AppDefinition(
                name: "\(app)",
                rules: Whim.rules(&dice),
                requires: requires[app].map { "\($0)" },
                after: (0..<app).filter { _ in dice.chance(15) }.map { "\($0)" },
                launchesIntoForeground: dice.chance(50)
            )
        }
        coordinator = try Coordinator(definitions)
        apps = definitions.map { _ in ModelApp() }
        recent = []
    }

    mutating func step() throws(Violation) {
        steps += 1
        if dice.chance(3) { try replaceDaemon() }
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

    /// The supervisor dies, and the next one goes on from the records.
    private mutating func replaceDaemon() throws(Violation) {
        do {
            let shuttingDown = coordinator.isShuttingDown
            coordinator = try Record.again(coordinator, definitions)
            try take(coordinator.carryOn(shuttingDown: shuttingDown, now: now), for: "recovery", stopping: nil)
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
        let isOrderly = [.stop(.stopped), .stop(.exitsOnSuspend), .stop(.replaced), .restart].contains(request)
        try take(actions, for: "\(app): \(request)", stopping: isOrderly ? app : nil)
    }

    private mutating func handle(_ event: AppEvent, of app: AppID) throws(Violation) {
        try take(coordinator.handle(event, of: app, now: now), for: "\(app): \(event)", stopping: nil)
    }

    private mutating func take(_ actions: [AppAction], for cause: String, stopping: AppID?) throws(Violation) {
        recent.append("\(now) \(cause) → \(actions.map { "\($0.app): \($0.action)" })")
        if recent.count > 60 { recent.removeFirst(30) }
        for item in actions {
            switch item.action {
            case .launch:
                for other in requires[item.app] where !coordinator.machine(other).isUp {
                    throw Violation("\(item.app) is launched, but \(other) is not up")
                }
                if coordinator.isShuttingDown { throw Violation("\(item.app) is launched in a shutdown") }
            case .signalStop, .tell(.willTerminate):
                guard item.app == stopping || coordinator.isShuttingDown, stopping != nil else { break }
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
        try take(coordinator.shutDown(now: now), for: "shutdown", stopping: nil)
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
