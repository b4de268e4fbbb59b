// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@Suite("Scenes inside an app")
struct SceneTests {
    /// An app with scenes whose delegate hears; each message to a scene is answered when a test says so.
    private struct Stage {
        var bench: Bench
        var told: [String] = []

        init(_ configure: (inout AppRules) -> Void = { _ in }) {
            bench = Bench { rules in
                rules.readiness = .delegate
                rules.hasScenes = true
                configure(&rules)
            }
        }

        var machine: AppMachine { bench.machine }

        func state(_ id: SceneID) -> SceneState { machine.sceneMachines.first { $0.id == id }?.state ?? .unattached }

        /// Has it done, and says what came of it beside what the app is told.
        @discardableResult
        mutating func take(_ actions: [Action]) -> [Action] {
            var others: [Action] = []
            for action in actions {
                switch action {
                case .tellScene(let id, let message): told.append("\(id) \(message.rawValue)")
                case .tell(let message): told.append(message.rawValue)
                case .requestLaunch: take(bench.machine.permitLaunch(now: bench.now))
                default: others.append(action)
                }
            }
            return others
        }

        @discardableResult
        mutating func ask(_ request: Request) throws -> [Action] { take(try bench.ask(request)) }

        @discardableResult
        mutating func tell(_ event: AppEvent) -> [Action] { take(bench.tell(event)) }

        @discardableResult
        mutating func advance(_ time: Duration) -> [Action] { take(bench.advance(time)) }

        /// Answers what is asked now.
        @discardableResult
        mutating func answer(failed: Bool = false) -> [Action] {
            if let scene = machine.sceneMachines.first(where: { $0.awaiting != nil }), let message = scene.awaiting {
                return tell(.scene(scene.id, .answered(message, failed: failed)))
            }
            if let message = machine.awaitedMessage { return tell(.answered(message)) }
            return []
        }

        mutating func answerAll() {
            for _ in 0..<100
            where machine.awaitedMessage != nil || machine.sceneMachines.contains(where: { $0.awaiting != nil }) {
                answer()
            }
        }

        /// The app runs, and what was wanted of it is done.
        mutating func comeUp() {
            tell(.launched)
            tell(.delegate(attached: true))
            answerAll()
        }

        /// What the app was told since the last time.
        mutating func heard() -> [String] {
            defer { told = [] }
            return told
        }
    }

    private func stage(foreground ids: [SceneID], _ configure: (inout AppRules) -> Void = { _ in }) throws -> Stage {
        var stage = Stage(configure)
        for id in ids { try stage.ask(.scene(id, .active)) }
        stage.comeUp()
        _ = stage.heard()
        return stage
    }

    @Test("the first one that is opened launches the app, and hears in its place that it comes to the foreground")
    func launch() throws {
        var stage = Stage()
        try stage.ask(.scene(1, .active))
        #expect(stage.machine.launchOrder.foreground && stage.machine.goal == .active)
        stage.comeUp()
        #expect(
            stage.heard() == [
                "willFinishLaunching", "restoreState", "didFinishLaunching", "1 sceneWillConnect",
                "1 sceneDidBecomeActive",
            ]
        )
        #expect(stage.machine.state == .active && stage.state(1) == .active)
    }

    @Test("one that is opened in the background launches the app there, and is told nothing but that")
    func backgroundLaunch() throws {
        var stage = Stage()
        try stage.ask(.scene(1, .background))
        stage.comeUp()
        #expect(
            stage.heard() == ["willFinishLaunching", "restoreState", "didFinishLaunching", "1 sceneWillConnect"]
        )
        #expect(stage.machine.state == .background && stage.state(1) == .background && stage.machine.isPrepared)
    }

    @Test("the app follows its most active scene: it leaves the foreground with the last one")
    func follows() throws {
        var stage = try stage(foreground: [1, 2])
        try stage.ask(.scene(1, .background))
        stage.answerAll()
        #expect(stage.heard() == ["1 sceneWillResignActive", "1 sceneDidEnterBackground"])
        #expect(stage.machine.state == .active && stage.machine.goal == .active && stage.state(2) == .active)
        try stage.ask(.scene(2, .unattached))
        stage.answerAll()
        #expect(
            stage.heard() == ["2 sceneWillResignActive", "2 sceneDidEnterBackground", "2 sceneDidDisconnect"]
        )
        #expect(
            stage.machine.state == .background && stage.machine.goal == .background && stage.state(2) == .unattached
        )
        try stage.ask(.scene(1, .active))
        stage.answerAll()
        #expect(stage.heard() == ["1 sceneWillEnterForeground", "1 sceneDidBecomeActive"])
        #expect(stage.machine.state == .active)
    }

    @Test("what is asked of the app is asked of its scenes, and those that were in the foreground come back with it")
    func verbs() throws {
        var stage = try stage(foreground: [1, 2])
        try stage.ask(.scene(3, .background))
        stage.answerAll()
        _ = stage.heard()
        try stage.ask(.suspend)
        stage.answerAll()
        #expect(
            stage.heard() == [
                "1 sceneWillResignActive", "2 sceneWillResignActive", "1 sceneDidEnterBackground",
                "2 sceneDidEnterBackground",
            ]
        )
        #expect(stage.machine.transition == .suspending && stage.machine.isPrepared)
        stage.tell(.stopConfirmed)
        try stage.ask(.foreground)
        stage.answerAll()
        #expect(
            stage.heard() == [
                "resumed", "1 sceneWillEnterForeground", "2 sceneWillEnterForeground", "1 sceneDidBecomeActive",
                "2 sceneDidBecomeActive",
            ]
        )
        #expect(stage.machine.state == .active && stage.state(3) == .background)
    }

    @Test("one that is opened while the app is away brings nobody else back")
    func opensAlone() throws {
        var stage = try stage(foreground: [1])
        try stage.ask(.background)
        stage.answerAll()
        try stage.ask(.scene(2, .active))
        stage.answerAll()
        #expect(stage.state(1) == .background && stage.state(2) == .active && stage.machine.state == .active)
    }

    @Test("without a scene to show, the app stays in the background")
    func nothingToShow() throws {
        var stage = Stage()
        #expect(!stage.machine.canComeToForeground)
        try stage.ask(.start(background: false))
        stage.comeUp()
        #expect(stage.machine.state == .background && stage.machine.goal == .background)
        #expect(stage.heard() == ["willFinishLaunching", "restoreState", "didFinishLaunching"])
    }

    @Test("an interruption and a locked session go through the scenes, and end there")
    func interruptions() throws {
        var stage = try stage(foreground: [1])
        try stage.ask(.interrupt(begin: true))
        stage.answerAll()
        #expect(stage.machine.state == .inactive && stage.state(1) == .inactive)
        try stage.ask(.interrupt(begin: false))
        stage.answerAll()
        try stage.ask(.cover(begin: true))
        stage.answerAll()
        #expect(stage.machine.state == .background && stage.state(1) == .background && stage.machine.goal == .active)
        try stage.ask(.cover(begin: false))
        stage.answerAll()
        #expect(stage.machine.state == .active && stage.state(1) == .active)
        #expect(
            stage.heard() == [
                "1 sceneWillResignActive", "1 sceneDidBecomeActive", "1 sceneWillResignActive",
                "1 sceneDidEnterBackground",
                "1 sceneWillEnterForeground", "1 sceneDidBecomeActive",
            ]
        )
    }

    @Test("one message is under way at a time, and each has its whole time")
    func oneAtATime() throws {
        var stage = try stage(foreground: [1, 2, 3])
        try stage.ask(.background)
        for scene in 1...3 {
            #expect(stage.heard() == ["\(scene) sceneWillResignActive"])
            stage.advance(.seconds(4))
            stage.answer()
        }
        for scene in 1...3 {
            #expect(stage.heard() == ["\(scene) sceneDidEnterBackground"])
            stage.advance(.seconds(4))
            stage.answer()
        }
        #expect(stage.machine.state == .background && stage.machine.isPrepared)
    }

    @Test("a missed sceneDidEnterBackground ends the app, since the process is what can be ended")
    func missedBackground() throws {
        var stage = try stage(foreground: [1, 2])
        try stage.ask(.scene(1, .background))
        stage.answer()
        #expect(stage.advance(.seconds(5)).contains(.signalStop))
        #expect(stage.machine.endingReason == .backgroundDeadline && stage.machine.nextDeadline != nil)
        stage.tell(.scene(1, .answered(.sceneDidEnterBackground, failed: false)))
        #expect(stage.state(1) == .inactive, "too late")
    }

    @Test("another missed answer is reported, and the scene goes on; on_missed_transition = end ends the app")
    func missedTransition() throws {
        var stage = try stage(foreground: [1])
        try stage.ask(.scene(1, .background))
        #expect(stage.advance(.seconds(5)).contains(.report(.sceneMissed(1, .sceneWillResignActive))))
        #expect(stage.heard() == ["1 sceneWillResignActive", "1 sceneDidEnterBackground"])
        var strict = try self.stage(foreground: [1]) { $0.onMissedTransition = .end }
        try strict.ask(.scene(1, .background))
        strict.advance(.seconds(5))
        #expect(strict.machine.endingReason == .unresponsive)
    }

    @Test("an app that fails to connect a scene refuses it; one that does not answer hears that it is gone again")
    func refused() throws {
        var stage = try stage(foreground: [1])
        try stage.ask(.scene(2, .active))
        #expect(stage.answer(failed: true).contains(.report(.sceneRefused(2, missed: false))))
        #expect(stage.machine.sceneMachines.map(\.id) == [1] && stage.heard() == ["2 sceneWillConnect"])
        try stage.ask(.scene(2, .active))
        #expect(stage.advance(.seconds(5)).contains(.report(.sceneRefused(2, missed: true))))
        #expect(stage.heard() == ["2 sceneWillConnect", "2 sceneDidDisconnect"])
        stage.answer()
        #expect(stage.machine.sceneMachines.map(\.id) == [1] && stage.machine.state == .active)
    }

    @Test("the only scene that is refused takes the app back to the background")
    func refusedAlone() throws {
        var stage = Stage()
        try stage.ask(.scene(1, .active))
        stage.tell(.launched)
        stage.tell(.delegate(attached: true))
        while stage.machine.transition == .launching { stage.answer() }
        stage.answer(failed: true)
        stage.answerAll()
        #expect(stage.machine.state == .background && stage.machine.goal == .background)
    }

    @Test("a scene of a suspended app is disconnected by waking the app for as long as an event does")
    func disconnectsSuspended() throws {
        var stage = try stage(foreground: [1])
        try stage.ask(.suspend)
        stage.answerAll()
        stage.tell(.stopConfirmed)
        _ = stage.heard()
        try stage.ask(.scene(1, .unattached))
        stage.answerAll()
        #expect(stage.heard() == ["resumed", "1 sceneDidDisconnect"])
        #expect(stage.machine.sleepsAgain && stage.machine.sceneMachines.isEmpty)
        stage.advance(.seconds(30))
        #expect(stage.machine.transition == .suspending)
    }

    @Test("the app is not stopped while a scene is asked something, and its answer has it stopped")
    func suspendsAfterScenes() throws {
        var stage = Stage()
        try stage.ask(.scene(1, .background))
        stage.comeUp()
        try stage.ask(.scene(1, .unattached))
        try stage.ask(.suspend)
        #expect(stage.machine.transition == nil && stage.machine.state == .background)
        stage.answer()
        #expect(stage.machine.transition == .suspending)
    }

    @Test("who could not prepare is not ended without notice")
    func unprepared() throws {
        var stage = try stage(foreground: [1])
        try stage.ask(.scene(1, .background))
        stage.answer()
        stage.answer(failed: true)
        #expect(stage.machine.state == .background && !stage.machine.isEvictedWithoutNotice)
        try stage.ask(.scene(1, .unattached))
        stage.answerAll()
        #expect(stage.machine.isEvictedWithoutNotice, "the one that could not prepare is gone")
    }

    @Test("after a crash scenes come back with the app; after an eviction or a stop they are unattached")
    func endings() throws {
        var stage = try stage(foreground: [1])
        stage.tell(.mainExited(.exited(code: 1)))
        stage.tell(.allGone)
        #expect(stage.state(1) == .unattached && stage.machine.hasSceneInForeground)
        stage.advance(.seconds(1))
        stage.comeUp()
        #expect(stage.state(1) == .active && stage.machine.state == .active)
        for request in [Request.stop(.stopped), .forceQuit] {
            var stage = try self.stage(foreground: [1])
            try stage.ask(request)
            stage.tell(.mainExited(.exited(code: 0)))
            stage.tell(.allGone)
            #expect(stage.machine.sceneMachines.isEmpty)
        }
    }

    @Test("EXTEND and pending move the deadline of a scene's message, but that of sceneDidEnterBackground never")
    func extensions() throws {
        var stage = try stage(foreground: [1])
        try stage.ask(.scene(1, .background))
        stage.tell(.scene(1, .extends(.seconds(9))))
        stage.advance(.seconds(8))
        #expect(stage.heard() == ["1 sceneWillResignActive"])
        stage.answer()
        stage.tell(.scene(1, .extends(.seconds(9))))
        stage.advance(.seconds(5))
        #expect(stage.machine.endingReason == .backgroundDeadline)
    }

    @Test("a supervisor that takes over goes on where the last one was, with whole deadlines")
    func takenOver() throws {
        var stage = try stage(foreground: [1, 2])
        try stage.ask(.background)
        stage.answer()
        var again = try #require(Record.again(stage.machine))
        again.restore(stage.machine.sceneMachines, now: stage.bench.now)
        stage.bench.machine = again
        stage.tell(.scenesRestored)
        _ = stage.heard()
        stage.answerAll()
        #expect(stage.heard() == ["1 sceneDidEnterBackground", "2 sceneDidEnterBackground"])
        #expect(stage.machine.state == .background)
        // What is lost does not hold up the app.
        var other = try self.stage(foreground: [1])
        try other.ask(.background)
        other.bench.machine = try #require(Record.again(other.machine))
        other.tell(.scenesRestored)
        #expect(other.machine.state == .background)
    }

    @Test("one that is opened for a suspended app connects in the foreground, where it is wanted")
    func opensSuspended() throws {
        var stage = try stage(foreground: [1])
        try stage.ask(.suspend)
        stage.answerAll()
        stage.tell(.stopConfirmed)
        _ = stage.heard()
        try stage.ask(.scene(2, .active))
        stage.answerAll()
        #expect(stage.heard() == ["resumed", "2 sceneWillConnect", "2 sceneDidBecomeActive"])
        #expect(stage.state(1) == .background)
    }

    @Test("an open in the background takes the foreground from nobody who waits for the same launch")
    func opensBeside() throws {
        var stage = try stage(foreground: [1])
        stage.tell(.mainExited(.exited(code: 1)))
        stage.tell(.allGone)
        try stage.ask(.scene(2, .background))
        stage.comeUp()
        #expect(stage.state(1) == .active && stage.state(2) == .background && stage.machine.state == .active)
    }

    @Test("who is opened while the app is being stopped comes back alone")
    func opensWhileStopping() throws {
        var stage = try stage(foreground: [1, 2])
        try stage.ask(.stop(.stopped))
        try stage.ask(.scene(3, .active))
        stage.tell(.mainExited(.exited(code: 0)))
        stage.tell(.allGone)
        stage.comeUp()
        #expect(stage.machine.sceneMachines.map(\.id) == [3] && stage.state(3) == .active)
    }

    @Test("without a scene to show an event for the foreground, and a start, wake a suspended app all the same")
    func wakesWithoutScene() throws {
        for request in [Request.wake(Wake(foreground: true)), .start(background: false)] {
            var stage = Stage()
            try stage.ask(.scene(1, .background))
            stage.comeUp()
            try stage.ask(.suspend)
            stage.tell(.stopConfirmed)
            try stage.ask(request)
            stage.answerAll()
            #expect(stage.machine.state == .background && stage.machine.goal == .background)
        }
    }

    @Test("what it requires that cannot be had leaves no scene behind")
    func dependencyFails() throws {
        var bench = Bench { rules in
            rules.readiness = .delegate
            rules.hasScenes = true
        }
        _ = try bench.ask(.scene(1, .background))
        _ = bench.tell(.dependencyFailed)
        #expect(bench.machine.sceneMachines.isEmpty && bench.machine.state == .notRunning)
    }

    @Test("opens that wait for what the app requires are all carried out, but those that were taken back")
    func opensWhileHeld() throws {
        var rules = AppRules()
        rules.readiness = .delegate
        rules.hasScenes = true
        let coordinator = try Coordinator([
            AppDefinition(name: "db", rules: AppRules(), requires: [], after: [], launchesIntoForeground: true),
            AppDefinition(name: "desk", rules: rules, requires: ["db"], after: [], launchesIntoForeground: true),
        ])
        let (db, desk, now) = (0, 1, Duration.seconds(100))
        _ = try coordinator.request(.scene(1, .active), of: desk, now: now)
        _ = coordinator.handle(.launched, of: db, now: now)
        _ = coordinator.handle(.launched, of: desk, now: now)
        _ = coordinator.handle(.delegate(attached: true), of: desk, now: now)
        func answer() {
            for _ in 0..<40 {
                let machine = coordinator.machine(desk)
                if let scene = machine.sceneMachines.first(where: { $0.awaiting != nil }), let message = scene.awaiting
                {
                    _ = coordinator.handle(.scene(scene.id, .answered(message, failed: false)), of: desk, now: now)
                } else if let message = machine.awaitedMessage {
                    _ = coordinator.handle(.answered(message), of: desk, now: now)
                }
            }
        }
        answer()
        #expect(coordinator.machine(desk).state == .active)
        _ = coordinator.handle(.mainExited(.exited(code: 1)), of: db, now: now)
        _ = coordinator.handle(.allGone, of: db, now: now)
        for id in [2, 3, 4] as [SceneID] { _ = try coordinator.request(.scene(id, .active), of: desk, now: now) }
        _ = try coordinator.request(.scene(4, .unattached), of: desk, now: now)
        _ = coordinator.handle(.deadline, of: db, now: now + .seconds(1))
        _ = coordinator.handle(.launched, of: db, now: now + .seconds(1))
        answer()
        let states = coordinator.machine(desk).sceneMachines.map { "\($0.id) \($0.state)" }
        #expect(states == ["1 active", "2 active", "3 active"])
    }

    @Test("an app without scenes refuses them")
    func without() throws {
        var bench = Bench()
        #expect(bench.refusal(.scene(1, .active)) == "has no scenes inside: write scenes = { inside = true }")
    }

    @Test("Before an app sleeps again, each of its scenes saves again; a miss ends nothing")
    func savesAgain() throws {
        var stage = Stage()
        try stage.ask(.scene(1, .active))
        stage.comeUp()
        try stage.ask(.scene(2, .background))
        stage.answerAll()
        try stage.ask(.suspend)
        stage.answerAll()
        stage.tell(.stopConfirmed)
        #expect(stage.machine.state == .suspended)
        try stage.ask(.wake(Wake()))
        stage.answerAll()
        stage.told = []
        #expect(stage.advance(.seconds(30)) == [.report(.sleepsAgain)])
        #expect(stage.told == ["1 sceneDidEnterBackground"])
        #expect(stage.answer().isEmpty && stage.told.last == "2 sceneDidEnterBackground")
        #expect(stage.advance(.seconds(5)) == [.report(.sceneMissed(2, .sceneDidEnterBackground)), .stopProcesses])
        stage.tell(.stopConfirmed)
        #expect(stage.machine.state == .suspended && !stage.machine.isPrepared)
    }
}
