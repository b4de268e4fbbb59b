// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite struct AdviceTests {
    private func fleet(_ apps: AppDefinition...) throws -> Fleet { try Fleet(apps) }

    @Test("advice sends an app where a person could, and is followed when it is there")
    func goals() throws {
        var fleet = try fleet(AppDefinition(name: "web"))
        for (goal, state) in [
            (Goal.active, AppState.active), (.background, .background), (.suspended, .suspended), (.active, .active),
            (.notRunning, .notRunning), (.background, .background),
        ] {
            #expect(!fleet.coordinator.isFollowed(.goal(goal), of: fleet.id("web")))
            try fleet.advise(.goal(goal), "web")
            #expect(fleet.state("web") == state)
            #expect(fleet.coordinator.isFollowed(.goal(goal), of: fleet.id("web")))
        }
        #expect(fleet.refusal(.goal(.inactive), "web")?.contains("through which apps only pass") == true)
    }

    @Test("an app that a policy ended is no app that a person stopped: it comes back, and is not restarted")
    func ended() throws {
        var fleet = try fleet(AppDefinition(name: "web"))
        for state in [Request.start(background: false), .start(background: true), .suspend] {
            try fleet.ask(state == .suspend ? .start(background: true) : state, "web")
            if state == .suspend { try fleet.ask(.suspend, "web") }
            try fleet.advise(.goal(.notRunning), "web")
            let machine = fleet.coordinator.machine(fleet.id("web"))
            #expect(machine.state == .notRunning && machine.lastEnding == .evicted)
            #expect(!machine.isWaitingToLaunch && machine.allowsLaunchByEvent)
        }
        #expect(fleet.refusal(.goal(.notRunning), "web") == "is not running")
    }

    @Test("what a person stopped or force quit only a person starts again")
    func personsOnly() throws {
        var fleet = try fleet(AppDefinition(name: "web"))
        for request in [Request.stop(.stopped), .forceQuit] {
            try fleet.ask(.start(background: false), "web")
            try fleet.ask(request, "web")
            #expect(fleet.refusal(.goal(.active), "web")?.contains("only a user starts it again") == true)
            #expect(fleet.state("web") == .notRunning)
        }
    }

    @Test("a stop that is under way is not made a restart by advice")
    func ending() throws {
        var fleet = try fleet(AppDefinition(name: "web"))
        try fleet.ask(.start(background: false), "web")
        _ = try fleet.coordinator.request(.stop(.stopped), of: fleet.id("web"), now: fleet.now)
        #expect(fleet.refusal(.goal(.active), "web") == "is ending")
    }

    @Test("nothing that a running app requires is suspended or ended; what only sleepers require may sleep")
    func required() throws {
        var fleet = try fleet(AppDefinition(name: "db"), AppDefinition(name: "web", requires: ["db"]))
        try fleet.ask(.start(background: false), "web")
        #expect(fleet.coordinator.isRequired(fleet.id("db")))
        #expect(fleet.refusal(.goal(.suspended), "db") == "is required by web, which runs: it is not suspended")
        #expect(fleet.refusal(.goal(.notRunning), "db") == "is required by web, which runs: it is not ended")
        try fleet.advise(.goal(.background), "db")
        try fleet.advise(.goal(.suspended), "web")
        #expect(!fleet.coordinator.isRequired(fleet.id("db")))
        try fleet.advise(.goal(.suspended), "db")
        #expect(fleet.state("db") == .suspended)
        #expect(fleet.refusal(.goal(.notRunning), "db")?.contains("is required by web") == true)
    }

    @Test("an app is protected by evict = \"never\", and a traced one is left alone")
    func protected() throws {
        var rules = AppRules()
        rules.eviction = .never
        var fleet = try fleet(AppDefinition(name: "web", rules: rules))
        try fleet.ask(.start(background: false), "web")
        #expect(fleet.refusal(.goal(.notRunning), "web")?.contains("evict = \"never\"") == true)
        fleet.tell(.traced(true), "web")
        #expect(fleet.refusal(.goal(.suspended), "web") == "is being debugged: it is left alone")
    }

    @Test("whom a policy suspends while the session is locked comes back with what it requires; not whom a person does")
    func covered() throws {
        var fleet = try fleet(
            AppDefinition(name: "db"),
            AppDefinition(name: "web", requires: ["db"]),
            AppDefinition(name: "shop")
        )
        for name in ["web", "shop"] { try fleet.ask(.start(background: false), name) }
        for name in ["db", "web", "shop"] { try fleet.ask(.cover(begin: true), name) }
        #expect(["db", "web", "shop"].allSatisfy { fleet.state($0) == .background })
        for name in ["web", "shop", "db"] { try fleet.advise(.goal(.suspended), name) }
        try fleet.ask(.suspend, "shop")
        for name in ["web", "db", "shop"] { try fleet.ask(.cover(begin: false), name) }
        #expect(fleet.state("web") == .active && fleet.state("db") != .suspended)
        #expect(fleet.state("shop") == .suspended)
        // Once is enough: what it advises afterwards counts.
        try fleet.advise(.goal(.suspended), "web")
        try fleet.ask(.cover(begin: false), "web")
        #expect(fleet.state("web") == .suspended)
    }

    @Test("a policy whose advice comes while the app is busy is asked again when that is over")
    func askedAgain() throws {
        var rules = AppRules()
        rules.backgroundTime = .seconds(1)
        rules.messageDeadline = .seconds(10)
        var fleet = try fleet(AppDefinition(name: "web", rules: rules))
        try fleet.ask(.start(background: true), "web")
        let id = fleet.id("web")
        func tell(_ event: AppEvent) -> [Action] {
            fleet.coordinator.handle(event, of: id, now: fleet.now).map(\.action)
        }
        fleet.now += .seconds(1)
        #expect(tell(.deadline).contains(.report(.backgroundTimeUsed)))
        for _ in 1...2 {
            // The next message is there before the policy has answered.
            _ = tell(.messageSent)
            #expect(fleet.refusal(.goal(.suspended), "web") == "stays awake until it has answered a message")
            #expect(tell(.messageAnswered) == [.report(.backgroundTimeUsed)])
        }
        // A policy that leaves the app awake is not asked after every message.
        _ = tell(.messageSent)
        #expect(tell(.messageAnswered).isEmpty)
        // What holds the app now was not known when the policy was asked.
        try fleet.ask(.hold(reason: "a look", until: nil), "web")
        #expect(fleet.refusal(.goal(.suspended), "web") != nil)
        let released = try fleet.coordinator.request(.release, of: id, now: fleet.now)
        #expect(released.map(\.action) == [.report(.backgroundTimeUsed)])
        try fleet.advise(.goal(.suspended), "web")
        #expect(fleet.state("web") == .suspended)
    }

    @Test("time in the background is granted anew, and only there")
    func grant() throws {
        var fleet = try fleet(AppDefinition(name: "web"))
        try fleet.ask(.start(background: false), "web")
        #expect(fleet.refusal(.grant(.seconds(60)), "web")?.contains("only an app in the background") == true)
        try fleet.ask(.background, "web")
        try fleet.advise(.grant(.seconds(60)), "web")
        #expect(fleet.coordinator.nextDeadline(fleet.id("web")) == fleet.now + .seconds(60))
        for time in [Duration.seconds(-1), .seconds(400 * 86_400)] {
            #expect(fleet.refusal(.grant(time), "web")?.contains("negative or longer than a year") == true)
        }
    }

    @Test("a planned restart is put off, brought forward or given up; without one there is nothing to advise")
    func restart() throws {
        var fleet = try fleet(AppDefinition(name: "web"))
        let crash = AppEvent.mainExited(.exited(code: 1))
        try fleet.ask(.start(background: false), "web")
        #expect(fleet.refusal(.restart(after: .seconds(1)), "web")?.contains("for a delayed restart") == true)
        fleet.tell(crash, "web")
        try fleet.advise(.restart(after: .seconds(30)), "web")
        #expect(fleet.coordinator.nextDeadline(fleet.id("web")) == fleet.now + .seconds(30))
        try fleet.advise(.restart(after: .zero), "web")
        #expect(fleet.state("web") == .active)
        fleet.tell(crash, "web")
        try fleet.advise(.giveUp, "web")
        let machine = fleet.coordinator.machine(fleet.id("web"))
        #expect(machine.failed && machine.nextDeadline == nil)
        #expect(fleet.refusal(.goal(.active), "web")?.contains("only a user") == true)
        try fleet.ask(.start(background: false), "web")
        #expect(fleet.state("web") == .active)
    }

    @Test("launches wait for a word: admitted they go on, refused they end, and without anybody to ask they go on too")
    func admission() throws {
        var fleet = try fleet(AppDefinition(name: "db"), AppDefinition(name: "web", requires: ["db"]))
        #expect(fleet.coordinator.setAsksForAdmission(true, now: fleet.now) == [])
        let asked = try fleet.coordinator.request(.start(background: false), of: fleet.id("web"), now: fleet.now)
        #expect(asked.map(\.app) == [fleet.id("db")] && asked.map(\.action) == [.askForAdmission(.dependency)])
        #expect(fleet.coordinator.waitsForAdmission(fleet.id("db")))
        #expect(!fleet.coordinator.waitsForAdmission(fleet.id("web")))
        #expect(fleet.refusal(.admit, "web")?.contains("is not waiting for a policy") == true)
        try fleet.advise(.admit, "db")
        #expect(fleet.state("db") == .active && fleet.coordinator.waitsForAdmission(fleet.id("web")))
        try fleet.advise(.refuse, "web")
        #expect(fleet.state("web") == .notRunning)
        #expect(fleet.coordinator.machine(fleet.id("web")).lastEnding == .launchFailed)
        try fleet.ask(.start(background: false), "web")
        #expect(fleet.coordinator.waitsForAdmission(fleet.id("web")))
        fleet.settle(fleet.coordinator.setAsksForAdmission(false, now: fleet.now))
        #expect(fleet.state("web") == .active)
    }

    @Test("a launch that a person takes back while a policy thinks about it does not happen")
    func takenBack() throws {
        var fleet = try fleet(AppDefinition(name: "web"))
        _ = fleet.coordinator.setAsksForAdmission(true, now: fleet.now)
        try fleet.ask(.start(background: false), "web")
        try fleet.ask(.stop(.stopped), "web")
        #expect(fleet.refusal(.admit, "web") != nil)
        #expect(fleet.state("web") == .notRunning && !fleet.coordinator.machine(fleet.id("web")).isWaitingToLaunch)
        try fleet.ask(.start(background: false), "web")
        try fleet.advise(.admit, "web")
        #expect(fleet.state("web") == .active)
    }
}

extension Fleet {
    mutating func advise(_ advice: Advice, _ name: String) throws {
        settle(try coordinator.advise(advice, of: id(name), now: now))
    }

    /// Why advice is not taken; nil when it is. Nothing is carried out.
    func refusal(_ advice: Advice, _ name: String) -> String? {
        do {
            _ = try coordinator.advise(advice, of: id(name), now: now)
            return nil
        } catch {
            return error.description
        }
    }
}
