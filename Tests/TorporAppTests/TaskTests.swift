// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@testable import AppConnection
@testable import TorporApp

@Suite(.ownProcess) struct TaskTests {
    @Test func aTaskThatRunsOverIsWarnedCancelledAndEnded() async throws {
        let supervisor = try FakeSupervisor()
        let told = Monitor<[Duration]>([])
        let delegate = Recorder([
            "didEnterBackground": { app in
                Task {
                    try? await app.withBackgroundTask("upload") { remaining in
                        told.withLock { $0.append(remaining) }
                    } _: {
                        try await Task.sleep(for: .seconds(60))
                    }
                }
            }
        ])
        try await running(delegate, under: supervisor) {
            supervisor.tell("didEnterBackground")
            try await supervisor.wait(for: "a task") { _, calls in calls.contains(.beginTask(name: "upload")) }
            // Its token is known when the next question is answered.
            try await supervisor.waitForAnswers(1)
            supervisor.tell("taskExpiring", ["token": 1, "name": "upload", "remaining_ms": 4000])
            try await supervisor.wait(for: "its end") { _, calls in calls.contains(.endTask(token: 1)) }
        }
        #expect(told.withLock { $0 } == [.seconds(4)])
        #expect(await delegate.heard.contains("taskExpiring upload") == false)
    }

    @Test func anErrorEndsTheTaskAndGoesOn() async throws {
        struct Broken: Error {}
        let supervisor = try FakeSupervisor()
        let delegate = Recorder([
            "didFinishLaunching": { app in
                await #expect(throws: Broken.self) {
                    try await app.withBackgroundTask("sync") { throw Broken() }
                }
                let remaining = try await app.backgroundTimeRemaining()
                #expect(remaining == .milliseconds(1500))
            }
        ])
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            try await supervisor.waitForAnswers(1)
        }
        let members = supervisor.calls.map(\.call.member)
        // The library asks for the time too, while a method works for a task.
        #expect(members.filter { $0 != "BackgroundTime" } == ["Attach", "BeginTask", "EndTask", "Answer"])
    }

    /// With the time left and the time of the warning that the supervisor reports, if it does.
    @Test(arguments: [["remaining_ms": 900, "expiry_warning_ms": 1000], ["remaining_ms": 5000]] as [JSON])
    func aTaskOfAMethodIsCancelledThoughTaskExpiringWaitsBehindIt(_ time: JSON) async throws {
        var script = FakeSupervisor.Script()
        script.backgroundTime = time
        let supervisor = try FakeSupervisor(script)
        let told = Monitor<[Duration]>([])
        let delegate = Recorder([
            "didFinishLaunching": { app in
                // Until the method returns, this message waits.
                supervisor.tell("taskExpiring", ["token": 1, "name": "upload", "remaining_ms": 1])
                await #expect(throws: CancellationError.self) {
                    try await app.withBackgroundTask("upload") { remaining in
                        told.withLock { $0.append(remaining) }
                    } _: {
                        try await Task.sleep(for: .seconds(60))
                    }
                }
            }
        ])
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            try await supervisor.waitForAnswers(2)
        }
        #expect(told.withLock { $0 } == [.milliseconds(time["remaining_ms"]?.intValue ?? 0)])
        #expect(supervisor.answers.allSatisfy { $0.result == .done })
    }

    @Test func otherAppsOpenURLs() async throws {
        let supervisor = try FakeSupervisor()
        let delegate = Recorder([
            "didFinishLaunching": { app in
                let name = try await app.openURL("notes:1")
                #expect(name == "notes")
                let can = try await (app.canOpen(scheme: "notes"), app.canOpen(scheme: "none"))
                #expect(can == (true, false))
            }
        ])
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            try await supervisor.waitForAnswers(1)
        }
        let urls = supervisor.calls.compactMap {
            if case .openURL(let url, let token) = $0 { (url, token) } else { nil }
        }
        #expect(urls.map(\.0) == ["notes:1"] && urls[0].1 != nil)
    }

    @Test func otherAppsGetMessages() async throws {
        let supervisor = try FakeSupervisor()
        let delegate = Recorder([
            "didFinishLaunching": { app in
                let number = try await app.post("news", to: "notes", payload: [1])
                #expect(number == 5)
                await #expect(throws: AppError.self) { try await app.post("news", to: "none") }
                var wanted = TakeRequest()
                (wanted.max, wanted.keep) = (2, true)
                #expect(try await app.take(wanted).map(\.id) == [1, 2])
                wanted.done = [1, 2]
                let rest = try await app.take(wanted)
                #expect(rest.map(\.id) == [3] && rest[0].payload == ["number": 3] && rest[0].sender == "notes")
                try await app.subscribe(to: "dev.*")
                try await app.unsubscribe(from: "dev.*")
            }
        ])
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            try await supervisor.waitForAnswers(1)
        }
        let posts = supervisor.calls.compactMap { if case .post(let request) = $0 { request } else { nil } }
        #expect(posts.map(\.app) == ["notes", "none"] && posts[0].payload == [1])
        #expect(Set(posts.compactMap(\.token)).count == 2)
        let topics = supervisor.calls.compactMap { if case .subscribe(let request) = $0 { request } else { nil } }
        #expect(topics.map(\.topic) == ["dev.*", "dev.*"] && topics.map(\.end) == [false, true])
    }

    @Test func aTaskThatNobodyHereHasIsTheDelegates() async throws {
        let supervisor = try FakeSupervisor()
        let delegate = Recorder()
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            supervisor.tell("taskExpiring", ["token": 99, "name": "of a child", "remaining_ms": 10])
            try await supervisor.waitForAnswers(2)
        }
        #expect(await delegate.heard.last == "taskExpiring of a child")
    }

    @Test func stateIsSentAsBytesOrThroughAFileThatIsGoneAfterwards() async throws {
        let supervisor = try FakeSupervisor()
        let large = [UInt8](repeating: 7, count: TorporApp.mostSentBytes + 1)
        let delegate = Recorder([
            "didEnterBackground": { app in
                try await app.saveState(Array("notes".utf8))
                try await app.saveState(large)
                try await app.saveState(file: "db")
                try await app.discardState()
            }
        ])
        try await running(delegate, under: supervisor) {
            supervisor.tell("didEnterBackground")
            try await supervisor.waitForAnswers(1)
            #expect(supervisor.answers[0].result == .done)
            #expect(supervisor.calls.contains(.saveState(data: "bm90ZXM=", file: nil, scene: nil)))
            let names = supervisor.calls.compactMap { call -> String? in
                if case .saveState(nil, let file, nil) = call { file } else { nil }
            }
            #expect(names.count == 2)
            #expect(names.last == "db")
            let files = try File.list(supervisor.folder)
            #expect(files == ["app"])
        }
    }

    @Test func base64IsWhatOthersMakeOfTheSameBytes() {
        for count in 0..<70 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 89 &+ count) }
            #expect(Base64.encode(bytes) == Data(bytes).base64EncodedString())
        }
    }
}
