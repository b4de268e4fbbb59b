// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Recovery: a torpord that dies again and again") struct DampingTests {
    private static let toml = """
        [apps.web]
        exec = ["@B/torpor-test-app", "--ready", "0", "--beat", "50", "--period", "3000"]
        ready = "notify"
        watchdog = "5s"
        """

    @Test("It is started ever later, and the app does not notice")
    func damped() throws {
        try withRecovery(Self.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            let pid = try daemon.summary("web").pid
            var pauses: [Duration] = []
            for _ in 0..<5 {
                let torpord = try daemon.livingTorpord()
                let began = Clock.monotonic()
                kill(torpord, SIGKILL)
                pauses.append(
                    try daemon.time(since: began, until: "another one runs") {
                        guard let now = try? daemon.livingTorpord() else { return false }
                        return now != torpord
                    }
                )
            }
            // At once, then after 100, 200, 400 and 800 ms (Sources/torpor-keeper/torpord.c).
            for (pause, least) in zip(pauses, [0, 100, 200, 400, 800]) {
                #expect(pause >= .milliseconds(least), "\(pauses)")
            }
            let waits = daemon.log.components(separatedBy: "starting it again in").count - 1
            #expect(waits == 4, "the first is started at once: \(daemon.log)")
            try daemon.eventually("it answers") { (try? daemon.list()) != nil }
            #expect(try daemon.summary("web").pid == pid)
            try daemon.expectWholeLog("web")
        }
    }

    @Test("Clients that come while nobody is there wait, and are answered")
    func waiting() throws {
        try withRecovery(Self.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            try daemon.lose(.killed)
            var client: Ask?
            try daemon.lose(.killed) { client = Ask(.suspend, "web", background: false, socket: daemon.socket) }
            let ask = try #require(client)
            var outcome: Ask.Outcome?
            try daemon.eventually("the answer comes") {
                outcome = ask.outcome()
                return outcome != nil
            }
            guard case .answered(let result) = outcome else {
                Issue.record("\(String(describing: outcome))")
                return
            }
            #expect(result.ok)
            try daemon.waitFor("web", "suspended")
        }
    }
}
