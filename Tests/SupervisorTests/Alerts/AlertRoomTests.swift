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

@Suite("Alerts that come") struct AlertRoomTests {
    private func isRefused(_ result: Result<AlertInfo, AlertProblem>) -> Bool {
        if case .failure = result { true } else { false }
    }

    @Test("are shown while the app does not run, and the app is neither told nor woken")
    func shown() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        try alerts.add("tea") { request in
            (request.after, request.badge, request.body, request.sound) = (60_000, 3, "hot", "bell")
            request.actions = [AlertAction(id: "later", label: "Later")]
        }
        #expect(alerts.scheduled == ["tea"] && alerts.followsClock)
        try alerts.pass(59)
        #expect(alerts.screen.shown.isEmpty)
        try alerts.pass(1)
        let shown = try #require(alerts.screen.shown.first)
        #expect((shown.title, shown.body, shown.sound, shown.entry) == ("tea", "hot", "bell", "io.torpor.web"))
        #expect(shown.actions == [DesktopAlert.Action(id: "later", label: "Later")])
        #expect(alerts.screen.badges == ["io.torpor.web 3"] && alerts.room.badge(of: alerts.web) == 3)
        #expect(alerts.open == ["tea"] && alerts.told.isEmpty && alerts.mail.host.events.isEmpty)
        #expect(alerts.web.alertsShown == 1)
    }

    @Test("are told to an app in the foreground, and not shown; if its session is locked, they are shown")
    func foreground() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        try alerts.bring(to: .active)
        #expect(alerts.mail.shell.state("web") == .active)
        try alerts.add("tea") { ($0.payload, $0.badge) = (["a": 1], 4) }
        #expect(alerts.told == ["didReceiveLocalNotification tea"])
        #expect(alerts.screen.shown.isEmpty && alerts.open.isEmpty && alerts.room.badge(of: alerts.web) == 4)
        let mail = try #require(alerts.mail.boxes.waiting(for: alerts.web).first)
        #expect(mail.parameters["alert"] == "tea" && mail.parameters["payload"] == ["a": 1])
        #expect(mail.parameters["scheduled_at"]?.intValue == alerts.wall && mail.parameters["action"] == .null)
        alerts.isCovered = true
        try alerts.add("coffee")
        #expect(alerts.screen.shown.map(\.title) == ["coffee"])
    }

    @Test("are shown while the app is in the background, or cannot be told")
    func background() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        try alerts.bring(to: .background)
        try alerts.add("tea")
        #expect(alerts.screen.shown.count == 1 && alerts.told.isEmpty)
        let deaf = try FakeAlerts(hears: false)
        deaf.room.screen = deaf.screen
        try deaf.bring(to: .active)
        try deaf.add("tea")
        #expect(deaf.screen.shown.count == 1 && deaf.told.isEmpty)
    }

    @Test("with wake, also wake the app and tell it")
    func wakes() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        try alerts.add("tea") { $0.wake = true }
        #expect(alerts.screen.shown.count == 1 && alerts.told == ["didReceiveLocalNotification tea"])
        let event = try #require(alerts.mail.host.events.first)
        #expect(event.source == .alert && event.wake?.foreground == false && alerts.mail.host.events.count == 1)
    }

    @Test("with wake, wake an app that is never told once, also if it could not be woken at first")
    func wakesOnce() throws {
        let alerts = try FakeAlerts(hears: false)
        func wakes() -> [MailWake?] { alerts.mail.boxes.waiting(for: alerts.web).map(\.draft.wake) }
        alerts.mail.host.outcome = .woken
        try alerts.add("tea") { $0.wake = true }
        #expect(wakes() == [nil] && alerts.mail.host.events.count == 1)
        #expect(try alerts.mail.stored().mail.values.map(\.wake) == [nil])
        alerts.mail.boxes.retry(alerts.web)
        #expect(alerts.mail.host.retried.isEmpty)
        alerts.mail.host.outcome = .heldBack("was woken too often", until: nil)
        try alerts.add("coffee") { $0.wake = true }
        alerts.mail.boxes.retry(alerts.web)
        #expect(wakes() == [nil, .background] && alerts.mail.host.retried.count == 1)
        alerts.mail.host.outcome = .woken
        alerts.mail.boxes.retry(alerts.web)
        #expect(wakes() == [nil, nil] && alerts.mail.host.retried.count == 2)
        // What the app was not told of an alert that is cancelled, it is not told later.
        var isCancelled = false
        alerts.room.cancel([alerts.web], ids: ["tea"], numbers: nil) { _ in isCancelled = true }
        try alerts.mail.turn { isCancelled }
        #expect(alerts.told == ["didReceiveLocalNotification coffee"])
    }

    @Test("that repeat come again, each with a number of its own, in place of the one before")
    func repeats() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        try alerts.add("tea") { $0.calendar = "minutely" }
        for _ in 0..<3 { try alerts.pass(60) }
        #expect(Set(alerts.screen.shown.map(\.id)).count == 3)
        #expect(alerts.open == ["tea"] && alerts.scheduled == ["tea"])
    }

    @Test("run commands one at a time, with the alert in their environment")
    func commands() throws {
        let alerts = try FakeAlerts()
        alerts.alertRules.commands = [["one"], ["two", "x"]]
        try alerts.add("tea") { ($0.body, $0.url, $0.urgency) = ("hot", "notes:1", "low") }
        try alerts.add("coffee")
        #expect(alerts.commands.map(\.words) == [["one"]])
        #expect(
            alerts.commands[0].variables == [
                "TORPOR_ALERT_TITLE": "tea", "TORPOR_ALERT_BODY": "hot", "TORPOR_ALERT_APP": "web",
                "TORPOR_ALERT_ID": "tea", "TORPOR_ALERT_URGENCY": "low", "TORPOR_ALERT_URL": "notes:1",
            ]
        )
        alerts.commands[0].end("it failed")
        try alerts.turn()
        #expect(alerts.commands.map(\.words) == [["one"], ["two", "x"]])
        alerts.commands[1].end(nil)
        try alerts.turn()
        #expect(alerts.commands.count == 3 && alerts.commands[2].variables["TORPOR_ALERT_TITLE"] == "coffee")
        // The last one is closed while the first of its commands runs.
        alerts.commands[2].end(nil)
        alerts.commands[3].end(nil)
        try alerts.turn()
        #expect(alerts.commands.count == 4)
    }

    @Test("wait until quiet hours are over, unless they are critical; of a repeated one only the last")
    func quiet() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        alerts.alertRules.quiet = try Self.windows("12:00-13:00")
        try alerts.add("tea") { $0.calendar = "*:0/20" }
        try alerts.add("fire") { $0.urgency = "critical" }
        #expect(alerts.screen.shown.map(\.title) == ["fire"])
        try alerts.pass(1_200)
        try alerts.pass(1_200)
        #expect(alerts.screen.shown.count == 1 && alerts.scheduled == ["tea", "tea"])
        try alerts.pass(1_199)
        #expect(alerts.screen.shown.count == 1)
        try alerts.pass(1)
        #expect(alerts.screen.shown.map(\.title).filter { $0 == "tea" }.count == 2)
        #expect(alerts.scheduled == ["tea"])
    }

    @Test("that quiet hours hold back say when they come, do not count as scheduled, and are at most 64")
    func held() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        alerts.alertRules.quiet = try Self.windows("12:00-13:00")
        let end = FakeAlerts.noon + 3_600_000_000
        #expect(try alerts.add("now").get().heldUntil == end)
        #expect(try alerts.add("soon") { $0.after = 60_000 }.get().heldUntil == end)
        #expect(try alerts.add("late") { $0.after = 3_600_000 }.get().heldUntil == nil)
        #expect(try alerts.add("fire") { ($0.after, $0.urgency) = (60_000, "critical") }.get().heldUntil == nil)
        for number in 0..<70 { #expect(!isRefused(try alerts.add("a\(number)"))) }
        #expect(alerts.scheduled.count == 67 && !alerts.scheduled.contains("now") && alerts.scheduled.contains("a69"))
        for number in 0..<61 { #expect(!isRefused(try alerts.add("b\(number)") { $0.after = 7_200_000 })) }
        #expect(isRefused(try alerts.add("c") { $0.after = 7_200_000 }))
        #expect(alerts.screen.shown.isEmpty)
        try alerts.pass(3_600)
        #expect(alerts.screen.shown.count == 67 && alerts.room.infos(of: [alerts.web]).first?.openedAt == alerts.wall)
    }

    @Test("that quiet hours hold back are told to the app when it comes to the foreground, however late it is")
    func heldForeground() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        alerts.alertRules.quiet = try Self.windows("12:00-23:00")
        alerts.alertRules.missedAfter = .seconds(60)
        try alerts.add("tea")
        try alerts.pass(3_600)
        try alerts.bring(to: .background)
        #expect(alerts.scheduled == ["tea"] && alerts.told.isEmpty)
        alerts.room.touched([alerts.web])
        try alerts.turn()
        #expect(alerts.scheduled == ["tea"] && alerts.told.isEmpty)
        try alerts.mail.shell.request(.foreground, "web")
        try alerts.turn()
        alerts.room.touched([alerts.web])
        try alerts.turn()
        #expect(alerts.told == ["didReceiveLocalNotification tea"] && alerts.scheduled.isEmpty)
        #expect(alerts.screen.shown.isEmpty && alerts.open.isEmpty)
        // At once, and not held back.
        #expect(try alerts.add("coffee").get().heldUntil == nil)
        #expect(alerts.told.count == 2)
    }

    @Test("that quiet hours hold back come when these are made shorter, or taken away, also by a restart")
    func shorter() throws {
        for isRestarted in [false, true] {
            let alerts = try FakeAlerts()
            alerts.room.screen = alerts.screen
            alerts.alertRules.quiet = try Self.windows("12:00-23:00")
            alerts.alertRules.missedAfter = .seconds(60)
            try alerts.add("tea")
            try alerts.pass(3_600)
            func change(_ quiet: [DailyWindow], byRestart: Bool = false) throws {
                alerts.alertRules.quiet = quiet
                guard byRestart else { return alerts.room.configure() }
                let contents = try alerts.mail.stored()
                alerts.restart()
                alerts.room.screen = alerts.screen
                alerts.begin(contents)
            }
            try change(Self.windows("12:00-14:00"))
            let held = alerts.room.infos(of: [alerts.web]).map(\.heldUntil)
            #expect(held == [FakeAlerts.noon + 7_200_000_000] && alerts.screen.shown.isEmpty)
            // Hours that are longer count when the alert is due.
            try change(Self.windows("12:00-15:00"))
            try alerts.pass(3_600)
            #expect(alerts.scheduled == ["tea"] && alerts.screen.shown.isEmpty)
            try change([], byRestart: isRestarted)
            try alerts.turn()
            #expect(alerts.open == ["tea"] && alerts.screen.shown.map(\.title) == ["tea"])
        }
    }

    static func windows(_ text: String) throws -> [DailyWindow] {
        let toml = "[supervisor.alerts]\nquiet = [\"\(text)\"]\n[apps.a]\nexec = [\"/bin/true\"]\n"
        return try FakeShell(toml: toml).configuration.supervisor.alerts.quiet
    }

    @Test("more than five in ten seconds are one, which counts the others")
    func bundles() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        alerts.alertRules.commands = [["one"]]
        for number in 0..<17 { try alerts.add("a\(number)") }
        let ids = alerts.screen.shown.map(\.id)
        #expect(ids.count == 17 && Set(ids).count == 6)
        let last = try #require(alerts.screen.shown.last)
        #expect((last.title, last.body, last.sound) == ("a16", "and 11 more", nil))
        #expect(alerts.open.count == 17)
        for index in 0..<5 {
            alerts.commands[index].end(nil)
            try alerts.turn()
        }
        #expect(alerts.commands.count == 5)
        try alerts.pass(10)
        #expect(alerts.commands.count == 6 && alerts.commands[5].variables["TORPOR_ALERT_BODY"] == "and 11 more")
        // A click is for the newest, and the others are gone.
        alerts.screen.onReport?(.answered(id: last.id, action: "default", token: nil))
        #expect(alerts.told == ["didReceiveLocalNotification a16 default"] && alerts.open.count == 5)
        let history = alerts.mail.shell.told(of: "web")
        #expect(history.count { $0.contains("shows its alert") } == 5, "\(history)")
        #expect(history.count { $0.contains("counts among its alerts that are shown as one") } == 12)
        let names = (5...15).map { "a\($0)" }.joined(separator: ", ")
        let end = "closes 11 alerts that were shown as one with a16, which is answered: \(names)"
        #expect(history.contains { $0.hasSuffix(end) }, "\(history)")
    }

    @Test("at most 64 are scheduled, and the 65th is refused; one of the same id replaces the other")
    func limit() throws {
        let alerts = try FakeAlerts()
        for number in 0..<64 { #expect(!isRefused(try alerts.add("a\(number)") { $0.after = 3_600_000 })) }
        guard case .failure(.refused(let sentence, .full)) = try alerts.add("b", { $0.after = 1 }) else {
            Issue.record("it was taken")
            return
        }
        #expect(sentence.contains("64"))
        #expect(!isRefused(try alerts.add("now")) && alerts.open == ["now"], "one for now is not scheduled")
        #expect(!isRefused(try alerts.add("a3") { $0.after = 7_200_000 }))
        #expect(alerts.scheduled.count == 64 && alerts.scheduled.last == "a3")
        var cancelled: Result<[AlertInfo], AlertProblem>?
        alerts.room.cancel([alerts.web], ids: ["a3"], numbers: nil) { cancelled = $0 }
        try alerts.mail.turn { cancelled != nil }
        #expect(!isRefused(try alerts.add("b") { $0.after = 1 }))
    }

    @Test("at most 64 are open: the oldest is closed for a new one")
    func mostOpen() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        for number in 0..<70 { try alerts.add("a\(number)") { $0.urgency = "critical" } }
        #expect(alerts.open.count == 64 && alerts.open.first == "a6" && alerts.screen.closed.count == 6)
    }

    @Test("are refused if they cannot be stored, and do not come")
    func disk() throws {
        let alerts = try FakeAlerts(canStore: false)
        #expect(isRefused(try alerts.add("tea") { $0.after = 1_000 }))
        #expect(alerts.scheduled.isEmpty)
    }

    @Test("may only open what the app may open, unless an operator asks")
    func urls() throws {
        let alerts = try FakeAlerts(
            more: "may_open = [\"notes\"]\nurl_schemes = [\"web\"]\nopen_command = [\"/bin/o\", \"%u\"]"
        )
        #expect(!isRefused(try alerts.add("a", isOperators: false) { ($0.url, $0.after) = ("notes:1", 60_000) }))
        #expect(!isRefused(try alerts.add("b", isOperators: false) { ($0.url, $0.after) = ("web:1", 60_000) }))
        guard case .failure(.notPermitted) = try alerts.add("c", isOperators: false, { $0.url = "mail:1" }) else {
            Issue.record("it was taken")
            return
        }
        #expect(alerts.warning == nil)
        // It may be there when a person answers: the alert itself is wanted.
        #expect(!isRefused(try alerts.add("c") { ($0.url, $0.after) = ("mail:1", 60_000) }))
        #expect(alerts.warning?.contains("mail") == true && alerts.warning?.contains("foreground") == true)
        #expect(isRefused(try alerts.add("d") { $0.url = "javascript:1" }))
    }

    @Test("are scheduled once, however often the request is sent")
    func tokens() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        let token = RequestToken.random()
        let first = try alerts.add("tea") { ($0.token, $0.id) = (token, nil) }.get()
        let second = try alerts.add("tea") { ($0.token, $0.id) = (token, nil) }.get()
        #expect(first.number == second.number && alerts.screen.shown.count == 1)
    }

    @Test("of an app that is removed are gone, and its badge")
    func removal() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        try alerts.add("open") { $0.badge = 3 }
        try alerts.add("later") { $0.after = 60_000 }
        alerts.room.forget(alerts.web)
        #expect(alerts.open.isEmpty && alerts.scheduled.isEmpty)
        #expect(alerts.screen.closed.count == 1 && alerts.screen.badges == ["io.torpor.web 3", "io.torpor.web 0"])
        try alerts.pass(60)
        #expect(alerts.screen.shown.count == 1)
    }
}

/// What the next torpord does with what it finds: nothing is lost, wherever the last one was killed.
@Suite("Alerts after torpord was killed") struct AlertRecoveryTests {
    /// Runs `work`, has torpord killed, and begins again with what was stored after each change of the store.
    private func killed(
        _ prepare: (FakeAlerts) throws -> Void,
        _ change: (inout Alert) -> Void
    ) throws -> FakeAlerts {
        let alerts = try FakeAlerts()
        try prepare(alerts)
        var contents = try alerts.mail.stored()
        for (id, row) in contents.alerts {
            guard let json = try? JSON.parse(row.json), var alert = try? Alert(json: json), alert.opening != nil else {
                continue
            }
            change(&alert)
            contents.alerts[id]?.json = alert.json.description
        }
        alerts.restart()
        alerts.room.screen = alerts.screen
        alerts.begin(contents)
        try alerts.turn()
        return alerts
    }

    @Test("before it was decided that it is shown: it is shown")
    func undecided() throws {
        let alerts = try killed {
            try $0.add("tea")
        } _: {
            $0.opening = Opening(scheduledAt: 1, openedAt: $0.base)
        }
        #expect(alerts.screen.shown.map(\.title) == ["tea"] && alerts.open == ["tea"])
    }

    @Test("after that, and before the screen had shown it: it is shown; after that, it is not")
    func unshown() throws {
        let alerts = try killed {
            try $0.add("tea")
        } _: { _ in
        }
        #expect(alerts.screen.shown.map(\.title) == ["tea"])
        let other = try killed {
            try $0.add("tea")
        } _: {
            $0.opening?.isShown = true
        }
        #expect(other.screen.shown.isEmpty && other.open == ["tea"])
    }

    @Test("while its commands ran: they run again, but not a third time")
    func commands() throws {
        for (tries, isRun, expected) in [(0, false, 1), (1, false, 1), (2, false, 0), (1, true, 0)]
            as [(Int64, Bool, Int)]
        {
            let alerts = try FakeAlerts()
            alerts.alertRules.commands = [["one"]]
            try alerts.add("tea")
            #expect(alerts.commands.count == 1)
            var contents = try alerts.mail.stored()
            let id = try #require(contents.alerts.keys.first)
            var alert = try Alert(json: JSON.parse(try #require(contents.alerts[id]).json))
            #expect(alert.opening?.tries == 1 && alert.opening?.isRun == false)
            var opening = try #require(alert.opening)
            (opening.tries, opening.isRun) = (tries, isRun)
            alert.opening = opening
            contents.alerts[id]?.json = alert.json.description
            alerts.restart()
            alerts.begin(contents)
            try alerts.turn()
            #expect(alerts.commands.count == 1 + expected, "\(tries) \(isRun)")
        }
    }

    @Test("after it was told to the app, and before that was written down: it is told once")
    func told() throws {
        let alerts = try FakeAlerts()
        alerts.room.screen = alerts.screen
        try alerts.bring(to: .active)
        try alerts.add("tea")
        #expect(alerts.told.count == 1)
        var contents = StoreContents()
        var alert = Alert(number: 0, app: "web", id: "tea", title: "tea", time: .at(1), base: 1)
        alert.number = Int64(try #require(alerts.mail.boxes.waiting(for: alerts.web).first?.draft.key))!
        alert.opening = Opening(scheduledAt: 1, openedAt: 1)
        contents.alerts[alert.number] = StoredAlert(id: alert.number, app: "web", json: alert.json.description)
        alerts.restart()
        alerts.begin(contents)
        try alerts.turn()
        #expect(alerts.told.count == 1 && alerts.screen.shown.isEmpty && alerts.open.isEmpty)
    }

    @Test("after it was answered, and before the app came to the foreground: it does")
    func answered() throws {
        let alerts = try killed {
            try $0.add("tea")
        } _: {
            $0.opening?.answer = .init(action: "default", token: nil)
        }
        #expect(alerts.told == ["didReceiveLocalNotification tea default"] && alerts.brought == ["web alert"])
        #expect(alerts.open.isEmpty)
    }

    @Test("scheduled ones, badges and numbers go on; rows that cannot be read are dropped")
    func goesOn() throws {
        let alerts = try FakeAlerts()
        try alerts.add("tea") { ($0.after, $0.payload) = (60_000, ["a": [1]]) }
        try alerts.add("daily") { $0.calendar = "13:00" }
        alerts.room.setBadge(7, of: alerts.web) { _ in }
        var contents = try alerts.mail.stored()
        contents.alerts[5] = StoredAlert(id: 5, app: "web", json: "{")
        contents.alerts[6] = StoredAlert(id: 6, app: "web", json: "{\"number\":6}")
        contents.alerts[7] = StoredAlert(id: 7, app: "gone", json: "{}")
        let before = alerts.room.infos(of: [alerts.web])
        alerts.restart()
        alerts.room.screen = alerts.screen
        alerts.begin(contents)
        #expect(alerts.room.infos(of: [alerts.web]) == before && alerts.room.badge(of: alerts.web) == 7)
        #expect(alerts.screen.badges == ["io.torpor.web 7"])
        try alerts.pass(60)
        #expect(alerts.open == ["tea"])
    }
}
