// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// A daemon whose alerts are shown by a command, which writes them down, and the app `web`, a delegate.
struct AlertScene {
    let daemon: Daemon

    static let toml = """
        [supervisor.alerts]
        desktop = "none"
        commands = [["/bin/sh", "@D/show.sh"]]
        \(Delegates.head)
        """

    static let files = Delegates.files().merging([
        "show.sh": """
        echo "$TORPOR_ALERT_APP|$TORPOR_ALERT_ID|$TORPOR_ALERT_TITLE|$TORPOR_ALERT_BODY|$TORPOR_ALERT_URGENCY|$(id -u)" \
        >>@D/shown
        """
    ]) { $1 }

    static func run(
        _ more: String = "",
        losing: Bool = false,
        at location: SourceLocation = #_sourceLocation,
        _ body: (AlertScene) throws -> Void
    ) throws {
        if losing {
            try withRecovery(toml + more, files: files, at: location) { try body(AlertScene(daemon: $0)) }
        } else {
            try withDaemon(toml + more, files: files, at: location) { try body(AlertScene(daemon: $0)) }
        }
    }

    /// The lines of the command.
    var shown: [String] {
        ((try? File.readString(daemon.directory + "/shown")) ?? "").split(separator: "\n").map(String.init)
    }

    func torpor(_ words: String...) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
    }

    func notify(_ title: String, _ change: (inout ScheduleAlertRequest) -> Void = { _ in }) throws {
        var request = ScheduleAlertRequest(title: title)
        request.id = title
        request.token = .random()
        change(&request)
        _ = try daemon.call(.scheduleAlert(ScheduleAppAlertRequest(app: "web", alert: request)))
    }

    func answer(_ id: String, _ action: String = "default") throws {
        _ = try daemon.call(.answerAlert(AnswerAlertRequest(app: "web", id: id, action: action)))
    }

    var infos: [AlertInfo] {
        get throws {
            let reply = try daemon.call(.alerts(AlertsRequest()))
            return try Fields(reply).list("alerts") { json throws(FieldError) in try AlertInfo(json: json) }
        }
    }

    /// What the app was told of alerts: `ID ACTION`.
    var told: [String] {
        get throws {
            try daemon.heard().filter { $0.what == "message" && $0.name == "didReceiveLocalNotification" }.map {
                heard in
                let action = heard.parameters["action"]?.stringValue
                return (heard.parameters["alert"]?.stringValue ?? "?") + (action.map { " " + $0 } ?? "")
            }
        }
    }
}

@Suite("Alerts of apps") struct AlertTests {
    @Test("are shown by the commands while the app is away, and told while it is in the foreground")
    func shownOrTold() throws {
        try AlertScene.run { scene in
            let daemon = scene.daemon
            try scene.notify("Tea is ready; $(reboot) `reboot`") { request in
                (request.id, request.body, request.urgency) = ("tea", "two\nlines", "low")
            }
            try daemon.eventually("it is shown") { scene.shown.count == 2 }
            let user = Users.effectiveUID
            #expect(scene.shown == ["web|tea|Tea is ready; $(reboot) `reboot`|two", "lines|low|\(user)"])
            #expect(try daemon.summary("web").state == "not-running")
            try daemon.done(.start, "web")
            try scene.notify("coffee") { $0.payload = ["cups": 2] }
            let message = try daemon.waitForMessage("didReceiveLocalNotification").parameters
            #expect(message["alert"] == "coffee" && message["payload"] == ["cups": 2] && message["action"] == .null)
            try daemon.done(.background, "web")
            try scene.notify("milk") { $0.after = 50 }
            try daemon.eventually("it is shown") { scene.shown.count == 3 }
            #expect(try scene.told == ["coffee"])
            #expect(try scene.infos.map { "\($0.id) \($0.state)" } == ["tea open", "milk open"])
        }
    }

    @Test("An answer brings the app to the foreground and tells it, from any state, also after a force quit")
    func answers() throws {
        try AlertScene.run { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            for (index, verb) in [Verb.background, .suspend, .stop, .kill].enumerated() {
                try daemon.done(verb, "web")
                let id = "a\(index)"
                try scene.notify(id) { $0.actions = [AlertAction(id: "later", label: "Later")] }
                try daemon.eventually("it is shown after \(verb)") { scene.shown.count == index + 1 }
                try scene.answer(id, index == 1 ? "later" : "default")
                try daemon.waitFor("web", "active")
                try daemon.eventually("it is told") { try scene.told.count == index + 1 }
                #expect(try scene.told.last == "\(id) \(index == 1 ? "later" : "default")")
            }
            #expect(try scene.infos.isEmpty)
            let launches = try daemon.heard().filter { $0.what == "message" && $0.name == "didFinishLaunching" }
            let event = try #require(launches.last?.parameters["options"]?["event"])
            #expect(event["source"] == "alert" && event["name"] == "a3", "\(event)")
            #expect(throws: (any Error).self) { try scene.answer("a3") }
        }
    }

    @Test("With wake, an alert launches or resumes the app in the background, and tells it")
    func wakes() throws {
        try AlertScene.run { scene in
            let daemon = scene.daemon
            try scene.notify("one") { $0.wake = true }
            try daemon.eventually("it is told") { try scene.told == ["one"] }
            #expect(try daemon.summary("web").state == "background")
            try daemon.done(.suspend, "web")
            try scene.notify("two") { $0.wake = true }
            try daemon.eventually("it is told") { try scene.told == ["one", "two"] }
            try daemon.eventually("both are shown") { scene.shown.count == 2 }
        }
    }

    @Test("A URL is opened instead by the app that opens such URLs")
    func urls() throws {
        let notes = """
            [apps.notes]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            url_schemes = ["notes"]
            open_command = ["/bin/sh", "-c", "echo $0 >>@D/opened", "%u"]
            """
        try AlertScene.run(notes) { scene in
            try scene.notify("tea") { $0.url = "notes:1" }
            try scene.daemon.eventually("it is shown") { scene.shown.count == 1 }
            try scene.answer("tea")
            try scene.daemon.eventually("it is opened") {
                (try? File.readString(scene.daemon.directory + "/opened")) == "notes:1\n"
            }
            try scene.daemon.waitFor("notes", "active")
            #expect(try scene.daemon.summary("web").state == "not-running")
        }
    }

    @Test("An app schedules and cancels its own by its socket: hostile ones and the 65th are refused")
    func own() throws {
        try AlertScene.run { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            let reply = try daemon.ask("d.call('ScheduleAlert', title='Später', id='a', calendar='Mon..Fri 9:55')")
            #expect(reply["alert"]?["calendar"] == "Mon..Fri 9:55" && reply["alert"]?["state"] == "scheduled")
            for python in [
                #"title='a\x1b[2J'"#, #"title='a\u202eb'"#, "title=''", "title='x' * 81", "title='a', body='x' * 1025",
                "title='a', actions=[{'id': 'default', 'label': 'x'}]", "title='a', url='javascript:1'",
                "title='a', payload='x' * 9000", "title='a', calendar='*:*:*'", "title='a', at='1999-01-01T00:00Z'",
                "title=4", "title='a', actions=7", "title='a', badge=-1", "title='a', url='notes:1'",
            ] {
                #expect(throws: (any Error).self, "\(python)") { try daemon.ask("d.call('ScheduleAlert', \(python))") }
            }
            _ = try daemon.ask("[d.call('ScheduleAlert', title='t', after_ms=3600000) for _ in range(63)][-1]")
            #expect(throws: (any Error).self) { try daemon.ask("d.call('ScheduleAlert', title='t', after_ms=3600000)") }
            #expect(try scene.infos.count == 64)
            #expect(throws: (any Error).self) { try daemon.ask("d.call('CancelAlert', ids=['b'])") }
            #expect(try daemon.ask("d.call('CancelAlert', ids=['a'])")["numbers"]?.arrayValue?.count == 1)
            _ = try daemon.ask("d.call('SetBadge', count=7)")
            #expect(throws: (any Error).self) { try daemon.ask("d.call('SetBadge', count=10000)") }
            let mine = try daemon.ask("d.call('Alerts')")
            #expect(mine["alerts"]?.arrayValue?.count == 63 && mine["badge"] == 7)
            #expect(try daemon.summary("web").badge == 7)
            #expect(try daemon.ask("d.call('CancelAlert')")["numbers"]?.arrayValue?.count == 63)
            #expect(try scene.infos.isEmpty)
        }
    }

    @Test("at the command line are scheduled, listed, answered and cancelled; badges are in the list")
    func commandLine() throws {
        try AlertScene.run { scene in
            let daemon = scene.daemon
            #expect(try scene.torpor("notify", "web", "Tea", "--id", "tea", "--after", "1h").output.hasPrefix("tea "))
            #expect(try scene.torpor("notify", "web", "Now", "--id", "now").output == "now now\n")
            #expect(
                try scene.torpor("notify", "web", "Daily", "--id", "d", "--calendar", "daily", "--at", "9:00").code == 2
            )
            #expect(try scene.torpor("notify", "web", "Daily", "--id", "d", "--calendar", "daily").code == 0)
            try daemon.eventually("it is shown") { scene.shown.count == 1 }
            let lines = try scene.torpor("alerts").output.split(separator: "\n").map { $0.split(separator: " ") }
            #expect(lines.first?.joined(separator: " ") == "APP ID NEXT REPEATS TITLE", "\(lines)")
            #expect(lines.dropFirst().map { String($0[1]) }.sorted() == ["d", "now", "tea"], "\(lines)")
            #expect(lines[1][2...3] == ["open", "since"], "\(lines)")
            #expect(try scene.torpor("alerts", "web", "--answer", "tea").code == 1)
            let none = try scene.torpor("alerts", "w*", "--answer", "none")
            #expect(none.code == 1 && none.output.contains("there is no open alert none"), "\(none)")
            #expect(try scene.torpor("alerts", "x*", "--answer", "now").code == 4)
            for (words, said) in [
                (["badge", "web", "-5"], "-5 is no badge: write a number from 1 to 9999, or 0 for none"),
                (["badge", "web", "10000"], "10000 is no badge: write a number from 1 to 9999, or 0 for none"),
                (["notify", "web", "t", "--after", "-5s"], "the value '-5s' is invalid for '--after <duration>'"),
                (["notify", "web", "t", "--badge", "-5"], "badge must be from 0 (none) to 9999"),
            ] {
                let refused = try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
                #expect(refused.code == 2 && refused.output.contains(said), "\(refused)")
            }
            let warned = try scene.torpor("notify", "web", "Link", "--id", "link", "--after", "1h", "--url", "none:1")
            #expect(warned.code == 0 && warned.output.contains("none"), "\(warned)")
            #expect(try scene.torpor("alerts", "web", "--cancel", "link").code == 0)
            #expect(try scene.torpor("alerts", "--answer", "now").code == 0)
            try daemon.waitFor("web", "active")
            #expect(try scene.torpor("alerts", "web", "--cancel", "tea").output == "1 alert cancelled\n")
            let all = try scene.torpor("alerts", "web", "--all").output
            #expect(all == "d of web does not come again (it was repeated: daily)\n1 alert cancelled\n", "\(all)")
            #expect(try scene.torpor("alerts").output == "no alerts\n")
            #expect(try !scene.torpor("list").output.contains("BADGE"))
            #expect(try scene.torpor("badge", "web", "12").code == 0)
            let list = try scene.torpor("list").output
            #expect(list.contains("BADGE") && list.contains("12"), "\(list)")
            #expect(try scene.torpor("status", "web").output.contains("badge"))
            #expect(try scene.torpor("badge", "web", "10000").code != 0)
            let metrics = try scene.torpor("metrics").output
            #expect(metrics.contains(#"torpor_app_badge{app="web"} 12"#))
            #expect(metrics.contains(#"torpor_app_alerts_shown_total{app="web"} 1"#))
        }
    }

    @Test("Today's of a repeated alert is dismissed, and the alert comes again")
    func dismisses() throws {
        try AlertScene.run { scene in
            try scene.notify("far") { $0.calendar = "2100-01-01" }
            let early = try scene.torpor("alerts", "web", "--dismiss", "far")
            #expect(early.code == 1 && early.output.contains("‘--cancel far’ cancels it"), "\(early)")
            let none = try scene.torpor("alerts", "--dismiss", "none")
            #expect(none.code == 1 && none.output.contains("there is no open alert none"), "\(none)")
            let soon = Clock.realtimeMicroseconds() / 1_000_000 + 2
            func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
            let time = "\(two(soon / 3_600 % 24)):\(two(soon / 60 % 60)):\(two(soon % 60)) UTC"
            try scene.notify("tick") { $0.calendar = time }
            try scene.daemon.eventually("it comes") {
                try scene.infos.contains { $0.state == "open" }
            }
            #expect(try scene.torpor("alerts", "web", "--dismiss", "tick").output.hasSuffix("dismissed\n"))
            #expect(try scene.infos.contains { $0.id == "tick" && $0.state == "scheduled" })
            #expect(try scene.torpor("alerts", "--dismiss", "tick", "--cancel", "tick").code == 2)
        }
    }

    @Test("A time without an offset is read in TZ, in which it is shown too, unless a zone is named")
    func zones() throws {
        try AlertScene.run { scene in
            func notify(_ id: String, _ words: String...) throws -> String {
                let all = [Built.path("torpor"), "notify", "web", "T", "--id", id, "--socket", scene.daemon.socket]
                return try Spawn.run(all + words, environment: ["TZ": "<+13>-13"]).output
            }
            let year = 2100
            #expect(try notify("a", "--at", "\(year)-07-01T10:00") == "a \(year)-07-01T10:00:00+13:00\n")
            #expect(try notify("b", "--at", "10:00").hasSuffix("T10:00:00+13:00\n"))
            #expect(try notify("c", "--at", "9:55").hasSuffix("T09:55:00+13:00\n"))
            let utc = try notify("d", "--at", "\(year)-07-01T10:00", "--time-zone", "UTC")
            #expect(utc == "d \(year)-07-01T23:00:00+13:00\n")
            let offset = try notify("e", "--at", "\(year)-07-01T10:00:00+0100")
            #expect(offset == "e \(year)-07-01T22:00:00+13:00\n")
            #expect(try notify("f", "--at", "23h", "--time-zone", "UTC").contains("or only 14:30"))
        }
    }

    @Test("A hook of a shell has the fields of an answer in its environment, and none is unset without one")
    func hook() throws {
        let toml = """
            [apps.web]
            exec = ["\(Built.path("torpor"))", "app", "delegate", "--on", "didReceiveLocalNotification=sh @D/hook.sh"]
            launch = "on-demand"
            ready = "delegate"
            """
        let hook = """
            set -u
            echo "$TORPOR_MESSAGE_ALERT|$TORPOR_MESSAGE_ACTION|$TORPOR_MESSAGE_ACTIVATION_TOKEN|$TORPOR_MESSAGE_PAYLOAD" \
            >>@D/shown
            """
        try withDaemon(toml, files: ["hook.sh": hook]) { daemon in
            let scene = AlertScene(daemon: daemon)
            try scene.notify("tea") { request in
                (request.payload, request.actions) = (["cups": 2], [AlertAction(id: "later", label: "Later")])
            }
            try daemon.eventually("it is open") { try scene.infos.first?.state == "open" }
            try scene.answer("tea", "later")
            try daemon.eventually("it is told") { scene.shown.count == 1 }
            try scene.notify("milk")
            try daemon.eventually("it is told") { scene.shown.count == 2 }
            #expect(scene.shown == [#"tea|later||{"cups":2}"#, "milk|||"])
        }
    }

    @Test("A mistake of an app has the exit status that it has at the command line, and says what the app can do")
    func mistakes() throws {
        let script = """
            for words in 'notify x --urgency loud' 'badge 10000' 'alerts --cancel none'; do
                \(Built.path("torpor")) app $words 2>>$1/said
                echo $? >>$1/codes
            done
            exec sleep 1000
            """
        let toml = "[apps.web]\nexec = [\"/bin/sh\", \"@D/web.sh\", \"@D\"]\n"
        try withDaemon(toml, files: ["web.sh": script]) { daemon in
            func file(_ name: String) -> String { (try? File.readString(daemon.directory + "/" + name)) ?? "" }
            try daemon.eventually("all have ended") { file("codes").utf8.count == 6 }
            #expect(file("codes") == "2\n2\n1\n", "\(file("said"))")
            #expect(file("said").contains("there is no alert none: ‘torpor app alerts’ lists them"), "\(file("said"))")
        }
    }

    @Test("A command that fails or hangs is reported, and the next alert is shown")
    func failing() throws {
        let toml = """
            [supervisor.alerts]
            commands = [["/bin/sh", "-c", "echo $TORPOR_ALERT_ID >>@D/shown; test $TORPOR_ALERT_ID != a"], ["@D/none"]]
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            """
        try withDaemon(toml) { daemon in
            let scene = AlertScene(daemon: daemon)
            try scene.notify("a")
            try scene.notify("b")
            try daemon.eventually("both are shown") { scene.shown == ["a", "b"] }
            try daemon.eventually("the failures are in the history") {
                let output = try scene.torpor("history", "web").output
                return output.contains("failed with exit status 1") && output.contains("/none")
            }
        }
    }

    @Test("of an app that is removed are gone, and do not come back with it")
    func removed() throws {
        try AlertScene.run { scene in
            let daemon = scene.daemon
            let whole = try File.readString(daemon.directory + "/torpor.toml")
            try scene.notify("later") { $0.after = 3_600_000 }
            try scene.notify("open")
            _ = try scene.torpor("badge", "web", "3")
            try daemon.eventually("it is shown") { scene.shown.count == 1 }
            let start = try #require(whole.range(of: "[apps.web]")).lowerBound
            try File.write(
                daemon.directory + "/torpor.toml",
                whole[..<start] + "[apps.other]\nexec = [\"/bin/sleep\", \"9\"]\n"
            )
            #expect(try scene.torpor("apply").code == 0)
            try daemon.eventually("it is gone") { try scene.infos.isEmpty }
            try File.write(daemon.directory + "/torpor.toml", whole)
            #expect(try scene.torpor("apply").code == 0)
            #expect(try scene.infos.isEmpty && daemon.summary("web").badge == nil)
        }
    }
}

@Suite("Alerts are shown although torpord is lost", .serialized) struct AlertLossTests {
    @Test("Scheduled and open ones, badges and answers go on", arguments: [Loss.killed, .keeper, .both, .upgraded])
    func goOn(loss: Loss) throws {
        try AlertScene.run(losing: true) { scene in
            let daemon = scene.daemon
            try scene.notify("open")
            try scene.notify("later") { $0.after = 3_600_000 }
            try scene.notify("daily") { $0.calendar = "daily" }
            _ = try daemon.call(.setBadge(app: "web", count: 7))
            try daemon.eventually("it is shown") { scene.shown.count == 1 }
            let before = try scene.infos
            try daemon.lose(loss)
            try daemon.eventually("the next one knows them") { try scene.infos.count == 3 }
            #expect(try scene.infos.map(\.number) == before.map(\.number) && daemon.summary("web").badge == 7)
            try scene.answer("open")
            try daemon.eventually("it is told") { try scene.told == ["open default"] }
            // Twice if torpord was killed before it knew that the command had ended.
            #expect((1...2).contains(scene.shown.count), "\(scene.shown)")
        }
    }

    /// As the chaos tests do it, with alerts that are due all the time.
    @Test("Each comes once, twice at most, and never not at all, whenever torpord and its keeper are killed")
    func chaos() throws {
        try AlertScene.run(losing: true) { scene in
            let daemon = scene.daemon
            let rounds = 12
            for round in 0..<rounds {
                for number in 0..<3 {
                    try scene.notify("r\(round)-\(number)") { request in
                        (request.after, request.urgency) = (Int64.random(in: 0...120), "critical")
                    }
                }
                Thread.sleep(forTimeInterval: .random(in: 0...0.15))
                try daemon.lose(round % 4 == 3 ? .both : .killed)
            }
            try daemon.eventually("all are shown") { Set(scene.shown).count == rounds * 3 }
            let counts = Dictionary(grouping: scene.shown) { $0 }.mapValues(\.count)
            #expect(counts.values.allSatisfy { $0 <= 2 }, "\(counts.filter { $0.value > 2 })")
            #expect(try scene.infos.count == rounds * 3)
        }
    }

    @Test("An answer is told once, and brings the app to the foreground, although torpord is killed right after it")
    func answered() throws {
        try AlertScene.run(losing: true) { scene in
            let daemon = scene.daemon
            for round in 0..<6 {
                try daemon.done(.kill, "web")
                try scene.notify("a\(round)")
                try daemon.eventually("it is shown") { scene.shown.contains { $0.hasPrefix("web|a\(round)|") } }
                try scene.answer("a\(round)")
                try daemon.lose(.killed)
                try daemon.waitFor("web", "active")
                try daemon.eventually("it is told") { try scene.told.count == round + 1 }
            }
            #expect(try scene.told == (0..<6).map { "a\($0) default" })
        }
    }

    @Test("A machine without a desktop lacks nothing where commands bring the alerts, or the configuration wants none")
    func withoutDesktop() throws {
        guard Users.effectiveUID == 0 else { return print("skipped: a user's torpord has a session") }
        let none = "desktop = \"none\"\n"
        let toml = AlertScene.toml.replacingOccurrences(of: none, with: "")
        try withDaemon(toml, files: AlertScene.files) { daemon throws in
            let scene = AlertScene(daemon: daemon)
            func check() throws -> DoctorCheck? {
                try (daemon.call(.doctor)["checks"]?.arrayValue ?? []).map { try DoctorCheck(json: $0) }
                    .first { $0.name == "alerts on the desktop" }
            }
            try scene.notify("tea")
            try daemon.eventually("it is shown") { scene.shown.count == 1 }
            let shown = try check()
            let found = try #require(shown)
            #expect(found.ok && found.value?.hasPrefix("by the configured commands alone") == true, "\(found)")
            try daemon.apply(AlertScene.toml)
            #expect(try check() == nil)
            #expect(try scene.infos.map(\.state) == ["open"])
        }
    }
}
