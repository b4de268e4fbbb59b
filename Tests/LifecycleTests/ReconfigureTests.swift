// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

extension Fleet {
    /// Goes by the definitions; those that are new are launched into the foreground.
    mutating func reconfigure(_ apps: [AppDefinition], replacing names: Set<String> = []) throws {
        let changes = apps.map { app in
            var change = AppChange(app, launchesNew: true)
            change.isReplaced = names.contains(app.name)
            return change
        }
        settle(try coordinator.reconfigure(changes, now: now))
    }

    func isThere(_ name: String) -> Bool { coordinator.id(of: name) != nil }
}

@Suite("A configuration that changes under running apps")
struct ReconfigureTests {
    private static func app(_ name: String, _ requires: [String] = [], grace: Int = 5) -> AppDefinition {
        var rules = AppRules()
        rules.grace = .seconds(grace)
        return AppDefinition(name: name, rules: rules, requires: requires)
    }

    private static func fleet(_ apps: [AppDefinition]) throws -> Fleet {
        var fleet = try Fleet(apps)
        fleet.settle(fleet.coordinator.launch(apps.indices.map { ($0, true) }, now: fleet.now))
        fleet.log = []
        return fleet
    }

    @Test("what is the same is not touched, and rules that changed count without a restart")
    func live() throws {
        var fleet = try Self.fleet([Self.app("a"), Self.app("b", ["a"])])
        _ = fleet.coordinator.takeTouched()
        try fleet.reconfigure([Self.app("a"), Self.app("b", ["a"], grace: 30)])
        #expect(fleet.log.isEmpty)
        #expect(fleet.coordinator.takeTouched() == [fleet.id("b")])
        #expect(fleet.coordinator.machine(fleet.id("b")).rules.grace == .seconds(30))
        #expect(fleet.coordinator.machine(fleet.id("b")).incarnation == 1)
        _ = try fleet.coordinator.request(.stop(.stopped), of: fleet.id("b"), now: fleet.now)
        #expect(fleet.coordinator.nextDeadline(fleet.id("b")) == fleet.now + .seconds(30))
    }

    @Test("rules that need a launch wait for the end of the incarnation, or count at once where there is none")
    func nextLaunch() throws {
        var fleet = try Self.fleet([Self.app("a"), Self.app("b")])
        try fleet.ask(.stop(.stopped), "b")
        var oneshot = AppRules()
        oneshot.isOneshot = true
        let changes = ["a", "b"].map { name in
            var change = AppChange(AppDefinition(name: name, rules: oneshot))
            change.liveRules = AppRules()
            return change
        }
        fleet.settle(try fleet.coordinator.reconfigure(changes, now: fleet.now))
        #expect(!fleet.coordinator.machine(fleet.id("a")).rules.isOneshot)
        #expect(fleet.coordinator.machine(fleet.id("b")).rules.isOneshot)
        fleet.tell(.mainExited(done), "a")
        #expect(fleet.coordinator.machine(fleet.id("a")).rules.isOneshot)
        #expect(!fleet.coordinator.machine(fleet.id("a")).isDone)
    }

    @Test("new apps are launched after what they require, old and new")
    func added() throws {
        var fleet = try Self.fleet([Self.app("db"), Self.app("other")])
        try fleet.ask(.stop(.stopped), "db")
        fleet.log = []
        try fleet.reconfigure([
            Self.app("web", ["api"]), Self.app("api", ["db"]), Self.app("db"), Self.app("other"),
        ])
        #expect(fleet.log.filter { $0.hasPrefix("other") }.isEmpty)
        #expect(fleet.takeLog("launch") == ["db", "api", "web"])
        #expect(fleet.state("web") == .active)
    }

    @Test("removed apps are stopped, dependents first, and are forgotten when they are gone")
    func removed() throws {
        var fleet = try Self.fleet([
            Self.app("db"), Self.app("api", ["db"]), Self.app("web", ["api"]), Self.app("stays"),
        ])
        let old = ["db", "api", "web"].map { fleet.id($0) }
        try fleet.reconfigure([Self.app("stays")])
        #expect(fleet.takeLog("ended stopped") == ["web", "api", "db"])
        #expect(fleet.coordinator.takeForgotten() == old)
        #expect(fleet.coordinator.takeForgotten() == [])
        for (name, id) in zip(["db", "api", "web"], old) {
            #expect(!fleet.isThere(name) && !fleet.coordinator.exists(id))
        }
        #expect(fleet.state("stays") == .active)
        // Vacant places are used again, the first ones first.
        try fleet.reconfigure([Self.app("stays"), Self.app("new"), Self.app("newer")])
        #expect([fleet.id("new"), fleet.id("newer"), fleet.id("stays")] == [0, 1, 3])
        #expect(fleet.coordinator.machine(0).incarnation == 1)
        #expect(fleet.coordinator.count == 4)
    }

    @Test("a new app that takes the place of a removed one is launched when that one is forgotten, or comes back")
    func follows() throws {
        for comesBack in [false, true] {
            var fleet = try Self.fleet([Self.app("old"), Self.app("web")])
            let old = fleet.id("old")
            func change(_ name: String, _ follows: [String] = []) -> AppChange {
                var change = AppChange(Self.app(name), launchesNew: true)
                change.follows = follows
                return change
            }
            // Its process takes its time.
            var actions = try fleet.coordinator.reconfigure(
                [change("web"), change("new", ["old", "web", "none"]), change("other")],
                now: fleet.now
            )
            actions.removeAll { $0.app == old }
            fleet.settle(actions)
            #expect(fleet.takeLog("launch") == ["other"] && fleet.coordinator.blockers(fleet.id("new")) == ["old"])
            if comesBack {
                fleet.settle(
                    try fleet.coordinator.reconfigure(
                        [change("web"), change("new"), change("other"), change("old")],
                        now: fleet.now
                    )
                )
                #expect(fleet.takeLog("launch") == ["new"])
                continue
            }
            fleet.tell(.mainExited(.signaled(15, coreDumped: false)), "old")
            #expect(fleet.takeLog("launch") == [])
            #expect(fleet.coordinator.takeForgotten() == [old])
            fleet.settle(fleet.coordinator.launchFollowers(now: fleet.now))
            #expect(fleet.takeLog("launch") == ["new"])
        }
    }

    @Test("a suspended app that is removed is stopped as by a person")
    func removedSuspended() throws {
        var fleet = try Self.fleet([Self.app("a")])
        try fleet.ask(.suspend, "a")
        let id = fleet.id("a")
        let actions = try fleet.coordinator.reconfigure([], now: fleet.now)
        #expect(actions.map(\.action) == [.signalStop, .continueProcesses, .entered(.background)])
        #expect(fleet.coordinator.isLeaving(id))
        #expect(fleet.coordinator.takeForgotten() == [])
        fleet.settle(actions)
        #expect(fleet.coordinator.takeForgotten() == [id])
    }

    @Test("an id is given to nobody else while anything of its app lives")
    func ids() throws {
        var fleet = try Self.fleet([Self.app("a")])
        let ending = try fleet.coordinator.reconfigure([], now: fleet.now)
        try fleet.reconfigure([Self.app("b")])
        #expect(fleet.id("a") == 0 && fleet.id("b") == 1)
        for request in [
            Request.start(background: false), .restart, .foreground, .background, .suspend, .resume, .wake(Wake()),
            .reset,
        ] {
            #expect(throws: RequestError.self) { try fleet.coordinator.request(request, of: 0, now: fleet.now) }
        }
        _ = try fleet.coordinator.request(.forceQuit, of: 0, now: fleet.now)
        fleet.settle(ending)
        #expect(fleet.coordinator.takeForgotten() == [0])
        try fleet.reconfigure([Self.app("b"), Self.app("c")])
        #expect(fleet.id("c") == 0 && fleet.id("b") == 1)
    }

    @Test("an app that comes back while it is ending is launched again, as it is said now")
    func back() throws {
        var fleet = try Self.fleet([Self.app("a")])
        let ending = try fleet.coordinator.reconfigure([], now: fleet.now)
        var change = AppChange(Self.app("a", grace: 9), launchesNew: false)
        change.liveRules = AppRules()
        let actions = try fleet.coordinator.reconfigure([change], now: fleet.now)
        #expect(actions.isEmpty)
        fleet.settle(ending)
        #expect(fleet.id("a") == 0)
        #expect(fleet.state("a") == .background)
        #expect(fleet.coordinator.machine(0).incarnation == 2)
        #expect(fleet.coordinator.machine(0).rules.grace == .seconds(9))
        #expect(fleet.coordinator.takeForgotten() == [])
    }

    @Test("an app that comes back before its stop could begin is stopped all the same, and launched again")
    func backWhileHeld() throws {
        var fleet = try Self.fleet([Self.app("db"), Self.app("web", ["db"])])
        let ending = try fleet.coordinator.reconfigure([], now: fleet.now)
        #expect(ending.allSatisfy { $0.app == fleet.id("web") })
        let more = try fleet.coordinator.reconfigure([AppChange(Self.app("db"), launchesNew: true)], now: fleet.now)
        let web = fleet.id("web")
        fleet.settle(ending + more)
        #expect(fleet.takeLog("ended stopped") == ["web", "db"])
        #expect(fleet.state("db") == .active)
        #expect(fleet.coordinator.machine(fleet.id("db")).incarnation == 2)
        #expect(fleet.coordinator.takeForgotten() == [web])
    }

    @Test("an on-demand app that comes back while it is ending rests, and events may launch it")
    func backOnDemand() throws {
        var fleet = try Self.fleet([Self.app("a")])
        let ending = try fleet.coordinator.reconfigure([], now: fleet.now)
        fleet.settle(try fleet.coordinator.reconfigure([AppChange(Self.app("a"))], now: fleet.now))
        fleet.settle(ending)
        #expect(fleet.state("a") == .notRunning)
        #expect(fleet.coordinator.takeForgotten() == [])
        #expect(fleet.coordinator.machine(0).allowsLaunchByEvent)
    }

    @Test("replaced apps end after what requires them and keep their goals, as do those that are restarted with them")
    func replaced() throws {
        var fleet = try Self.fleet([
            Self.app("db"), Self.app("api", ["db"]), Self.app("web", ["api"]), Self.app("other"), Self.app("cold"),
        ])
        try fleet.ask(.background, "api")
        try fleet.ask(.suspend, "cold")
        fleet.log = []
        let all = [
            Self.app("db"), Self.app("api", ["db"]), Self.app("web", ["api"]), Self.app("other"), Self.app("cold"),
        ]
        try fleet.reconfigure(all, replacing: ["db", "api", "cold"])
        for _ in 0..<3 { for name in ["db", "api", "web", "cold"] { fleet.tell(.deadline, name) } }
        #expect(fleet.log.filter { $0.hasPrefix("cold ended") } == ["cold ended replaced"])
        // Nothing says when it has begun its work.
        #expect(fleet.state("cold") == .background)
        fleet.now += .seconds(5)
        fleet.tell(.deadline, "cold")
        #expect(fleet.state("cold") == .suspended)
        #expect(
            fleet.log.filter { !$0.hasPrefix("cold") }.filter { $0.contains(" ended ") || $0.hasSuffix(" launch") } == [
                "web ended stopped", "api ended replaced", "db ended replaced",
                "db launch", "api launch", "web launch",
            ]
        )
        #expect(fleet.coordinator.machine(fleet.id("api")).goal == .background)
        #expect(fleet.state("api") == .background)
        #expect(fleet.state("web") == .active)
        #expect(fleet.coordinator.machine(fleet.id("other")).incarnation == 1)
    }

    @Test("a replaced app that has gone down is launched, one that was stopped or evicted is not")
    func down() throws {
        var fleet = try Self.fleet([Self.app("exited"), Self.app("stopped"), Self.app("evicted"), Self.app("same")])
        for name in ["exited", "same"] {
            fleet.tell(.mainExited(.exited(code: 0)), name)
            fleet.tell(.allGone, name)
        }
        try fleet.ask(.stop(.stopped), "stopped")
        try fleet.ask(.stop(.evicted), "evicted")
        fleet.log = []
        let names = ["exited", "stopped", "evicted", "same"]
        #expect(names.filter { fleet.coordinator.machine(fleet.id($0)).isDown } == ["exited", "same"])
        try fleet.reconfigure(names.map { Self.app($0) }, replacing: ["exited", "stopped", "evicted"])
        #expect(fleet.log.filter { $0.hasSuffix(" launch") } == ["exited launch"])
    }

    @Test("a job that has exited with success, and is never restarted, is not launched when it is replaced")
    func exited() throws {
        var rules = AppRules()
        rules.restart = .never
        let apps = ["done", "failed"].map { AppDefinition(name: $0, rules: rules) }
        var fleet = try Self.fleet(apps)
        for (name, code) in [("done", Int32(0)), ("failed", 3)] {
            fleet.tell(.mainExited(.exited(code: code)), name)
            fleet.tell(.allGone, name)
        }
        fleet.log = []
        try fleet.reconfigure(apps, replacing: ["done", "failed"])
        #expect(fleet.log.filter { $0.hasSuffix(" launch") } == ["failed launch"])
    }

    @Test("a person's stop that waits is not turned into a restart")
    func stopWins() throws {
        var fleet = try Self.fleet([Self.app("db"), Self.app("web", ["db"])])
        let ending = try fleet.coordinator.request(.stop(.stopped), of: fleet.id("db"), now: fleet.now)
        try fleet.reconfigure([Self.app("db"), Self.app("web", ["db"])], replacing: ["db", "web"])
        fleet.settle(ending)
        for name in ["db", "web"] { fleet.tell(.deadline, name) }
        #expect(fleet.coordinator.isEverythingGone)
    }

    @Test("cycles and requirements that do not exist change nothing")
    func invalid() throws {
        var fleet = try Self.fleet([Self.app("a"), Self.app("b")])
        #expect(throws: DependencyError.cycle(["a", "c"])) {
            try fleet.reconfigure([Self.app("a", ["c"]), Self.app("c", ["a"])])
        }
        #expect(throws: DependencyError.unknown(app: "a", names: "b")) { try fleet.reconfigure([Self.app("a", ["b"])]) }
        #expect(fleet.state("b") == .active)
        #expect(!fleet.isThere("c"))
        #expect(!fleet.coordinator.isLeaving(fleet.id("b")))
    }

    @Test("what waited for a requirement that is none any more goes on")
    func waits() throws {
        var slow = AppRules()
        slow.readiness = .notify
        slow.restart = .never
        var fleet = try Fleet([
            AppDefinition(name: "db", rules: slow), AppDefinition(name: "web", requires: ["db"]),
            AppDefinition(name: "cron", rules: slow), AppDefinition(name: "late", requires: ["cron"]),
        ])
        try fleet.ask(.start(background: false), "web")
        #expect(fleet.coordinator.blockers(fleet.id("web")) == ["db"])
        // One whose launch failed for its requirement.
        try fleet.ask(.start(background: false), "late")
        fleet.tell(.mainExited(done), "cron")
        #expect(fleet.coordinator.machine(fleet.id("late")).lastEnding == .dependencyFailed)
        fleet.settle(
            try fleet.coordinator.reconfigure(
                [
                    AppDefinition(name: "db", rules: slow), AppDefinition(name: "web"),
                    AppDefinition(name: "cron", rules: slow), AppDefinition(name: "late"),
                ].map { AppChange($0) },
                now: fleet.now
            )
        )
        #expect(fleet.state("web") == .active)
        #expect(fleet.state("late") == .active)
        #expect(fleet.coordinator.machine(fleet.id("db")).transition == .launching)
    }

    @Test("one that is added again while it is ending waits for what it requires now, which ends after it")
    func addedAgain() throws {
        var fleet = try Fleet([Self.app("a"), Self.app("b")])
        fleet.settle(try fleet.coordinator.add(AppChange(Self.app("scene", ["a"])), now: fleet.now))
        try fleet.ask(.foreground, "scene")
        let ending = fleet.coordinator.remove(fleet.id("scene"), now: fleet.now)
        #expect(fleet.coordinator.isLeaving(fleet.id("scene")))
        fleet.settle(try fleet.coordinator.add(AppChange(Self.app("scene", ["b"])), now: fleet.now))
        #expect(fleet.coordinator.requirements(of: fleet.id("scene")) == [fleet.id("b")])
        fleet.settle(ending)
        #expect(fleet.state("scene") == .notRunning)
        _ = fleet.takeLog("launch")
        try fleet.ask(.foreground, "scene")
        #expect(fleet.takeLog("launch") == ["b", "scene"])
        try fleet.ask(.stop(.stopped), "a")
        #expect(fleet.takeLog("stop") == ["a"])
        try fleet.ask(.stop(.stopped), "b")
        #expect(fleet.takeLog("stop") == ["scene", "b"])
    }

    @Test("the stop of what an app required does not wait for it once it is added again without that")
    func addedAgainWithout() throws {
        var fleet = try Fleet([Self.app("a"), Self.app("b")])
        fleet.settle(try fleet.coordinator.add(AppChange(Self.app("scene", ["a"])), now: fleet.now))
        try fleet.ask(.foreground, "scene")
        let ending = fleet.coordinator.remove(fleet.id("scene"), now: fleet.now)
        try fleet.ask(.stop(.stopped), "a")
        #expect(fleet.state("a") == .active, "it waits for the scene")
        _ = fleet.takeLog("stop")
        fleet.settle(try fleet.coordinator.add(AppChange(Self.app("scene")), now: fleet.now))
        #expect(fleet.takeLog("stop") == ["a"])
        #expect(fleet.state("a") == .notRunning)
        fleet.settle(ending)
        try fleet.ask(.foreground, "scene")
        #expect(fleet.takeLog("launch") == ["scene"])
    }

    @Test("an armed watchdog takes the new interval at the next heartbeat, and is off at once without one")
    func watchdog() throws {
        func app(_ seconds: Int?) -> AppDefinition {
            var rules = AppRules()
            rules.watchdog = seconds.map { .seconds($0) }
            return AppDefinition(name: "a", rules: rules)
        }
        var fleet = try Self.fleet([app(10)])
        let start = fleet.now
        try fleet.reconfigure([app(20)])
        #expect(fleet.coordinator.nextDeadline(0) == start + .seconds(10))
        fleet.now += .seconds(1)
        fleet.tell(.heartbeat, "a")
        #expect(fleet.coordinator.nextDeadline(0) == fleet.now + .seconds(20))
        try fleet.reconfigure([app(nil)])
        #expect(fleet.coordinator.nextDeadline(0) == nil)
        // An interval that the app chose itself stays until its end.
        fleet.tell(.watchdogInterval(.seconds(3)), "a")
        try fleet.reconfigure([app(40)])
        fleet.tell(.heartbeat, "a")
        #expect(fleet.coordinator.nextDeadline(0) == fleet.now + .seconds(3))
        try fleet.ask(.restart, "a")
        #expect(fleet.coordinator.nextDeadline(0) == fleet.now + .seconds(40))
    }

    @Test("a shutdown is not disturbed, and ends what is leaving too")
    func shutdown() throws {
        var rules = AppRules()
        rules.answeredMessages = [.willTerminate]
        var fleet = try Fleet([AppDefinition(name: "db", rules: rules), AppDefinition(name: "web", requires: ["db"])])
        try fleet.ask(.start(background: false), "web")
        let ending = try fleet.coordinator.reconfigure([], now: fleet.now)
        fleet.settle(fleet.coordinator.shutDown(now: fleet.now))
        #expect(try fleet.coordinator.reconfigure([AppChange(Self.app("x"), launchesNew: true)], now: fleet.now) == [])
        #expect(!fleet.isThere("x"))
        fleet.settle(ending)
        fleet.tell(.answered(.willTerminate), "db")
        #expect(fleet.coordinator.isEverythingGone)
    }
}
