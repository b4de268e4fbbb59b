// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing
import TorporAPI
import Varlink

@testable import TorporApp

/// Writes down what it is told of its scenes.
private actor Desk: AppDelegate {
    struct Refusal: Error, CustomStringConvertible { let description: String }

    private(set) var heard: [String] = []

    func sceneWillConnect(
        _ app: TorporApp,
        scene: String,
        options: SceneConnectionOptions,
        state: SavedState?
    ) async throws {
        let text = try state.map { String(decoding: try $0.read(), as: UTF8.self) } ?? "-"
        let session = options.session.map { "\($0)" } ?? "-"
        heard.append("connect \(scene) \(session) \(options.isForeground) \(options.isNew) \(text)")
        if scene == "mallory" { throw Refusal(description: "there is no desk for mallory") }
        if scene == "late" { app.decline(.restoration) }
    }
    func sceneDidBecomeActive(_ app: TorporApp, scene: String) async throws { heard.append("active \(scene)") }
    func sceneWillResignActive(_ app: TorporApp, scene: String) async throws { heard.append("resign \(scene)") }
    func sceneDidEnterBackground(_ app: TorporApp, scene: String) async throws {
        heard.append("background \(scene)")
        try await app.saveState(Array(scene.utf8), scene: scene)
        try await app.saveState(file: "mine", scene: scene)
        try await app.saveSnapshot([1, 2, 3], scene: scene)
        try await app.saveSnapshot(file: "shown", scene: scene)
        try await app.discardState(scene: scene)
        try await app.discardSnapshot(scene: scene)
        app.decline(.snapshot)
    }
    func sceneWillEnterForeground(_ app: TorporApp, scene: String) async throws { heard.append("foreground \(scene)") }
    func sceneDidDisconnect(_ app: TorporApp, scene: String) async throws { heard.append("disconnect \(scene)") }
    func didDiscardScenes(_ app: TorporApp, scenes: [String]) async throws { heard.append("discard \(scenes)") }
    func received(_ app: TorporApp, message: OtherMessage) async throws { heard.append("other \(message.name)") }
}

/// Has a method for what no other method takes.
private actor Rest: AppDelegate {
    private(set) var heard: [String] = []
    func received(_ app: TorporApp, message: OtherMessage) async throws {
        heard.append("\(message.name) \(message.parameters)")
    }
}

@Suite(.ownProcess) struct SceneTests {
    @Test("each message to a scene has its method, and what belongs to it a type, also where it is not as expected")
    func messages() async throws {
        let supervisor = try FakeSupervisor()
        let saved = supervisor.folder + "/saved"
        try File.write(saved, "what was")
        let delegate = Desk()
        let connecting: JSON = [
            "scene": "alice", "options": ["session": ["tab": 2], "foreground": false, "new": true], "state": .null,
        ]
        let returning: JSON = [
            "scene": "late", "options": ["session": .null, "foreground": true, "new": false],
            "state": ["path": .string(saved), "bytes": 8],
        ]
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            supervisor.tell("sceneWillConnect", connecting)
            supervisor.tell("sceneWillConnect", returning)
            supervisor.tell("sceneWillConnect", ["scene": "odd", "options": 4, "state": "no"])
            supervisor.tell("sceneWillConnect", ["scene": "mallory"])
            for name in [
                "sceneDidBecomeActive", "sceneWillResignActive", "sceneDidEnterBackground", "sceneWillEnterForeground",
                "sceneDidDisconnect",
            ] {
                supervisor.tell(name, ["scene": "alice"])
            }
            supervisor.tell("didDiscardScenes", ["id": 9, "payload": ["names": ["bob", 4, "carol"]]])
            supervisor.tell("didDiscardScenes", ["payload": .null])
            try await supervisor.waitForAnswers(12)
        }
        #expect(
            await delegate.heard == [
                #"connect alice {"tab":2} false true -"#, "connect late - true false what was",
                "connect odd - true false -", "connect mallory - true false -", "active alice", "resign alice",
                "background alice", "foreground alice", "disconnect alice", #"discard ["bob", "carol"]"#, "discard []",
            ]
        )
        let answers = supervisor.answers
        #expect(answers.map(\.result).enumerated().filter { $0.element != .done }.map(\.offset) == [4])
        #expect(answers[4] == AppAnswer(id: 5, result: .failed, text: "there is no desk for mallory"))
        #expect(answers[2].declines == [.restoration] && answers[7].declines == [.snapshot])
        #expect(answers.flatMap(\.declines).count == 2)
    }

    @Test("the state and the snapshot of a scene are saved and discarded by its name")
    func saving() async throws {
        let supervisor = try FakeSupervisor()
        try await running(Desk(), under: supervisor) {
            supervisor.tell("didFinishLaunching")
            supervisor.tell("sceneDidEnterBackground", ["scene": "alice"])
            try await supervisor.waitForAnswers(2)
        }
        let calls = supervisor.calls.filter { !["Attach", "Answer"].contains($0.call.member) }
        #expect(
            calls == [
                .saveState(data: "YWxpY2U=", file: nil, scene: "alice"),
                .saveState(data: nil, file: "mine", scene: "alice"),
                .saveSnapshot(data: "AQID", file: nil, scene: "alice"),
                .saveSnapshot(data: nil, file: "shown", scene: "alice"),
                .discardState(scene: "alice"), .discardSnapshot(scene: "alice"),
            ]
        )
    }

    @Test("discarded scenes come to the method for the rest; what concerns one scene does not")
    func rest() async throws {
        let supervisor = try FakeSupervisor()
        let delegate = Rest()
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            supervisor.tell("sceneWillConnect", ["scene": "alice"])
            supervisor.tell("sceneDidDisconnect", ["scene": "alice"])
            supervisor.tell("didDiscardScenes", ["payload": ["names": ["alice"]]])
            try await supervisor.waitForAnswers(4)
        }
        #expect(await delegate.heard == [#"didDiscardScenes {"payload":{"names":["alice"]}}"#])
        #expect(supervisor.answers.allSatisfy { $0.result == .done })
    }

    @Test("an app that is a scene finds its name and its session among the launch options")
    func launchOptions() {
        let scene = LaunchOptions(["scene": "alice", "session": ["tab": 2]])
        #expect(scene.scene == "alice" && scene.session == ["tab": 2])
        let app = LaunchOptions(["scene": .null, "session": .null])
        #expect(app.scene == nil && app.session == nil)
    }
}
