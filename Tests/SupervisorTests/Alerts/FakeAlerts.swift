// SPDX-License-Identifier: Apache-2.0

import Alerts
import CalendarTime
import Configuration
import DesktopProtocol
import Engine
import EngineHarness
import EventLoop
import EventSources
import Lifecycle
import Mailbox
import Schedules
import Store
import Testing
import TorporAPI
import Varlink

@testable import Supervisor

/// A screen that writes down what it is told.
final class FakeScreen: AlertScreen {
    var onReport: ((DesktopReport) -> Void)?
    private(set) var shown: [DesktopAlert] = []
    private(set) var closed: [Int64] = []
    private(set) var badges: [String] = []
    private(set) var acknowledged: [Int64] = []

    func show(_ alert: DesktopAlert) { shown.append(alert) }
    func close(_ id: Int64) { closed.append(id) }
    func badge(_ entry: String, _ count: Int64) { badges.append("\(entry) \(count)") }
    func acknowledge(_ id: Int64) { acknowledged.append(id) }
}

/// Apps without processes, their mailboxes and alerts, and a store.
final class FakeAlerts: AlertHost {
    let mail: FakeMail
    let screen = FakeScreen()
    private(set) var room: AppAlerts!

    var alertRules = AlertSpecification()
    var wall: Int64 = FakeAlerts.noon
    var running = Duration.seconds(1000)
    var isCovered = false
    /// Which apps critical alerts interrupt, by whether the alert has a sound.
    var interrupts: (AppRuntime, Bool) -> Bool = { _, _ in true }
    var timeZone = TimeZone.utc
    private(set) var followsClock = false
    /// Of the alert that was scheduled last.
    private(set) var warning: String?
    /// The apps that a person wanted to see.
    private(set) var brought: [String] = []
    /// The commands that were run, and how each is to end.
    private(set) var commands: [(words: [String], variables: [String: String], end: (String?) -> Void)] = []

    /// 2026-03-01, 12:00 UTC.
    static let noon: Int64 = 1_772_366_400_000_000

    func isInterrupted(_ app: AppRuntime, byAlertWithSound hasSound: Bool) -> Bool { interrupts(app, hasSound) }

    var clocks: ClockPair { ClockPair(running: running, wall: wall) }
    var store: Store { mail.host.store }
    var mailboxes: Mailboxes { mail.boxes }

    /// - Parameter hears: the app gets messages about alerts.
    init(hears: Bool = true, more: String = "", canStore: Bool = true, begins: Bool = true) throws {
        // Nobody minds that signal; the messages come by the app's socket.
        let signals = hears ? "signals = { didReceiveLocalNotification = \"SIGWINCH\" }\n" : ""
        mail = try FakeMail(signals + more, canStore: canStore)
        mail.host.hearing = [mail.web.id]
        restart()
        if begins { begin(StoreContents()) }
    }

    /// Another torpord, which has only what was stored.
    func restart() { room = AppAlerts(mail.shell.engine, mail.shell.recorder, self) }

    func begin(_ contents: StoreContents) {
        load(contents)
        room.begin()
    }

    func load(_ contents: StoreContents) {
        room.load(contents)
        for body in afterLoad { body() }
        afterLoad = []
    }

    private var afterLoad: [() -> Void] = []

    func whenLoaded(_ body: @escaping () -> Void) { if room.isLoaded { body() } else { afterLoad.append(body) } }

    var web: AppRuntime { mail.web }

    var personAtScreen: String { "uid 7, on the desktop" }
    /// The permissions that the app asks for, and that nobody has answered.
    var asked: Set<String> = ["camera", "network"]
    /// What people answered, and by whom.
    private(set) var answered: [String] = []
    /// Why answers are refused.
    var refusal: String?

    func isAsked(_ permission: String, of app: AppRuntime) -> Bool { asked.contains(permission) }

    func answerQuestion(
        _ permission: String,
        isAllowed: Bool,
        of app: AppRuntime,
        by person: String,
        _ completion: @escaping (String?) -> Void
    ) {
        if refusal == nil { answered.append("\(permission) \(isAllowed) \(person)") }
        completion(refusal)
    }

    func followClock() { followsClock = true }
    func bringToForeground(_ app: AppRuntime, for event: WakeEvent) { brought.append("\(app.name) \(event.source)") }

    func runAlertCommand(
        _ command: [String],
        _ variables: [String: String],
        of app: AppRuntime,
        _ completion: @escaping (String?) -> Void
    ) {
        commands.append((command, variables, completion))
    }

    /// Lets time pass on all clocks.
    func pass(_ seconds: Int64) throws {
        wall += seconds * 1_000_000
        running += .seconds(seconds)
        try mail.shell.pass(.seconds(seconds))
        try turn()
    }

    func turn() throws { try mail.shell.pass(.zero) }

    /// Schedules an alert, and waits for the reply.
    @discardableResult
    func add(
        _ title: String,
        isOperators: Bool = true,
        _ change: (inout ScheduleAlertRequest) -> Void = { _ in }
    ) throws -> Result<AlertInfo, AlertProblem> {
        var request = ScheduleAlertRequest(title: title)
        request.id = title
        change(&request)
        var outcome: Result<AlertInfo, AlertProblem>?
        room.schedule(request, of: web, isOperators: isOperators) { [self] result in
            outcome = result.map(\.info)
            warning = (try? result.get())?.warning
        }
        try mail.turn { outcome != nil }
        try turn()
        return try #require(outcome)
    }

    /// The ids of the alerts that are open, and scheduled.
    var open: [String] { room.infos(of: [web]).filter { $0.state == "open" }.map(\.id) }
    var scheduled: [String] { room.infos(of: [web]).filter { $0.state == "scheduled" }.map(\.id) }

    /// The messages about alerts that wait for the app.
    var told: [String] {
        mail.boxes.waiting(for: web).filter { $0.draft.topic == "torpor.alerts" }.map { mail in
            let payload = mail.draft.payload
            let action = payload["action"]?.stringValue.map { " \($0)" } ?? ""
            return "\(mail.draft.message) \(payload["alert"]?.stringValue ?? "-")\(action)"
        }
    }

    /// The app is launched, and comes to that state.
    func bring(to goal: AppState) throws {
        try mail.shell.request(.start(background: goal == .background), "web")
        try turn()
    }
}
