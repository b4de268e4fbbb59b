// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing
import TorporAPI

@testable import TorporApp

@Suite(.ownProcess) struct ReplacedSupervisorTests {
    @Test func aMessageInWorkWhileTheSupervisorIsReplacedIsAnsweredOnceToTheNextOne() async throws {
        let supervisor = try FakeSupervisor()
        let delegate = Recorder([
            "didEnterBackground": { _ in
                supervisor.die()
                try supervisor.comeBack()
            }
        ])
        try await running(delegate, under: supervisor) {
            supervisor.tell("willFinishLaunching")
            supervisor.tell("didEnterBackground")
            supervisor.tell("didBecomeActive")
            try await supervisor.waitForAnswers(3)
        }
        #expect(
            await delegate.heard.filter { $0 != "lost" } == [
                "willFinishLaunching event false", "didEnterBackground", "didBecomeActive",
            ]
        )
        #expect(supervisor.answers.map(\.id) == [1, 2, 3])
        #expect(supervisor.attaches.map(\.after) == [nil, 2])
        #expect(supervisor.attaches.map(\.incarnation) == [nil, 1])
    }

    @Test func anAnswerThatWasHeardBeforeTheSupervisorDiedIsAskedAgainAndCountsOnce() async throws {
        var script = FakeSupervisor.Script()
        script.diesAtAnswers = [1]
        let supervisor = try FakeSupervisor(script)
        let delegate = Recorder()
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            try await supervisor.waitForAnswers(1)
            try supervisor.comeBack()
            supervisor.tell("didBecomeActive")
            try await supervisor.waitForAnswers(2)
        }
        #expect(supervisor.answers.map(\.id) == [1, 2])
        let asked = supervisor.calls.compactMap { if case .answer(let answer) = $0 { answer.id } else { nil } }
        #expect(asked == [1, 1, 2])
        #expect(await delegate.heard.filter { $0 == "didFinishLaunching" }.count == 1)
    }

    @Test func callsWaitForTheNextSupervisorAndTasksGoOverToIt() async throws {
        var script = FakeSupervisor.Script()
        script.diesAtMember = "State"
        let supervisor = try FakeSupervisor(script)
        let delegate = Recorder([
            "didEnterBackground": { app in
                let task = try await app.beginBackgroundTask("upload")
                async let state = app.currentState()
                try await supervisor.wait(for: "the question") { _, calls in calls.contains(.state) }
                try supervisor.comeBack()
                let answer = try await state
                #expect(answer == "background")
                await task.end()
            }
        ])
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            supervisor.tell("didEnterBackground")
            try await supervisor.waitForAnswers(2)
        }
        #expect(supervisor.attaches.map(\.tasks) == [[], [1]])
        #expect(supervisor.calls.filter { $0 == .state }.count == 2)
        #expect(supervisor.calls.contains(.claimTasks(tokens: [1])))
        #expect(supervisor.calls.contains(.endTask(token: 1)))
    }

    @Test func anAppEndsWhileItsSupervisorIsGone() async throws {
        let supervisor = try FakeSupervisor()
        let delegate = Recorder(["didEnterBackground": { _ in supervisor.die() }])
        try await running(delegate, under: supervisor) {
            supervisor.tell("didEnterBackground")
            await delegate.wait(for: 3)
        }
        #expect(supervisor.answers.isEmpty)
    }
}
