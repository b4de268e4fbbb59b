// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("on_exit = \"leave\"") struct LeaveTests {
    private static let toml = """
        on_exit = "leave"
        [apps.web]
        exec = ["@B/torpor-test-app", "--period", "3000"]
        [apps.asleep]
        exec = ["@B/torpor-test-app", "--tree"]
        [apps.mortal]
        exec = ["@B/torpor-test-app"]
        [apps.stopped]
        exec = ["@B/torpor-test-app"]
        """

    @Test("The supervisor ends and its apps stay; the next start takes them over, with what they wrote meanwhile")
    func adopted() throws {
        let toml = Self.toml.replacingOccurrences(of: "@B", with: Built.folder)
        let daemon = try Daemon(toml, nested: true)
        try File.makeDirectories(daemon.directory + "/t")
        try daemon.waitUntilItAnswers()
        for app in ["web", "asleep", "mortal", "stopped"] { try daemon.waitFor(app, "active") }
        try daemon.eventually("the tree is there") { daemon.processes(of: "asleep").count == 3 }
        try daemon.done(.suspend, "asleep")
        try daemon.done(.stop, "stopped")
        let web = try #require(try daemon.summary("web").pid)
        let mortal = try #require(try daemon.summary("mortal").pid)
        let asleep = daemon.processes(of: "asleep").sorted()
        let used = try asleep.map { try ProcFS.stat($0) }.map { [$0.userTicks, $0.systemTicks, $0.startTime] }

        kill(try daemon.livingKeeper(), SIGTERM)
        try daemon.eventually("keeper and torpord are gone") {
            let look = Census(folder: daemon.directory).look()
            return look.keepers.isEmpty && look.torpords.isEmpty
        }
        #expect(daemon.processes(of: "web") == [web])
        let written = try daemon.truth("web").accepted
        try daemon.eventually("it goes on writing") { try daemon.truth("web").accepted > written + 5 }
        kill(mortal, SIGKILL)

        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        #expect(try daemon.summary("web").pid == web)
        #expect(try daemon.summary("asleep").state == "suspended")
        #expect(try daemon.summary("stopped").state == "not-running")
        #expect(asleep.allSatisfy(Truth.isStopped))
        let now = try asleep.map { try ProcFS.stat($0) }.map { [$0.userTicks, $0.systemTicks, $0.startTime] }
        #expect(now == used)
        try daemon.eventually("what ended meanwhile is restarted") { try daemon.summary("mortal").incarnation == 2 }
        try daemon.expectWholeLog("web")

        // With "terminate" in force the end is the end of all.
        let changed = toml.replacingOccurrences(of: "on_exit = \"leave\"", with: "on_exit = \"terminate\"")
        _ = try Daemon.writeConfiguration(changed, in: daemon.directory)
        try daemon.call(.apply(ApplyRequest()))
        try daemon.endEverything()
    }
}
