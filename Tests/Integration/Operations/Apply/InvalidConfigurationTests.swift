// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("A configuration on disk that is not valid") struct InvalidConfigurationTests {
    private func health(_ daemon: Daemon) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor"), "health", "--socket", daemon.socket])
    }

    private static let good = Apps.sleeper("web")
    private static let bad = good + "[apps.bad]\nexec = \"x\"\n"

    private func apply(_ daemon: Daemon) throws -> Int32 {
        try Spawn.run([Built.path("torpor"), "--socket", daemon.socket, "apply"]).code
    }

    @Test("torpor health says so until a valid one is read, whichever torpord is asked")
    func health() throws {
        let daemon = try Daemon(Self.good)
        try daemon.waitUntilItAnswers()
        try daemon.eventually("all is well") { try health(daemon).code == 0 }
        _ = try Daemon.writeConfiguration(Self.bad, in: daemon.directory)
        #expect(try apply(daemon) != 0)
        let told = try health(daemon)
        #expect(told.code == 1 && told.output.contains("the configuration on disk is not valid"), "\(told)")
        let torpord = try daemon.torpord()
        kill(torpord, SIGKILL)
        try daemon.eventually("another torpord says the same") {
            guard let next = try? daemon.torpord(), next != torpord else { return false }
            return try health(daemon).output.contains("the configuration on disk is not valid")
        }
        _ = try Daemon.writeConfiguration(Self.good, in: daemon.directory)
        #expect(try apply(daemon) == 0)
        #expect(try health(daemon).code == 0)
        try daemon.stop()
    }

    @Test("The next start launches the apps as the last valid one says, and says so; without one nothing is started")
    func nextStart() throws {
        let daemon = try Daemon(Self.good)
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        let kept = daemon.directory + "/s/configuration"
        try daemon.eventually("it is kept") { File.exists(kept) }
        #expect(try File.status(kept).mode & 0o777 == 0o600)
        try daemon.stop()
        _ = try Daemon.writeConfiguration(Self.bad, in: daemon.directory)
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        #expect(try daemon.events().contains { $0.text.contains("from the last valid one") })
        #expect(daemon.log.contains("apps.bad.exec"))
        let told = try health(daemon)
        #expect(told.code == 1 && told.output.contains("the configuration on disk is not valid"), "\(told)")
        _ = try Daemon.writeConfiguration(Self.good, in: daemon.directory)
        #expect(try apply(daemon) == 0)
        try daemon.eventually("all is well") { try health(daemon).code == 0 }
        try daemon.stop()

        _ = try Daemon.writeConfiguration(Self.bad, in: daemon.directory)
        try File.remove(kept)
        try daemon.startAgain()
        try daemon.waitForEnd()
        #expect(daemon.reap() == .exited(2))
    }
}
