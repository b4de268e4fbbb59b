// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Apps that are missing at a start") struct AbsentTests {
    @Test("An app that is applied later has its mail, settings, alerts, reports and what a user asked of it")
    func back() throws {
        let web = Apps.sleeper(
            "web",
            """
            launch = "on-demand"
            topics = { "*" = "all" }
            settings.theme = { type = "choice", values = ["light", "dark"], default = "light" }
            restart = "never"

            """
        )
        let late = Apps.sleeper("late") + web
        // A mount that came late must not leave a suspended app down.
        let asleep = Apps.sleeper("asleep")
        let other = Apps.sleeper("other")
        let daemon = try Daemon(other + late + asleep)
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("late", "active")
        try daemon.done(.stop, "late")
        try daemon.done(.suspend, "asleep")
        try daemon.done(.start, "web", { $0.background = true })
        kill(try daemon.process(of: "web"), SIGSEGV)
        try daemon.eventually("its report is there") { try Self.reports(daemon) == 1 }
        try daemon.waitFor("web", "not-running")
        try daemon.post("news", .int(1))
        var settings = SetSettingsRequest(app: "web")
        settings.values = [.init("theme", "dark")]
        _ = try daemon.call(.setSettings(settings))
        var alert = ScheduleAlertRequest(title: "later")
        alert.after = 3_600_000
        _ = try daemon.call(.scheduleAlert(ScheduleAppAlertRequest(app: "web", alert: alert)))
        let last = try daemon.summary("late").incarnation
        try daemon.stop()

        try daemon.configure(other)
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("other", "active")
        #expect(try daemon.list().map(\.name) == ["other"])
        let reply = try daemon.apply(other + late + asleep) { $0.wait = true }
        #expect(reply.apps.allSatisfy { $0.ok }, "\(reply)")
        #expect(reply.lines.contains("asleep: added, launched"), "\(reply.lines)")
        try daemon.waitFor("asleep", "suspended")
        // A user had stopped it.
        #expect(try daemon.summary("late").state == "not-running" && daemon.summary("late").incarnation == last)
        #expect(try daemon.mailbox().mail.map(\.payload) == [.int(1)])
        #expect(try Self.theme(daemon) == "dark")
        #expect(try daemon.call(.alerts(AlertsRequest())).description.contains("later"))
        try daemon.eventually("its report is there again") { try Self.reports(daemon) == 1 }
        try daemon.done(.start, "late")
        // What is removed while torpord runs is gone.
        try daemon.apply(other)
        try daemon.eventually("it is gone") { try daemon.list().map(\.name) == ["other"] }
        try daemon.apply(other + late)
        #expect(try daemon.mailbox().mail.isEmpty && Self.theme(daemon) == "light")
        try daemon.stop()
    }

    private static func theme(_ daemon: Daemon) throws -> String? {
        let reply = try daemon.call(.settings(app: "web"))
        return reply["settings"]?.arrayValue?.first?["value"]?.stringValue
    }

    private static func reports(_ daemon: Daemon) throws -> Int {
        try daemon.call(.reports(app: "web"))["reports"]?.arrayValue?.count ?? 0
    }
}
