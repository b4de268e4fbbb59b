// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

/// Several unaware apps, whose processes do at once what they are asked to.
struct Fleet {
    var coordinator: Coordinator
    var now: Duration = .seconds(100)
    /// What happened, as "web active".
    var log: [String] = []

    init(_ apps: [AppDefinition]) throws { coordinator = try Coordinator(apps) }

    func name(_ app: AppID) -> String { coordinator.definition(app).name }
    func state(_ name: String) -> AppState { coordinator.machine(id(name)).state }
    func id(_ name: String) -> AppID { coordinator.id(of: name) ?? -1 }

    mutating func ask(_ request: Request, _ name: String) throws {
        settle(try coordinator.request(request, of: id(name), now: now))
    }

    mutating func tell(_ event: AppEvent, _ name: String) {
        settle(coordinator.handle(event, of: id(name), now: now))
    }

    /// Carries out actions, breadth first, until none is left.
    mutating func settle(_ actions: [AppAction]) {
        var queue = actions
        var next = 0
        while next < queue.count {
            let (app, action) = (queue[next].app, queue[next].action)
            next += 1
            for event in Self.consequences(action) {
                queue += coordinator.handle(event, of: app, now: now)
            }
            switch action {
            case .launch: log.append("\(name(app)) launch")
            case .entered(let state): log.append("\(name(app)) \(state.rawValue)")
            case .signalStop: log.append("\(name(app)) stop")
            case .ended(let ending): log.append("\(name(app)) ended \(ending.reason.rawValue)")
            default: break
            }
        }
    }

    private static func consequences(_ action: Action) -> [AppEvent] {
        switch action {
        case .launch: [.launched]
        case .signalStop: [.mainExited(.signaled(15, coreDumped: false))]
        case .killProcesses: [.mainExited(.signaled(9, coreDumped: false))]
        case .endRemains: [.allGone]
        case .stopProcesses: [.stopConfirmed]
        default: []
        }
    }

    mutating func takeLog(_ kind: String) -> [String] {
        defer { log = [] }
        return log.filter { $0.hasSuffix(" " + kind) }.map { String($0.dropLast(kind.count + 1)) }
    }
}

@Suite("Many apps")
struct CoordinatorTests {
    /// web requires api, api requires db.
    static func tower(_ rules: AppRules = AppRules()) throws -> Fleet {
        try Fleet([
            AppDefinition(name: "web", rules: rules, requires: ["api"]),
            AppDefinition(name: "api", rules: rules, requires: ["db"]),
            AppDefinition(name: "db", rules: rules),
        ])
    }

    @Test("what is on its way to sleep is brought back for those who require it, whether they start or come back")
    func requiredWhileItSettles() throws {
        let apps = [AppDefinition(name: "web", requires: ["db"]), AppDefinition(name: "db")]
        for comesBack in [false, true] {
            var fleet = try Fleet(apps)
            if comesBack {
                try fleet.ask(.start(background: true), "web")
                try fleet.ask(.suspend, "web")
            } else {
                try fleet.ask(.start(background: true), "db")
            }
            try fleet.ask(.suspend, "db")
            #expect(fleet.state("db") == .suspended)
            fleet.tell(.mainExited(.exited(code: 1)), "db")
            fleet.now += .seconds(1)
            fleet.tell(.deadline, "db")
            #expect(fleet.state("db") == .background && fleet.coordinator.machine(fleet.id("db")).goal == .suspended)
            try fleet.ask(comesBack ? .foreground : .start(background: false), "web")
            #expect(fleet.state("web") == .active)
            fleet.now += .seconds(60)
            fleet.tell(.deadline, "db")
            #expect(fleet.state("db") == .background)
        }
    }

    @Test("a start launches what is required first, a stop stops what requires it first")
    func order() throws {
        var fleet = try Self.tower()
        try fleet.ask(.start(background: false), "web")
        #expect(fleet.takeLog("launch") == ["db", "api", "web"])
        try fleet.ask(.stop(.stopped), "db")
        #expect(fleet.takeLog("stop") == ["web", "api", "db"])
        #expect(fleet.coordinator.isEverythingGone)
    }

    @Test("what exits with success is launched with those that require it, and by nothing that these do later")
    func doneRequirement() throws {
        var (once, slow) = (AppRules(), AppRules())
        once.restart = .never
        slow.readiness = .notify
        var fleet = try Fleet([
            AppDefinition(name: "site", requires: ["db", "job"]), AppDefinition(name: "db", rules: slow),
            AppDefinition(name: "job", rules: once),
        ])
        func finish(_ code: Int32) { fleet.tell(.mainExited(.exited(code: code)), "job") }
        // The job is over before the database is ready.
        try fleet.ask(.start(background: false), "site")
        finish(0)
        #expect(fleet.state("job") == .notRunning && fleet.state("site") == .notRunning)
        #expect(fleet.coordinator.missingRequirements(of: fleet.id("site")) == [fleet.id("db")])
        fleet.tell(.ready, "db")
        #expect(fleet.state("site") == .active && fleet.takeLog("launch").sorted() == ["db", "job", "site"])
        for request in [Request.background, .suspend, .resume, .foreground, .suspend, .wake(Wake())] {
            try fleet.ask(request, "site")
            #expect(fleet.takeLog("launch") == [], "\(request)")
        }
        // A launch of the site is another matter, and so is a job that fails.
        try fleet.ask(.restart, "site")
        #expect(fleet.takeLog("launch").sorted() == ["job", "site"])
        finish(1)
        try fleet.ask(.suspend, "site")
        fleet.log = []
        try fleet.ask(.foreground, "site")
        #expect(fleet.takeLog("launch") == ["job"])
    }

    @Test("a cycle is named, and so is a requirement that does not exist; a missing after is nothing")
    func cycles() throws {
        #expect(throws: DependencyError.cycle(["a", "b", "c"])) {
            try Coordinator([
                AppDefinition(name: "a", requires: ["b"]), AppDefinition(name: "b", after: ["c"]),
                AppDefinition(name: "c", requires: ["a"]),
            ])
        }
        #expect(DependencyError.cycle(["a", "b"]).description == "these apps wait for each other: a → b → a")
        #expect(throws: DependencyError.unknown(app: "a", names: "x")) {
            try Coordinator([AppDefinition(name: "a", requires: ["x"])])
        }
        _ = try Coordinator([AppDefinition(name: "a", after: ["x"])])
    }

    @Test("apps launched together keep the order of after, whatever order they are named in")
    func after() throws {
        var fleet = try Fleet([
            AppDefinition(name: "a", after: ["b"]), AppDefinition(name: "b", after: ["c"]), AppDefinition(name: "c"),
        ])
        fleet.settle(fleet.coordinator.launch([(0, true), (1, true), (2, true)], now: fleet.now))
        #expect(fleet.takeLog("launch") == ["c", "b", "a"])
        // But it brings nothing along.
        var alone = try Fleet([AppDefinition(name: "a", after: ["b"]), AppDefinition(name: "b")])
        try alone.ask(.start(background: false), "a")
        #expect(alone.takeLog("launch") == ["a"])
    }

    @Test("what is restarted while an app before it is still ending waits for that one's launch")
    func afterRestart() throws {
        var fleet = try Fleet([
            AppDefinition(name: "a", after: ["b"]), AppDefinition(name: "b", after: ["c"]), AppDefinition(name: "c"),
        ])
        fleet.settle(fleet.coordinator.launch([(0, true), (1, true), (2, true)], now: fleet.now))
        _ = fleet.takeLog("launch")
        #expect(fleet.coordinator.earlierFirst([0, 1, 2]) == [2, 1, 0])
        #expect(fleet.coordinator.earlierFirst([0, 2]) == [2, 0])
        let base = try fleet.coordinator.request(.restart, of: 1, now: fleet.now)
        try fleet.ask(.restart, "a")
        #expect(fleet.takeLog("launch") == [])
        #expect(fleet.coordinator.blockers(0) == ["b"])
        fleet.settle(base)
        #expect(fleet.takeLog("launch") == ["b", "a"])
        // One that is stopped for good is waited for no longer.
        let end = try fleet.coordinator.request(.restart, of: 1, now: fleet.now)
        try fleet.ask(.restart, "a")
        #expect(fleet.takeLog("launch") == [])
        fleet.settle(try fleet.coordinator.request(.stop(.stopped), of: 1, now: fleet.now))
        #expect(fleet.takeLog("launch") == ["a"])
        fleet.settle(end)
        #expect(fleet.takeLog("launch") == [])
    }

    @Test("a failed requirement fails the launch, which is retried once when it is ready")
    func dependencyFailed() throws {
        var rules = AppRules()
        rules.restart = .never
        var fleet = try Fleet([
            AppDefinition(name: "web", requires: ["db", "log"]), AppDefinition(name: "db", rules: rules),
            AppDefinition(name: "log"),
        ])
        let web = fleet.id("web")
        let db = fleet.id("db")
        let actions = try fleet.coordinator.request(.start(background: false), of: web, now: fleet.now)
        #expect(actions.contains { $0.app == db })
        #expect(fleet.coordinator.blockers(web).contains("db"))
        fleet.tell(.launched, "log")
        fleet.tell(.launchFailed, "db")
        #expect(fleet.coordinator.machine(web).lastEnding == .dependencyFailed)
        #expect(fleet.log.filter { $0 == "web ended dependency-failed" }.count == 1)
        // News of another requirement is no reason to try again.
        fleet.tell(.heartbeat, "log")
        #expect(fleet.log.filter { $0 == "web ended dependency-failed" }.count == 1)
        #expect(throws: RequestError.self) { try fleet.coordinator.request(.wake(Wake()), of: web, now: fleet.now) }
        try fleet.ask(.start(background: false), "db")
        #expect(fleet.state("web") == .active)
        #expect(fleet.coordinator.machine(web).incarnation == 1)
    }

    @Test("an app that cannot do without what it requires ends after its crash, and comes back once that is ready")
    func lostRequirement() throws {
        for policy in [RestartPolicy.never, .onFailure, .always] {
            var rules = AppRules()
            rules.restart = policy
            let web = AppDefinition(name: "web", rules: rules, requires: ["pod"])
            var fleet = try Fleet([web, AppDefinition(name: "pod")])
            try fleet.ask(.start(background: false), "web")
            fleet.tell(.mainExited(.exited(code: 1)), "pod")
            fleet.log = []
            try fleet.ask(.stop(.dependencyFailed), "web")
            #expect(fleet.takeLog("ended dependency-failed") == ["web"] && fleet.state("web") == .notRunning)
            #expect(fleet.coordinator.comesBackWithRequirement(fleet.id("web")))
            #expect(fleet.coordinator.bringsOthersBack(fleet.id("pod")))
            fleet.now += .seconds(1)
            fleet.tell(.deadline, "web")
            #expect(fleet.takeLog("launch") == [])
            fleet.tell(.deadline, "pod")
            #expect(fleet.takeLog("launch") == ["pod", "web"])
            #expect(fleet.state("web") == .active && !fleet.coordinator.bringsOthersBack(fleet.id("pod")))
        }
    }

    @Test("an app that ends so slowly that what it requires is ready again before comes back too")
    func lostRequirementSlowly() throws {
        var fleet = try Fleet([AppDefinition(name: "web", requires: ["pod"]), AppDefinition(name: "pod")])
        try fleet.ask(.start(background: true), "web")
        try fleet.ask(.suspend, "web")
        fleet.tell(.mainExited(.exited(code: 1)), "pod")
        let slow = try fleet.coordinator.request(.stop(.dependencyFailed), of: fleet.id("web"), now: fleet.now)
        fleet.now += .seconds(1)
        fleet.tell(.deadline, "pod")
        #expect(fleet.takeLog("launch").last == "pod" && fleet.state("pod") == .active)
        fleet.settle(slow)
        #expect(fleet.takeLog("launch") == ["web"] && fleet.state("web") == .background)
    }

    @Test("what a user starts tries a requirement again that was given up, which a launch at the boot does not")
    func triesAgain() throws {
        var rules = AppRules()
        rules.restart = .onFailure
        rules.backoff.limit = 0
        for request in [Request.start(background: false), .foreground, .restart] {
            var fleet = try Fleet([
                AppDefinition(name: "web", requires: ["api"]), AppDefinition(name: "api", requires: ["db"]),
                AppDefinition(name: "db", rules: rules),
            ])
            try fleet.ask(.start(background: false), "db")
            fleet.tell(.mainExited(.exited(code: 1)), "db")
            #expect(fleet.coordinator.machine(fleet.id("db")).failed)
            fleet.settle(fleet.coordinator.launch(fleet.id("web"), foreground: true, now: fleet.now))
            #expect(fleet.state("web") == .notRunning && fleet.coordinator.machine(fleet.id("db")).failed)
            try fleet.ask(request, "web")
            #expect(["db", "api", "web"].allSatisfy { fleet.state($0) == .active }, "\(request): \(fleet.log)")
        }
    }

    @Test("a restart of a requirement restarts what requires it, in order")
    func restart() throws {
        for request in [Request.restart, .stop(.replaced), .stop(.permissionChanged)] {
            var fleet = try Self.tower()
            try fleet.ask(.start(background: false), "web")
            fleet.log = []
            try fleet.ask(request, "db")
            if request != .restart {
                // Its restart is a deadline of no time at all.
                fleet.tell(.deadline, "db")
            }
            #expect(
                fleet.log.filter { $0.hasSuffix("stop") || $0.hasSuffix("launch") } == [
                    "web stop", "api stop", "db stop", "db launch", "api launch", "web launch",
                ]
            )
            #expect(fleet.state("web") == .active)
        }
    }

    @Test("a crash, and an ending for cause, leave what requires the app running")
    func crashLeaves() throws {
        var fleet = try Self.tower()
        try fleet.ask(.start(background: false), "web")
        fleet.log = []
        fleet.tell(.mainExited(crash), "db")
        #expect(fleet.state("db") == .notRunning)
        #expect(fleet.state("api") == .active && fleet.state("web") == .active)
        try fleet.ask(.stop(.memoryLimit), "api")
        #expect(fleet.log.contains("api ended memory-limit"))
        #expect(fleet.state("web") == .active)
        #expect(fleet.coordinator.machine(fleet.id("api")).isWaitingToLaunch)
    }

    @Test("the foreground wakes suspended requirements first, down to the last")
    func wakes() throws {
        var fleet = try Self.tower()
        try fleet.ask(.start(background: false), "web")
        for name in ["web", "api", "db"] { try fleet.ask(.suspend, name) }
        #expect(fleet.state("db") == .suspended)
        fleet.log = []
        try fleet.ask(.foreground, "web")
        #expect(Array(fleet.log.prefix(3)) == ["db background", "api background", "web background"])
        #expect(fleet.state("web") == .active)
    }

    @Test("a stop overrides a restart that waits, and nothing brings the stopped app back")
    func stopOverridesRestart() throws {
        var rules = AppRules()
        rules.answeredMessages = [.willTerminate]
        var fleet = try Self.tower(rules)
        try fleet.ask(.start(background: false), "web")
        try fleet.ask(.restart, "db")
        try fleet.ask(.stop(.stopped), "db")
        for _ in 0..<3 { for name in ["web", "api", "db"] { fleet.tell(.answered(.willTerminate), name) } }
        #expect(fleet.coordinator.isEverythingGone)
        #expect(["web", "api", "db"].allSatisfy { !fleet.coordinator.machine(fleet.id($0)).isWaitingToLaunch })
    }

    @Test("a start of an app whose stop still waits makes a restart of it, and what waits for its end is not held up")
    func startOfHeld() throws {
        var rules = AppRules()
        rules.answeredMessages = [.willTerminate]
        var fleet = try Self.tower(rules)
        try fleet.ask(.start(background: false), "web")
        try fleet.ask(.stop(.stopped), "db")
        // api waits for web to end.
        for request in [Request.background, .suspend, .resume, .wake(Wake()), .interrupt(begin: true)] {
            #expect(throws: RequestError.self) { try fleet.ask(request, "api") }
        }
        try fleet.ask(.foreground, "api")
        for name in ["web", "api", "db"] { fleet.tell(.answered(.willTerminate), name) }
        #expect(fleet.state("web") == .notRunning)
        #expect(fleet.state("api") == .active && fleet.coordinator.machine(fleet.id("api")).incarnation == 2)
        #expect(fleet.state("db") == .active && fleet.coordinator.machine(fleet.id("db")).incarnation == 2)
    }

    @Test("a goal that waits for a requirement ends with the app, and with the wish that the requirement sleeps")
    func waitingGoal() throws {
        var slow = AppRules()
        slow.restart = .never
        for way in [0, 1] {
            var fleet = try Fleet([
                AppDefinition(name: "web", rules: slow, requires: ["db"]), AppDefinition(name: "db"),
            ])
            try fleet.ask(.start(background: true), "web")
            // The requirement is on its way again, and takes its time.
            fleet.tell(.mainExited(crash), "db")
            try fleet.ask(.foreground, "web")
            #expect(fleet.coordinator.isHeld(fleet.id("web")))
            if way == 0 {
                try fleet.ask(.suspend, "db")
                #expect(fleet.state("web") == .active)
            } else {
                fleet.tell(.mainExited(crash), "web")
                #expect(fleet.state("web") == .notRunning)
            }
            #expect(!fleet.coordinator.isHeld(fleet.id("web")))
        }
    }

    @Test("stopping an app also stops a dependent that is about to be restarted")
    func stopOfCrashed() throws {
        var fleet = try Self.tower()
        try fleet.ask(.start(background: false), "web")
        // web's main process is gone, but others of it are not yet.
        _ = fleet.coordinator.handle(.mainExited(crash), of: fleet.id("web"), now: fleet.now)
        try fleet.ask(.stop(.stopped), "api")
        fleet.tell(.allGone, "web")
        #expect(fleet.state("api") == .notRunning)
        #expect(!fleet.coordinator.machine(fleet.id("web")).isWaitingToLaunch)
    }

    @Test("a shutdown goes in reverse order, after included, and cannot be talked out of")
    func shutdown() throws {
        var rules = AppRules()
        rules.answeredMessages = [.willTerminate]
        var fleet = try Fleet([
            AppDefinition(name: "db"), AppDefinition(name: "web", rules: rules, requires: ["db"]),
            AppDefinition(name: "cron", rules: rules, after: ["web"]),
        ])
        for name in ["web", "cron"] { try fleet.ask(.start(background: false), name) }
        fleet.log = []
        fleet.settle(fleet.coordinator.shutDown(now: fleet.now))
        for request in [
            Request.start(background: false), .start(background: true), .foreground, .restart, .wake(Wake()),
            .background,
            .suspend, .resume, .interrupt(begin: true),
        ] {
            for app in 0..<3 {
                #expect(throws: RequestError.self) { try fleet.coordinator.request(request, of: app, now: fleet.now) }
            }
        }
        #expect(fleet.state("web") == .active)
        fleet.tell(.answered(.willTerminate), "cron")
        #expect(fleet.coordinator.machine(fleet.id("web")).transition == .terminating)
        fleet.tell(.answered(.willTerminate), "web")
        #expect(fleet.takeLog("ended shutdown") == ["cron", "web", "db"])
        #expect(fleet.coordinator.isEverythingGone)
    }

    @Test("a chain of 10,000 apps is launched, woken and stopped without deep recursion")
    func chain() throws {
        let count = 10_000
        let apps = (0..<count).map { AppDefinition(name: "\($0)", requires: $0 + 1 < count ? ["\($0 + 1)"] : []) }
        var fleet = try Fleet(apps)
        try fleet.ask(.start(background: false), "0")
        #expect(fleet.takeLog("launch").first == "\(count - 1)")
        #expect(fleet.state("0") == .active)
        for app in 0..<count { try fleet.ask(.suspend, "\(app)") }
        try fleet.ask(.foreground, "0")
        #expect(fleet.state("\(count - 1)") == .background && fleet.state("0") == .active)
        try fleet.ask(.stop(.stopped), "\(count - 1)")
        #expect(fleet.takeLog("stop").first == "0")
        #expect(fleet.coordinator.isEverythingGone)
    }

    @Test("what an event woke for another app sleeps again when that one does", arguments: [false, true])
    func broughtForOthers(isEvicted: Bool) throws {
        var rules = AppRules()
        rules.eventTime = .seconds(2)
        var fleet = try Fleet([
            AppDefinition(name: "web", rules: rules, requires: ["db"]), AppDefinition(name: "db", rules: rules),
        ])
        func pass(_ time: Duration) {
            fleet.now += time
            for name in ["web", "db"] {
                let due = fleet.coordinator.nextDeadline(fleet.id(name)).map { $0 <= fleet.now } ?? false
                if due { fleet.tell(.deadline, name) }
            }
        }
        try fleet.ask(.start(background: true), "web")
        try fleet.ask(.suspend, "web")
        try fleet.ask(.suspend, "db")
        #expect(fleet.state("web") == .suspended && fleet.state("db") == .suspended)
        if isEvicted { try fleet.ask(.evict, "db") }
        try fleet.ask(.wake(Wake()), "web")
        if isEvicted {
            pass(.seconds(1))
            fleet.tell(.ready, "db")
        }
        #expect(fleet.state("web") == .background && fleet.state("db") == .background)
        // While the other is awake it stays, also beyond its own time.
        pass(.seconds(1))
        try fleet.ask(.wake(Wake()), "web")
        pass(.milliseconds(1_900))
        #expect(fleet.state("web") == .background && fleet.state("db") == .background)
        pass(.milliseconds(200))
        #expect(fleet.state("web") == .suspended && fleet.state("db") == .background)
        // Needed again before its time is over, it goes on.
        pass(.seconds(1))
        try fleet.ask(.wake(Wake()), "web")
        pass(.milliseconds(1_500))
        #expect(fleet.state("web") == .background && fleet.state("db") == .background)
        pass(.milliseconds(600))
        #expect(fleet.state("web") == .suspended && fleet.state("db") == .background)
        pass(.seconds(2))
        #expect(fleet.state("db") == .suspended)
        // A person who wants it awake is obeyed.
        try fleet.ask(.wake(Wake()), "web")
        try fleet.ask(.background, "db")
        pass(.seconds(2))
        pass(.seconds(10))
        #expect(fleet.state("web") == .suspended && fleet.state("db") == .background)
    }
}
