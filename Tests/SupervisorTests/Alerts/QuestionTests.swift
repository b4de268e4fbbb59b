// SPDX-License-Identifier: Apache-2.0

import Alerts
import Configuration
import DesktopProtocol
import Engine
import EngineHarness
import EventSources
import Lifecycle
import Mailbox
import Permissions
import Store
import Testing
import TorporAPI
import Varlink

@testable import Supervisor

@Suite("Questions of apps for permissions") struct QuestionTests {
    private static func declaration(_ name: String, ports: [UInt16] = []) throws -> PermissionDeclaration {
        var declaration = PermissionDeclaration(try Permission(name), purpose: "Shows who is there")
        declaration.ports = ports
        return declaration
    }

    /// Asks, and returns the number of the question.
    private func ask(_ alerts: FakeAlerts, _ name: String = "camera") throws -> Int64 {
        let number = alerts.room.ask(try Self.declaration(name), of: alerts.web)
        alerts.room.showWhatIsDue()
        try alerts.turn()
        return number
    }

    private func answer(_ alerts: FakeAlerts, _ number: Int64, _ action: String, by person: String) throws -> String? {
        var outcome: (isKnown: Bool, problem: AlertProblem?) = (false, nil)
        alerts.room.answer(number, action, by: person) { outcome = (true, $0) }
        try alerts.mail.turn { outcome.isKnown }
        return outcome.problem.map { "\($0)" }
    }

    @Test("are shown with two buttons, also if the app is in the foreground, and are never told to it")
    func shown() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        alerts.alertRules.commands = [["tell"]]
        try alerts.bring(to: .active)
        let number = try ask(alerts)
        let shown = try #require(alerts.screen.shown.first)
        #expect(shown.id == number && shown.title == "Allow the camera to web?" && shown.body == "Shows who is there")
        #expect(shown.actions.map(\.id) == ["allow", "deny"] && alerts.told.isEmpty)
        #expect(alerts.commands.first?.variables["TORPOR_ALERT_PERMISSION"] == "camera")
        #expect(alerts.open == ["permission/camera"] && alerts.room.question("camera", of: alerts.web) == number)
    }

    @Test("are answered by a person at the screen or elsewhere; the app is neither told nor brought anywhere")
    func answered() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        let camera = try ask(alerts)
        alerts.screen.onReport?(.answered(id: camera, action: "allow", token: nil))
        #expect(alerts.answered == ["camera true uid 7, on the desktop"] && alerts.screen.acknowledged == [camera])
        let network = try ask(alerts, "network")
        #expect(try answer(alerts, network, "default", by: "root")?.contains("allow or deny it") == true)
        #expect(try answer(alerts, network, "more", by: "root") != nil && alerts.answered.count == 1)
        alerts.refusal = "the disk is full"
        #expect(try answer(alerts, network, "deny", by: "root")?.contains("full") == true)
        #expect(alerts.open == ["permission/network"])
        alerts.refusal = nil
        #expect(try answer(alerts, network, "deny", by: "root") == nil)
        #expect(alerts.answered.last == "network false root" && alerts.open.isEmpty)
        #expect(alerts.told.isEmpty && alerts.brought.isEmpty)
    }

    @Test("stay open after a click on their text, and are not shown again; dismissed ones are gone")
    func clicked() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        let number = try ask(alerts)
        alerts.screen.onReport?(.shown(id: number))
        alerts.screen.onReport?(.answered(id: number, action: "default", token: nil))
        #expect(alerts.open == ["permission/camera"] && alerts.screen.acknowledged == [number])
        alerts.screen.onReport?(.here(ids: [], server: nil))
        #expect(alerts.screen.shown.count == 1 && alerts.answered.isEmpty)
        let other = try ask(alerts, "network")
        alerts.screen.onReport?(.closed(id: other, .dismissed))
        #expect(alerts.open == ["permission/camera"] && alerts.answered.isEmpty)
        #expect(alerts.mail.shell.told(of: "web").contains { $0.contains("network was dismissed") })
    }

    @Test("are out of reach of the app: it cannot cancel, replace, see or push out its question")
    func unreachable() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        _ = try ask(alerts)
        var replies: [Result<[AlertInfo], AlertProblem>] = []
        func cancel(_ ids: [String]?, _ numbers: [Int64]?) throws {
            let before = replies.count
            alerts.room.cancel([alerts.web], ids: ids, numbers: numbers, isApps: true) { replies.append($0) }
            try alerts.mail.turn { replies.count > before }
        }
        try cancel(["permission/camera"], nil)
        guard case .failure(.refused(_, .unknown)) = replies[0] else {
            Issue.record("it was cancelled")
            return
        }
        try cancel(nil, nil)
        #expect(try replies[1].get().isEmpty && alerts.open == ["permission/camera"])
        #expect(alerts.room.infos(of: [alerts.web], withQuestions: false).isEmpty)
        guard case .failure(.invalid) = try alerts.add("permission/camera", isOperators: false) else {
            Issue.record("an alert has the id of a question")
            return
        }
        for number in 0..<70 { try alerts.add("a\(number)", isOperators: false) { $0.urgency = "critical" } }
        #expect(alerts.open.contains("permission/camera") && alerts.open.count == 65)
        // It is not one of those that are shown as one.
        #expect(alerts.screen.shown.first?.actions.count == 2)
        let network = try ask(alerts, "network")
        #expect(alerts.screen.shown.last?.id == network && alerts.screen.shown.last?.actions.count == 2)
    }

    @Test("wait for the end of quiet hours, even if the app comes to the foreground or has many other alerts")
    func quiet() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        alerts.alertRules.quiet = try AlertRoomTests.windows("12:00-13:00")
        _ = try ask(alerts)
        #expect(alerts.screen.shown.isEmpty && alerts.scheduled == ["permission/camera"])
        for number in 0..<70 { try alerts.add("a\(number)") }
        try alerts.bring(to: .active)
        #expect(alerts.scheduled.contains("permission/camera") && alerts.screen.shown.isEmpty)
        try alerts.pass(3_600)
        #expect(alerts.screen.shown.contains { $0.title.hasPrefix("Allow the camera") })
    }

    @Test("come from the disk after torpord was killed, and are closed if they are answered or asked no more")
    func killed() throws {
        for isAsked in [true, false] {
            let alerts = try FakeAlerts()
            _ = try ask(alerts)
            let contents = try alerts.mail.stored()
            if !isAsked { alerts.asked = [] }
            alerts.restart()
            alerts.room.screen = alerts.screen
            alerts.begin(contents)
            try alerts.turn()
            #expect(alerts.open == (isAsked ? ["permission/camera"] : []))
            #expect(alerts.screen.shown.count == (isAsked ? 1 : 0))
            alerts.asked = []
            alerts.room.configure()
            #expect(alerts.open.isEmpty)
        }
    }

    @Test("are late rather than missed")
    func missed() throws {
        let alerts = try FakeAlerts(begins: false)
        alerts.load(StoreContents())
        _ = alerts.room.ask(try Self.declaration("camera"), of: alerts.web)
        try alerts.pass(90_000)
        alerts.room.begin()
        #expect(alerts.open == ["permission/camera"])
    }

    @Test("have words for every permission, within the limits of alerts")
    func words() throws {
        let long = "files:/" + String(repeating: "a", count: 4000)
        for name in Permission.words + [long, long + ":ro", "files:/srv/é:ro"] {
            let declaration = try Self.declaration(name, ports: name == "network" ? [80, 443] : [])
            let title = String(repeating: "Türsteher ", count: 9)
            let alert = PermissionQuestion.alert(declaration, number: 1, app: "door", title: title, now: 0)
            #expect(alert.title.count <= 80 && alert.body.utf8.count <= 1024 && alert.permission == declaration.name)
            let again = try Alert(json: try JSON.parse(alert.json.serialised()))
            #expect(again == alert)
        }
        let ports = PermissionQuestion.alert(
            try Self.declaration("network", ports: [80, 443]),
            number: 1,
            app: "door",
            title: "Door",
            now: 0
        )
        #expect(ports.title == "Allow the network (ports 80, 443) to Door?")
    }
}
