// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Linux
import Testing
import TorporAPI

@testable import TorporApp

@Suite(.ownProcess) struct DelegateTests {
    @Test func aDelegateHearsOneMessageAfterTheOtherAndAnswersEach() async throws {
        let supervisor = try FakeSupervisor()
        try File.write(supervisor.folder + "/saved", "what was")
        let delegate = Recorder()
        try await running(delegate, under: supervisor) {
            supervisor.tell("willFinishLaunching", ["options": ["reason": "event", "foreground": false]])
            supervisor.tell("restoreState", ["path": .string(supervisor.folder + "/saved"), "bytes": 8])
            supervisor.tell("didFinishLaunching", ["options": ["reason": "event", "foreground": false]])
            supervisor.tell("openURL", ["url": "note:1"])
            supervisor.tell("resumed", ["gap_s": 1.5])
            supervisor.tell("batteryIsLow")
            try await supervisor.waitForAnswers(6)
        }
        #expect(
            await delegate.heard == [
                "willFinishLaunching event false", "restoreState what was", "didFinishLaunching", "openURL note:1",
                "resumed 1500000", "received batteryIsLow",
            ]
        )
        #expect(supervisor.answers.map(\.id) == [1, 2, 3, 4, 5, 6])
        #expect(supervisor.answers.allSatisfy { $0.result == .done })
    }

    @Test func whatAMethodThrowsIsSaidAsASentence() async throws {
        struct Full: Error, CustomStringConvertible { let description = "the disk is full" }
        let supervisor = try FakeSupervisor()
        let delegate = Recorder(["didFinishLaunching": { _ in throw Full() }])
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            try await supervisor.waitForAnswers(1)
        }
        #expect(supervisor.answers == [AppAnswer(id: 1, result: .failed, text: "the disk is full")])
    }

    @Test func whatAFetchFoundIsPartOfTheAnswer() async throws {
        let supervisor = try FakeSupervisor()
        let delegate = Recorder()
        try await running(delegate, under: supervisor) {
            supervisor.tell("performFetch")
            supervisor.tell("didBecomeActive")
            try await supervisor.waitForAnswers(2)
        }
        var found = AppAnswer(id: 1)
        found.fetch = .noData
        #expect(supervisor.answers == [found, AppAnswer(id: 2)])
    }

    @Test func aMessageCanTakeLongerAndThingsCanBeDeclined() async throws {
        let supervisor = try FakeSupervisor()
        let delegate = Recorder([
            "willFinishLaunching": { app in
                let before = try #require(app.timeToAnswer)
                #expect(before <= .seconds(5) && before > .zero)
                try await app.pending("reading the index", expected: .seconds(20))
                let after = try #require(app.timeToAnswer)
                #expect(after > .seconds(5))
                app.decline(.restoration)
                app.decline(.restoration)
                app.decline(.url)
            }
        ])
        try await running(delegate, under: supervisor) {
            supervisor.tell("willFinishLaunching")
            supervisor.tell("didFinishLaunching")
            try await supervisor.waitForAnswers(3)
        }
        var pending = AppAnswer(id: 1, result: .pending, text: "reading the index")
        pending.expectedMilliseconds = 20_000
        var done = AppAnswer(id: 1)
        done.declines = [.restoration, .url]
        #expect(supervisor.answers == [pending, done, AppAnswer(id: 2)])
    }

    @Test func whoAttachesAfterTheLaunchHearsOfItAllTheSame() async throws {
        var script = FakeSupervisor.Script()
        script.state = "active"
        script.transition = nil
        let supervisor = try FakeSupervisor(script)
        let delegate = Recorder()
        try await running(delegate, under: supervisor) {
            await delegate.wait(for: 3)
            supervisor.tell("willResignActive")
            try await supervisor.waitForAnswers(1)
        }
        #expect(
            await delegate.heard == [
                "willFinishLaunching user true", "didFinishLaunching", "didBecomeActive", "willResignActive",
            ]
        )
    }

    @Test func aSupervisorThatSaysNothingOfTheLaunchIsNotWaitedFor() async throws {
        let supervisor = try FakeSupervisor()
        let delegate = Recorder()
        try await running(delegate, under: supervisor) {
            await delegate.wait(for: 2)
            // Too late: it was launched.
            supervisor.tell("willFinishLaunching")
            supervisor.tell("didBecomeActive")
            try await supervisor.waitForAnswers(2)
        }
        #expect(
            await delegate.heard == ["willFinishLaunching event false", "didFinishLaunching", "didBecomeActive"]
        )
    }

    @Test func whoMayNotBeTheDelegateIsTold() async throws {
        var script = FakeSupervisor.Script()
        script.refusal = AppInterface.ErrorName.alreadyAttached
        let supervisor = try FakeSupervisor(script)
        defer { supervisor.remove() }
        let environment = AppEnvironment { supervisor.environment[$0] }
        let error = await #expect(throws: AppError.self) {
            try await TorporApp.run(
                Recorder(),
                environment: environment,
                takesSignals: false,
                sendsHeartbeats: false
            )
        }
        #expect(error?.code == .alreadyAttached)
        #expect(error?.description == "it may not")
    }

    @Test func aProgramWithoutASupervisorIsLaunchedAndEnds() async throws {
        let delegate = Recorder([
            "didBecomeActive": { running in
                #expect(!running.isSupervised)
                let state = try await running.currentState()
                #expect(state == "active")
                let remaining = try await running.backgroundTimeRemaining()
                #expect(remaining == nil)
                try await running.saveState([1])
                let result = try await running.withBackgroundTask("work") { 42 }
                #expect(result == 42)
                running.finish()
            }
        ])
        try await TorporApp.run(
            delegate,
            environment: AppEnvironment { _ in nil },
            takesSignals: false,
            sendsHeartbeats: true
        )
        #expect(
            await delegate.heard == [
                "willFinishLaunching user true", "didFinishLaunching", "didBecomeActive", "willResignActive",
                "willTerminate stopped",
            ]
        )
    }
}
