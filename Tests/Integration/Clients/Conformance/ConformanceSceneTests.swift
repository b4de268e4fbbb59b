// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// An app in each language that shows scenes inside it.
@Suite("Scenes inside an app in all languages", .serialized)
struct ConformanceSceneTests {
    /// All that the app records.
    static let told = [
        // A launch for a scene in the foreground; another one in the background.
        "willFinishLaunching foreground", "didFinishLaunching", "sceneWillConnect ann foreground new 7 -",
        "sceneDidBecomeActive ann", "sceneWillConnect bob background new - -",
        // The first leaves the foreground, and the app with it; both are stopped.
        "sceneWillResignActive ann", "sceneDidEnterBackground ann",
        // It is wanted back.
        "resumed after a gap", "sceneWillEnterForeground ann", "sceneDidBecomeActive ann",
        // One that the app does not want.
        "sceneWillConnect nobody foreground new - -",
        // One that is closed, and one in the background while torpord dies.
        "sceneDidDisconnect bob", "sceneWillResignActive ann", "sceneDidEnterBackground ann",
        // Closed, and opened again.
        "sceneDidDisconnect ann", "sceneWillConnect ann foreground known 7 ann was here", "sceneDidBecomeActive ann",
        // Gone for good, and the end.
        "didDiscardScenes bob", "willTerminate stopped",
    ]

    @Test("Scenes inside an app are told the same in every language", arguments: Language.allCases)
    func scenes(_ language: Language) throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let program = try language.program(in: folder)
        let words = program.exec.map { "\"\($0)\"" }.joined(separator: ", ")
        let variables = program.environment.map { "\($0) = \"\($1)\", " }.sorted().joined()
        try withDaemon(
            """
            [apps.web]
            exec = [\(words)]
            environment = { \(variables)CONFORMANCE = "@D" }
            scenes = { inside = true }
            ready = "delegate"
            restart = "never"
            launch_deadline = "20s"
            transition_deadline = "20s"
            background_deadline = "20s"
            """
        ) { daemon in
            try Self.comeAndGo(daemon)
            try Self.outliveTorpord(daemon)
            try daemon.done(.stop, "web")
            #expect(daemon.records("web") == Self.told)
        }
    }

    /// To the foreground, to the background, stopped, and back.
    private static func comeAndGo(_ daemon: Daemon) throws {
        #expect(daemon.processes(of: "web").isEmpty)
        try daemon.openScene("ann", of: "web") { $0.session = ["n": 7] }
        try daemon.openScene("bob", of: "web") { $0.background = true }
        #expect(try states(daemon) == ["ann": "active", "bob": "background"])
        try daemon.done(.background, "web@ann")
        try daemon.waitFor("web", "background")
        #expect(try states(daemon) == ["ann": "background", "bob": "background"])
        try daemon.done(.suspend, "web")
        let pid = try #require(try daemon.summary("web").pid)
        #expect(try ProcFS.stat(pid).state == "T")
        #expect(try states(daemon) == ["ann": "suspended", "bob": "suspended"])
        try daemon.openScene("ann", of: "web")
        #expect(try daemon.summary("web").pid == pid)
        #expect(try states(daemon) == ["ann": "active", "bob": "background"])
        do {
            try daemon.openScene("nobody", of: "web")
            Issue.record("a scene that the app does not want was connected")
        } catch {
            #expect("\(error)".contains("there is no nobody"), "\(error)")
        }
        try daemon.done(.disconnect, "web@bob")
        try daemon.done(.background, "web@ann")
        try daemon.waitFor("web", "background")
    }

    /// What torpord knew of scenes the next one knows; then they are closed, opened again and discarded.
    private static func outliveTorpord(_ daemon: Daemon) throws {
        let before = ["ann": "background", "bob": SceneInfo.unattached]
        #expect(try states(daemon) == before)
        try ConformanceTests.replaceTorpord(of: daemon)
        try daemon.waitFor("web", "background")
        #expect(try states(daemon) == before)
        try daemon.done(.disconnect, "web@ann")
        #expect(try states(daemon)["ann"] == SceneInfo.unattached)
        try daemon.openScene("ann", of: "web")
        #expect(try states(daemon)["ann"] == "active")
        try daemon.done(.discard, "web@bob")
        try daemon.waitForRecord("web", "didDiscardScenes bob")
        try daemon.eventually("it is answered") { try daemon.mailbox().mail.isEmpty }
        #expect(try states(daemon) == ["ann": "active"])
    }

    /// Where the scenes are, by their names.
    private static func states(_ daemon: Daemon) throws -> [String: String] {
        Dictionary(try daemon.scenes().scenes.map { ($0.name, $0.state) }, uniquingKeysWith: { $1 })
    }
}
