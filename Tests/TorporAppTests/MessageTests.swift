// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI

@testable import TorporApp

/// Has no method of its own.
private struct Silent: AppDelegate {}

/// Implements the methods as delegates did before they had results and levels.
private actor Former: AppDelegate {
    private(set) var heard: [String] = []
    func openURL(_ app: TorporApp, url: String) async throws { heard.append("openURL \(url)") }
    func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws { heard.append("\(mail.name) \(mail.topic)") }
    func didReceiveMemoryWarning(_ app: TorporApp) async throws { heard.append("didReceiveMemoryWarning") }
    func received(_ app: TorporApp, message: OtherMessage) async throws { heard.append("other \(message.name)") }
}

/// Writes down what belongs to each message, and has no use for the topic `news` and the URL `other:`.
private actor Typed: AppDelegate {
    private(set) var heard: [String] = []

    func openURL(_ app: TorporApp, url: String) async throws -> MailResult {
        heard.append(url)
        return url == "other:" ? .unhandled : .done
    }
    func didReceiveMemoryWarning(_ app: TorporApp, level: MemoryLevel) async throws {
        heard.append("\(level.name) \(level == .critical)")
    }
    func settingsDidChange(_ app: TorporApp, change: SettingsChange) async throws {
        heard.append("settings \(change.changed) \(change.path ?? "-")")
    }
    func identityDidChange(_ app: TorporApp, change: SettingsChange) async throws {
        heard.append("identity \(change.changed) \(change.path ?? "-")")
    }
    func refresh(_ app: TorporApp, names: [String]) async throws { heard.append("refresh \(names)") }
    func willContinueActivity(_ app: TorporApp, type: String) async throws { heard.append("will \(type)") }
    func continueActivity(_ app: TorporApp, activity: ContinuedActivity) async throws {
        let parts = [activity.type, activity.title, "\(activity.payload)", activity.url ?? "-", activity.source ?? "-"]
        heard.append("continue " + parts.joined(separator: " "))
    }
    func didFailToContinueActivity(_ app: TorporApp, type: String, reason: String) async throws {
        heard.append("failed \(type) \(reason)")
    }
    func activityWasContinued(_ app: TorporApp, type: String, by: String) async throws {
        heard.append("continued \(type) \(by)")
    }
    func significantTimeChange(_ app: TorporApp, change: TimeChange) async throws {
        let offset = change.secondsFromUTC.map { "\($0)" } ?? "-"
        heard.append("\(change.clockWasSet) \(change.timeZone ?? "-") \(offset) \(change.day ?? "-")")
    }
    func protectedDataWillBecomeUnavailable(_ app: TorporApp) async throws { heard.append("locked") }
    func protectedDataDidBecomeAvailable(_ app: TorporApp) async throws { heard.append("unlocked") }
    func handleEventsForBackgroundTransfer(_ app: TorporApp, session: String) async throws {
        heard.append("session \(session)")
    }
    func transferDidFinish(_ app: TorporApp, transfer: FinishedTransfer) async throws {
        let end = transfer.error ?? "\(transfer.path) \(transfer.bytes) \(transfer.sha256 ?? "-")"
        heard.append("transfer \(transfer.id) \(transfer.session) \(transfer.url) \(transfer.status ?? 0) \(end)")
    }
    func transferNeedsLogin(_ app: TorporApp, login: TransferLogin) async throws {
        heard.append("login \(login.id) \(login.url) \(login.realm ?? "-") \(login.scheme ?? "-")")
    }
    func didReceiveLocalNotification(_ app: TorporApp, alert: ReceivedAlert) async throws {
        let token = alert.activationToken ?? "-"
        heard.append("alert \(alert.id) \(alert.scheduledAt) \(alert.payload) \(alert.action ?? "-") \(token)")
    }
    func didReceiveEvent(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        heard.append("event \(mail.topic) \(mail.payload) \(mail.count)")
        return mail.topic == "news" ? .unhandled : .done
    }
    func didReceiveNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        heard.append("notification \(mail.topic)")
        return .done
    }
    func didReceiveRemoteNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        heard.append("remote \(mail.topic)")
        return .done
    }
}

@Suite(.ownProcess) struct MessageTests {
    /// Tells a delegate these, and gives the answers but for that of the launch.
    private func answers(
        of delegate: some AppDelegate,
        to messages: [(String, JSON)],
        _ script: FakeSupervisor.Script = FakeSupervisor.Script()
    ) async throws -> [AppAnswer.Result] {
        let supervisor = try FakeSupervisor(script)
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            for (name, parameters) in messages { supervisor.tell(name, parameters) }
            try await supervisor.waitForAnswers(messages.count + 1)
        }
        return supervisor.answers.dropFirst().map(\.result)
    }

    @Test("what a delegate has no method for is unhandled if another app may be told, else done")
    func silent() async throws {
        let mail = [
            "openURL", "continueActivity", "didReceiveEvent", "didReceiveNotification", "didReceiveRemoteNotification",
            "unheardOf",
        ]
        let results = try await answers(of: Silent(), to: mail.map { ($0, ["topic": "jobs"]) })
        #expect(results == mail.map { _ in .unhandled })
        let others = [
            "didBecomeActive", "didReceiveMemoryWarning", "settingsDidChange", "identityDidChange",
            "significantTimeChange", "protectedDataWillBecomeUnavailable", "protectedDataDidBecomeAvailable",
            "handleEventsForBackgroundTransfer", "transferDidFinish", "transferNeedsLogin",
            "didReceiveLocalNotification", "sceneWillConnect",
            "sceneDidBecomeActive", "sceneWillResignActive", "sceneDidEnterBackground", "sceneWillEnterForeground",
            "sceneDidDisconnect", "didDiscardScenes", "refresh", "willContinueActivity", "didFailToContinueActivity",
            "activityWasContinued",
        ]
        #expect(try await answers(of: Silent(), to: others.map { ($0, [:]) }) == others.map { _ in .done })
    }

    @Test("methods without results and levels are called as before, and answer done")
    func former() async throws {
        let delegate = Former()
        let results = try await answers(
            of: delegate,
            to: [
                ("openURL", ["url": "note:1"]), ("didReceiveEvent", ["topic": "jobs"]),
                ("didReceiveRemoteNotification", ["topic": "push"]), ("didReceiveMemoryWarning", ["level": "critical"]),
                ("settingsDidChange", [:]), ("protectedDataDidBecomeAvailable", [:]), ("unheardOf", [:]),
            ]
        )
        #expect(results == Array(repeating: .done, count: 7))
        #expect(
            await delegate.heard == [
                "openURL note:1", "didReceiveEvent jobs", "didReceiveRemoteNotification push",
                "didReceiveMemoryWarning",
                "other settingsDidChange", "other protectedDataDidBecomeAvailable", "other unheardOf",
            ]
        )
    }

    @Test("what belongs to a message has its type, also where it is not as expected")
    func typed() async throws {
        let delegate = Typed()
        let clock: JSON = ["clock": true, "time_zone": "Europe/Berlin", "utc_offset_s": 3600, "day": "2026-11-23"]
        let results = try await answers(
            of: delegate,
            to: [
                ("openURL", ["url": "note:1"]), ("openURL", ["url": "other:"]),
                ("didReceiveMemoryWarning", ["level": "critical"]), ("didReceiveMemoryWarning", ["level": 4]),
                ("settingsDidChange", ["payload": ["changed": ["port", 4, "theme"]]]),
                ("identityDidChange", ["payload": ["path": "/etc/who", "changed": "port"]]),
                ("settingsDidChange", ["payload": .null]), ("significantTimeChange", ["payload": clock]),
                ("significantTimeChange", ["payload": ["clock": 1, "day": 4]]),
                ("protectedDataWillBecomeUnavailable", [:]), ("protectedDataDidBecomeAvailable", [:]),
                ("didReceiveEvent", ["topic": "jobs", "payload": 7, "count": 2]),
                ("didReceiveEvent", ["topic": "news"]),
                ("didReceiveNotification", ["topic": "power"]), ("didReceiveRemoteNotification", ["topic": "push"]),
                ("handleEventsForBackgroundTransfer", ["session": "s"]),
                (
                    "transferDidFinish",
                    [
                        "id": 99, "transfer": 7, "session": "s", "url": "u", "path": "/f", "bytes": 3, "status": 200,
                        "sha256": "ab", "error": .null,
                    ]
                ),
                ("transferDidFinish", ["transfer": 8, "error": "no"]),
                ("transferNeedsLogin", ["transfer": 9, "url": "u", "realm": "r", "scheme": 4]),
                (
                    "didReceiveLocalNotification",
                    [
                        "id": 99, "alert": "a", "scheduled_at": 5, "payload": 7, "action": "later",
                        "activation_token": "t",
                    ]
                ),
                ("didReceiveLocalNotification", ["alert": 4, "action": .null]),
                ("willContinueActivity", ["type": "t"]),
                (
                    "continueActivity",
                    ["type": "t", "title": "T", "payload": ["a": 1], "url": .null, "source": "shop"]
                ),
                ("didFailToContinueActivity", ["type": 4, "reason": "it ended"]),
                ("activityWasContinued", ["type": "t", "by": "editor"]),
            ]
        )
        #expect(results.enumerated().filter { $0.element != .done }.map(\.offset) == [1, 12])
        #expect(results[1] == .unhandled && results[12] == .unhandled)
        #expect(
            await delegate.heard == [
                "note:1", "other:", "critical true", "warning false", #"settings ["port", "theme"] -"#,
                "identity [] /etc/who", "settings [] -", "true Europe/Berlin 3600 2026-11-23", "false - - -", "locked",
                "unlocked", "event jobs 7 2", "event news null 1", "notification power", "remote push",
                "session s", "transfer 7 s u 200 /f 3 ab", "transfer 8   0 no", "login 9 u r -",
                "alert a 5 7 later t", "alert  0 null - -", "will t", #"continue t T {"a":1} - shop"#,
                "failed  it ended", "continued t editor",
            ]
        )
    }

    @Test("to a supervisor that is older than the word unhandled the message is done")
    func olderSupervisor() async throws {
        var script = FakeSupervisor.Script()
        script.unknownResult = .unhandled
        let results = try await answers(
            of: Silent(),
            to: [("didReceiveEvent", [:]), ("openURL", [:]), ("didBecomeActive", [:])],
            script
        )
        #expect(results == [.done, .done, .done])
    }
}
