// SPDX-License-Identifier: Apache-2.0

import Alerts
import Configuration
import DesktopProtocol
import Engine
import EngineHarness
import EventSources
import Lifecycle
import Mailbox
import Store
import Testing
import TorporAPI
import Varlink

@testable import Supervisor

@Suite("What people do with alerts") struct AlertAnswerTests {
    @Test("a click brings the app to the foreground and tells it, once, and is acknowledged when that is on the disk")
    func click() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        try alerts.add("tea") { request in
            request.actions = [AlertAction(id: "later", label: "Later")]
            request.payload = [1]
        }
        let id = try #require(alerts.screen.shown.first).id
        alerts.screen.onReport?(.shown(id: id))
        alerts.screen.onReport?(.answered(id: id, action: "later", token: "t"))
        #expect(alerts.told == ["didReceiveLocalNotification tea later"] && alerts.brought == ["web alert"])
        let mail = try #require(alerts.mail.boxes.waiting(for: alerts.web).first)
        #expect(mail.parameters["activation_token"] == "t" && mail.parameters["payload"] == [1])
        #expect(mail.draft.wake == nil, "the answer brings the app to the foreground once, and not its mail again")
        try alerts.mail.turn { alerts.screen.acknowledged == [id] }
        #expect(alerts.open.isEmpty && alerts.screen.closed == [id])
        // Repeated by the screen, since the acknowledgement was lost.
        alerts.screen.onReport?(.answered(id: id, action: "later", token: "t"))
        #expect(alerts.told.count == 1 && alerts.screen.acknowledged == [id, id])
    }

    @Test("at the command line it is the same; an action that there is not is refused")
    func commandLine() throws {
        let alerts = try FakeAlerts()
        try alerts.add("tea")
        let number = try alerts.room.openAlert("tea", of: [alerts.web])
        var problems: [String] = []
        alerts.room.answer(number, "later") { problems.append($0.map { "\($0)" } ?? "none") }
        #expect(problems.count == 1 && problems[0].contains("no action later"))
        alerts.room.answer(number, "default") { problems.append($0.map { "\($0)" } ?? "none") }
        try alerts.mail.turn { problems.count == 2 }
        #expect(problems[1] == "none" && alerts.told == ["didReceiveLocalNotification tea default"])
        #expect(throws: AlertProblem.self) { try alerts.room.openAlert("tea", of: [alerts.web]) }
    }

    @Test("answers to an app that is never told fill no mailbox without end; each still brings the app")
    func bounded() throws {
        let alerts = try FakeAlerts()
        for number in 1...70 {
            try alerts.add("tea\(number)")
            alerts.room.answer(try alerts.room.openAlert("tea\(number)", of: [alerts.web]), "default") { _ in }
        }
        #expect(alerts.told.count == 64 && alerts.brought.count == 70 && alerts.open.isEmpty)
    }

    @Test("the URL of an alert is opened instead, but an action is told; what nobody opens is told too")
    func urls() throws {
        let alerts = try FakeAlerts(more: "url_schemes = [\"web\"]\nopen_command = [\"/bin/o\", \"%u\"]")
        for (title, url) in [("a", "web:1"), ("b", "none:1"), ("c", "web:2")] {
            try alerts.add(title) { request in
                request.url = url
                request.actions = [AlertAction(id: "later", label: "Later")]
            }
        }
        for (id, action) in [("a", "default"), ("b", "default"), ("c", "later")] {
            alerts.room.answer(try alerts.room.openAlert(id, of: [alerts.web]), action) { _ in }
        }
        #expect(alerts.told == ["didReceiveLocalNotification b default", "didReceiveLocalNotification c later"])
        #expect(alerts.brought == ["web alert", "web alert", "web alert"])
        #expect(alerts.mail.boxes.waiting(for: alerts.web).compactMap(\.url) == ["web:1"])
    }

    @Test("an empty list cancels nothing; what is cancelled is told, and that it was repeated")
    func cancels() throws {
        let alerts = try FakeAlerts()
        try alerts.add("tea")
        try alerts.add("daily") { $0.calendar = "daily" }
        var replies: [[AlertInfo]] = []
        func cancel(_ ids: [String]?, _ numbers: [Int64]?) throws {
            let before = replies.count
            alerts.room.cancel([alerts.web], ids: ids, numbers: numbers) { replies.append((try? $0.get()) ?? []) }
            try alerts.mail.turn { replies.count > before }
        }
        try cancel([], nil)
        try cancel(nil, [])
        try cancel([], [])
        #expect(replies == [[], [], []] && alerts.open == ["tea"] && alerts.scheduled == ["daily"])
        var reason: AppInterface.FailureReason?
        alerts.room.cancel([alerts.web], ids: ["none"], numbers: nil) { result in
            if case .failure(.refused(_, let why)) = result { reason = why }
        }
        #expect(reason == .unknown, "for programs")
        try cancel(["daily"], nil)
        #expect(replies.last?.map(\.calendar) == ["daily"] && alerts.scheduled.isEmpty)
        try cancel(nil, nil)
        #expect(replies.last?.map(\.id) == ["tea"] && alerts.open.isEmpty)
    }

    @Test("an id that alerts of several apps have cancels none, unless the request names the apps")
    func cancelsOfOneApp() throws {
        let alerts = try FakeAlerts(more: "[apps.mail]\nexec = [\"/bin/true\"]\nlaunch = \"on-demand\"\n")
        let mail = alerts.mail.shell.app("mail")
        try alerts.add("tea")
        var isAdded = false
        var request = ScheduleAlertRequest(title: "tea")
        request.id = "tea"
        alerts.room.schedule(request, of: mail, isOperators: true) { _ in isAdded = true }
        try alerts.mail.turn { isAdded }
        var replies: [String] = []
        func cancel(namesApps: Bool) throws {
            let before = replies.count
            alerts.room.cancel([alerts.web, mail], ids: ["tea"], numbers: nil, namesApps: namesApps) { result in
                switch result {
                case .success(let cancelled): replies.append("\(cancelled.count)")
                case .failure(let problem): replies.append("\(problem)")
                }
            }
            try alerts.mail.turn { replies.count > before }
        }
        try cancel(namesApps: false)
        #expect(replies[0].contains("several apps have an alert tea (web, mail): name the app"), "\(replies)")
        #expect(alerts.open == ["tea"])
        try cancel(namesApps: true)
        #expect(replies.last == "2" && alerts.open.isEmpty)
    }

    @Test("that none is on the screen is in the history once, until it changes")
    func failures() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        func failures() -> [String] {
            alerts.mail.shell.told(of: "web").filter { $0.contains("not on the screen") }
        }
        for (number, reason) in ["no session", "no session", "no server", "no server"].enumerated() {
            try alerts.add("a\(number)")
            alerts.screen.onReport?(.failed(id: try #require(alerts.screen.shown.last).id, reason: reason))
        }
        #expect(failures().count == 2, "\(failures())")
        alerts.screen.onReport?(.shown(id: try #require(alerts.screen.shown.last).id))
        alerts.screen.onReport?(.failed(id: try #require(alerts.screen.shown.first).id, reason: "no server"))
        #expect(failures().count == 3)
    }

    @Test("dismissing tells nobody; what merely left the screen can be answered later")
    func dismiss() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        try alerts.add("tea")
        try alerts.add("coffee")
        let ids = alerts.screen.shown.map(\.id)
        alerts.screen.onReport?(.closed(id: ids[0], .dismissed))
        alerts.screen.onReport?(.shown(id: ids[1]))
        alerts.screen.onReport?(.closed(id: ids[1], .expired))
        #expect(alerts.open == ["coffee"] && alerts.told.isEmpty && alerts.brought.isEmpty)
        let dismissed = alerts.mail.shell.told(of: "web").filter { $0.contains("dismissed") }
        #expect(dismissed.count == 1 && dismissed[0].hasSuffix("has its alert tea dismissed"), "\(dismissed)")
        // Another helper, which shows nothing.
        alerts.screen.onReport?(.here(ids: [], server: nil))
        #expect(alerts.screen.shown.count == 2, "what has left the screen is not shown again")
    }

    @Test("a critical one interrupts the active apps until it is closed")
    func interrupts() throws {
        let alerts = try FakeAlerts(hears: false)
        alerts.room.screen = alerts.screen
        alerts.screen.onReport?(.here(ids: [], server: DesktopServer(name: "s", capabilities: [])))
        try alerts.bring(to: .active)
        try alerts.add("tea")
        #expect(alerts.mail.shell.state("web") == .active)
        try alerts.add("fire") { $0.urgency = "critical" }
        #expect(alerts.mail.shell.state("web") == .inactive)
        try alerts.pass(600)
        #expect(alerts.mail.shell.state("web") == .inactive)
        alerts.screen.onReport?(.closed(id: try #require(alerts.screen.shown.last).id, .dismissed))
        try alerts.turn()
        #expect(alerts.mail.shell.state("web") == .active)
        #expect(alerts.room.machine(alerts.web).interruptions == 0)
    }

    @Test("two critical ones interrupt until the last is closed, also apps that play until they are interrupted")
    func interruptsTwice() throws {
        for onlyIfPlaying in [false, true] {
            let alerts = try FakeAlerts(hears: false)
            alerts.interrupts = { [unowned alerts] app, hasSound in
                !onlyIfPlaying || hasSound && alerts.room.machine(app).interruptions == 0
            }
            alerts.room.screen = alerts.screen
            alerts.screen.onReport?(.here(ids: [], server: DesktopServer(name: "s", capabilities: [])))
            try alerts.bring(to: .active)
            for title in ["fire", "flood"] { try alerts.add(title) { ($0.urgency, $0.sound) = ("critical", "bell") } }
            #expect(alerts.mail.shell.state("web") == .inactive)
            let why = alerts.mail.shell.told(of: "web").filter { $0.contains("is interrupted by") }
            #expect(why.count == 1 && why[0].hasSuffix("by the critical alert fire of web"), "\(why)")
            let ids = alerts.screen.shown.map(\.id)
            alerts.screen.onReport?(.closed(id: ids[0], .dismissed))
            try alerts.turn()
            #expect(alerts.mail.shell.state("web") == .inactive && alerts.open == ["flood"])
            alerts.screen.onReport?(.closed(id: ids[1], .dismissed))
            try alerts.turn()
            #expect(alerts.mail.shell.state("web") == .active)
            #expect(alerts.room.machine(alerts.web).interruptions == 0)
        }
    }

    @Test("a critical one interrupts only the apps that it may, by whether it has a sound")
    func interruptsSome() throws {
        let alerts = try FakeAlerts(hears: false)
        alerts.interrupts = { _, hasSound in hasSound }
        alerts.room.screen = alerts.screen
        alerts.screen.onReport?(.here(ids: [], server: DesktopServer(name: "s", capabilities: [])))
        try alerts.bring(to: .active)
        try alerts.add("fire") { $0.urgency = "critical" }
        #expect(alerts.mail.shell.state("web") == .active)
        try alerts.add("flood") { ($0.urgency, $0.sound) = ("critical", "bell") }
        #expect(alerts.mail.shell.state("web") == .inactive)
        alerts.screen.onReport?(.closed(id: try #require(alerts.screen.shown.last).id, .dismissed))
        try alerts.turn()
        #expect(alerts.mail.shell.state("web") == .active)
    }

    @Test("without a screen a critical one interrupts nothing, and for half a minute at most if the screen goes")
    func interruptsWithoutScreen() throws {
        let alerts = try FakeAlerts(hears: false)
        try alerts.bring(to: .active)
        try alerts.add("fire") { $0.urgency = "critical" }
        #expect(alerts.mail.shell.state("web") == .active)
        alerts.room.screen = alerts.screen
        alerts.screen.onReport?(.server(DesktopServer(name: "s", capabilities: [])))
        try alerts.add("flood") { $0.urgency = "critical" }
        #expect(alerts.mail.shell.state("web") == .inactive)
        alerts.screen.onReport?(.server(nil))
        try alerts.pass(29)
        #expect(alerts.mail.shell.state("web") == .inactive)
        try alerts.pass(1)
        #expect(alerts.mail.shell.state("web") == .active && alerts.open == ["fire", "flood"])
    }

    @Test("that an interruption is over is stored after the app was told, so that a kill in between loses nothing")
    func endedInterruptionIsStoredLast() throws {
        let alerts = try FakeAlerts(hears: false)
        alerts.room.screen = alerts.screen
        alerts.screen.onReport?(.here(ids: [], server: DesktopServer(name: "s", capabilities: [])))
        try alerts.bring(to: .active)
        try alerts.add("fire") { $0.urgency = "critical" }
        #expect(alerts.mail.shell.state("web") == .inactive)
        let number = try #require(alerts.screen.shown.last).id
        var seen: [Int] = []
        alerts.room.engine.uninterrupted {
            alerts.room.endInterruption(by: number) { seen.append(alerts.room.machine(alerts.web).interruptions) }
            #expect(seen.isEmpty, "the app's end of it waits for what the engine carries out")
        }
        #expect(seen == [0])
        // A second end of it changes nothing.
        alerts.room.endInterruption(by: number) { seen.append(7) }
        #expect(seen == [0, 7] && alerts.mail.shell.state("web") == .active)
    }

    @Test("where one is on the screen is kept for the next helper, and for the next torpord")
    func places() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        try alerts.add("tea")
        let id = try #require(alerts.screen.shown.first).id
        #expect(alerts.screen.shown[0].place == nil)
        for number in [7, 8] as [UInt32] {
            let place = ScreenPlace(server: "b :1.\(number)", number: number)
            alerts.screen.onReport?(.shown(id: id, place: place))
            alerts.screen.onReport?(.here(ids: [], server: nil))
            #expect(alerts.screen.shown.last?.place == place)
        }
        let contents = try alerts.mail.stored()
        alerts.restart()
        alerts.room.screen = alerts.screen
        alerts.begin(contents)
        alerts.screen.onReport?(.here(ids: [], server: nil))
        #expect(alerts.screen.shown.count == 4)
        #expect(alerts.screen.shown.last?.place == ScreenPlace(server: "b :1.8", number: 8))
    }

    @Test("a sound that the notification server does not play is taken, with a warning")
    func sounds() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        func warning(_ capabilities: [String]?) throws -> String? {
            let server = capabilities.map { DesktopServer(name: "s", capabilities: $0) }
            alerts.screen.onReport?(.server(server))
            try alerts.add("tea") { ($0.sound, $0.url) = ("bell", "mail:1") }
            return alerts.warning
        }
        #expect(
            try warning(["body"])?.hasSuffix(
                "; the notification server of the session plays no sounds: "
                    + "the alert is silent"
            ) == true
        )
        #expect(try warning(["body", "sound"])?.contains("silent") == false)
        #expect(try warning(nil)?.contains("silent") == false)
        alerts.alertRules.desktop = .none
        #expect(try warning(["body"])?.contains("silent") == false)
    }

    @Test("badges are numbers from 0 to 9999")
    func badges() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        var problems: [String] = []
        for count in [7, 7, -1, 10_000, 0] as [Int64] {
            alerts.room.setBadge(count, of: alerts.web) { problems.append($0.map { "\($0)" } ?? "none") }
        }
        try alerts.mail.turn { problems.count == 5 }
        #expect(problems.count { $0 == "none" } == 3 && alerts.screen.badges == ["io.torpor.web 7", "io.torpor.web 0"])
    }
}
