// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("Oneshots that other apps require")
struct OneshotTests {
    private static func rules(_ configure: (inout AppRules) -> Void = { _ in }) -> AppRules {
        var rules = AppRules()
        rules.isOneshot = true
        rules.restart = .never
        configure(&rules)
        return rules
    }

    /// site requires job, a oneshot, and the other apps.
    private static func fleet(_ others: [AppDefinition] = []) throws -> Fleet {
        let site = AppDefinition(name: "site", requires: ["job"] + others.map(\.name))
        return try Fleet([site, AppDefinition(name: "job", rules: rules())] + others)
    }

    private static func finish(_ fleet: inout Fleet, _ code: Int32 = 0) {
        fleet.tell(.mainExited(.exited(code: code)), "job")
    }

    @Test("each launch of an app launches the oneshot that it requires, and waits for it; nothing else does")
    func everyLaunch() throws {
        var fleet = try Self.fleet()
        func isLaunched(_ cause: String) {
            #expect(fleet.takeLog("launch") == ["job"] && fleet.state("site") == .notRunning, "\(cause)")
            #expect(fleet.coordinator.missingRequirements(of: fleet.id("site")) == [fleet.id("job")], "\(cause)")
            Self.finish(&fleet)
            #expect(fleet.takeLog("launch") == ["site"] && fleet.state("site") == .active, "\(cause)")
        }
        try fleet.ask(.start(background: false), "site")
        isLaunched("first start")
        try fleet.ask(.restart, "site")
        isLaunched("restart")
        try fleet.ask(.stop(.stopped), "site")
        try fleet.ask(.start(background: false), "site")
        isLaunched("stop and start")
        try fleet.ask(.stop(.stopped), "job")
        try fleet.ask(.start(background: false), "site")
        isLaunched("stop of the oneshot, and start")
        fleet.tell(.mainExited(crash), "site")
        fleet.now += .seconds(1)
        fleet.tell(.deadline, "site")
        isLaunched("crash")
        try fleet.ask(.restart, "job")
        isLaunched("restart of the oneshot")
        try fleet.ask(.stop(.replaced), "site")
        fleet.tell(.deadline, "site")
        isLaunched("another configuration")
        for request in [Request.background, .suspend, .resume, .foreground, .suspend, .wake(Wake())] {
            try fleet.ask(request, "site")
            #expect(fleet.takeLog("launch") == [], "\(request)")
        }
    }

    @Test("if a oneshot fails the second time, the launch fails, and is retried when the oneshot has done its work")
    func failsLater() throws {
        var fleet = try Self.fleet()
        try fleet.ask(.start(background: false), "site")
        Self.finish(&fleet)
        try fleet.ask(.restart, "site")
        fleet.log = []
        Self.finish(&fleet, 1)
        #expect(fleet.state("site") == .notRunning)
        #expect(fleet.coordinator.machine(fleet.id("site")).lastEnding == .dependencyFailed)
        try fleet.ask(.start(background: false), "job")
        Self.finish(&fleet)
        #expect(fleet.takeLog("launch") == ["job", "site"] && fleet.state("site") == .active)
    }

    @Test("a oneshot that waits for its own requirement has not done its work, nor if that one fails")
    func waits() throws {
        var slow = AppRules()
        slow.readiness = .notify
        slow.restart = .never
        var fleet = try Fleet([
            AppDefinition(name: "site", requires: ["job"]),
            AppDefinition(name: "job", rules: Self.rules(), requires: ["db"]), AppDefinition(name: "db", rules: slow),
        ])
        try fleet.ask(.start(background: false), "site")
        fleet.tell(.ready, "db")
        Self.finish(&fleet)
        #expect(fleet.state("site") == .active)
        for name in ["site", "db"] { try fleet.ask(.stop(.stopped), name) }
        fleet.log = []
        try fleet.ask(.start(background: false), "site")
        #expect(fleet.takeLog("launch") == ["db"] && !fleet.coordinator.machine(fleet.id("job")).isUp)
        fleet.tell(.mainExited(.exited(code: 1)), "db")
        #expect(fleet.takeLog("launch") == [])
        #expect(!fleet.coordinator.machine(fleet.id("job")).isUp && fleet.state("site") == .notRunning)
    }

    @Test("a launch that fails because of another app is retried without launching the oneshot again and again")
    func noLoop() throws {
        var rules = AppRules()
        rules.restart = .onFailure
        rules.readiness = .notify
        rules.backoff.limit = 0
        for isLostBefore in [false, true] {
            var fleet = try Self.fleet([AppDefinition(name: "db", rules: rules)])
            if isLostBefore {
                try fleet.ask(.start(background: false), "db")
                fleet.tell(.mainExited(crash), "db")
                fleet.settle(fleet.coordinator.launch(fleet.id("site"), foreground: true, now: fleet.now))
                #expect(fleet.takeLog("launch") == ["db"])
                try fleet.ask(.start(background: false), "job")
            } else {
                try fleet.ask(.start(background: false), "site")
                fleet.tell(.mainExited(crash), "db")
            }
            #expect(fleet.coordinator.machine(fleet.id("db")).failed)
            #expect(fleet.coordinator.machine(fleet.id("site")).lastEnding == .dependencyFailed)
            fleet.log = []
            Self.finish(&fleet)
            #expect(fleet.takeLog("launch") == [] && fleet.state("job") == .notRunning)
            try fleet.ask(.start(background: false), "db")
            fleet.tell(.ready, "db")
            // What the first attempt launched has done its work for this launch.
            if isLostBefore { Self.finish(&fleet) }
            #expect(fleet.takeLog("launch") == (isLostBefore ? ["db", "job", "site"] : ["db", "site"]))
            #expect(fleet.state("site") == .active)
        }
    }

    @Test("apps that are launched together wait for one run of the oneshot that they require")
    func together() throws {
        var fleet = try Fleet([
            AppDefinition(name: "a", requires: ["job"]), AppDefinition(name: "b", requires: ["a", "job"]),
            AppDefinition(name: "job", rules: Self.rules()),
        ])
        fleet.settle(fleet.coordinator.launch([(0, true), (1, true), (2, true)], now: fleet.now))
        Self.finish(&fleet)
        #expect(fleet.takeLog("launch") == ["job", "a", "b"])
        try fleet.ask(.restart, "job")
        Self.finish(&fleet)
        #expect(fleet.takeLog("launch") == ["job", "a", "b"])
    }
}
