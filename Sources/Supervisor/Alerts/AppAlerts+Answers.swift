// SPDX-License-Identifier: Apache-2.0

import Alerts
import Configuration
import DesktopProtocol
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Mailbox
import Schedules
import Store
import TorporAPI

/// Handles what users do with open alerts: on the screen, in the dashboard, or at the command line.
extension AppAlerts {
    // MARK: Answers

    /// Stores which action of an open alert a user chose, and carries it out. `completion` is called when the choice
    /// is on disk.
    ///
    /// - Parameter person: the name of the user; nil for the user at the screen.
    package func answer(
        _ number: Int64,
        _ action: String,
        token: String? = nil,
        by person: String? = nil,
        _ completion: @escaping (AlertProblem?) -> Void
    ) {
        guard let alert = table[number], alert.opening != nil else {
            return completion(.failed("there is no open alert \(number): ‘torpor alerts’ lists them"))
        }
        if let permission = alert.permission {
            return answerQuestion(alert, permission, action, person ?? host.personAtScreen, completion)
        }
        guard action == AlertRules.defaultAction || alert.actions.contains(where: { $0.id == action }) else {
            let actions = ([AlertRules.defaultAction] + alert.actions.map(\.id)).joined(separator: ", ")
            return completion(.failed("the alert \(alert.id) has no action \(action): it has \(actions)"))
        }
        table.update(number) { $0.answer = Opening.Answer(action: action, token: token) }
        save(number)
        carryOutAnswer(of: number)
        host.store.sync { problem in
            completion(problem.map { .failed("it is answered, but that cannot be stored (\($0))") })
        }
    }

    /// Brings the app to the foreground and sends it the user's answer to an alert, or opens the alert's URL.
    func carryOutAnswer(of number: Int64) {
        guard let alert = table[number], let opening = alert.opening, let answer = opening.answer,
            let app = app(of: alert)
        else { return }
        endInterruption(by: number)
        let isDefault = answer.action == AlertRules.defaultAction
        note(app, .alert, text: "has its alert \(alert.id) answered" + (isDefault ? "" : ": \(answer.action)"))
        if let url = alert.url, isDefault, open(url, of: alert, app) { return close(number) }
        let event = host.mailboxes.tellAnswer(
            AlertMail.received(
                as: Message.didReceiveLocalNotification.rawValue,
                number: number,
                alert: alert.id,
                scheduledAt: opening.scheduledAt,
                payload: alert.payload,
                action: answer.action,
                activationToken: answer.token
            ),
            app
        )
        host.bringToForeground(app, for: event)
        // Close the alert last: if torpord is killed before, the next torpord brings the app to the foreground.
        close(number)
    }

    /// Opens the URL of an alert in the app that opens such URLs, like ‘torpor open’. Returns false if no app does.
    private func open(_ url: String, of alert: Alert, _ app: AppRuntime) -> Bool {
        let target = OpenTarget.url(url)
        var refusal = "no app opens it"
        for handler in host.mailboxes.handlers(of: target).map(\.app) {
            do throws(URLRefusal) {
                _ = try host.mailboxes.open(target, from: app.name, key: "alert \(alert.number)", handler)
                let event = WakeEvent(.alert, alert.id, "the alert \(alert.id) of \(app.name)", at: now)
                host.bringToForeground(handler, for: event)
                return true
            } catch {
                refusal = "\(handler.name) \(error)"
            }
        }
        note(app, .alert, text: "has an alert, \(alert.id), whose URL is not opened: \(refusal)", level: .warning)
        return false
    }

    /// Removes an alert, also from the screen, without notifying its app.
    func close(_ number: Int64) {
        guard let alert = table[number] else { return }
        let (store, name) = (host.store, alert.app)
        endInterruption(by: number) { store.removeAlert(number, of: name) }
        let shown = alert.opening?.bundle ?? number
        let wasOpen = alert.opening?.isDelivered ?? false
        table.remove(number)
        guard wasOpen, members(of: shown).isEmpty else { return }
        commands.remove(shown)
        shownOn?.close(shown)
        boundInterruptions()
        if let app = app(of: alert) { engine.touch(app.id) }
    }

    // MARK: Reports of the screen

    /// Starts to use a screen: receives the screen's reports, and shows the badges and alerts that are not on it yet.
    func greet(_ screen: any AlertScreen) {
        // Before the alerts are loaded, every alert on the screen would seem unknown, and would be closed.
        guard isLoaded else { return }
        screen.onReport = { [weak self] report in self?.take(report) }
        guard shownOn != nil else { return }
        for (name, badge) in badges where badge.count > 0 { screen.badge(Self.entry(of: name), badge.count) }
        showAgain { !($0.opening?.isShown ?? true) }
    }

    /// Shows the open alerts for which `isWanted` is true.
    private func showAgain(_ isWanted: (Alert) -> Bool) {
        guard let screen = shownOn else { return }
        var seen: Set<Int64> = []
        // A bundle (several alerts that are shown as one) is shown by its newest alert.
        for alert in table.allOpen.reversed() where alert.opening?.isDelivered ?? false && isWanted(alert) {
            guard let app = app(of: alert), seen.insert(alert.opening?.bundle ?? alert.number).inserted else {
                continue
            }
            screen.show(desktopAlert(alert, app, isSilent: alert.opening?.isShown ?? false))
        }
    }

    /// An alert that was lost from the screen is shown again only if it became due within this time, in microseconds.
    private static let recent: Int64 = 3_600_000_000

    private func take(_ report: DesktopReport) {
        switch report {
        case .here(let ids, let server, _):
            self.server = server
            let ours = Set(ids)
            for id in ids where members(of: id).isEmpty { screen?.close(id) }
            let wall = host.clocks.wall
            showAgain { alert in
                guard let opening = alert.opening, !ours.contains(opening.bundle ?? alert.number) else { return false }
                return !opening.isShown || !opening.hasLeft && wall - opening.openedAt < Self.recent
            }
            boundInterruptions()
        case .server(let server):
            self.server = server
            boundInterruptions()
        case .shown(let id, let place):
            lastFailure = nil
            let place = place.map { Opening.Place(server: $0.server, number: Int64($0.number)) }
            for alert in members(of: id) {
                guard let opening = alert.opening, !opening.isShown || place != nil && place != opening.place else {
                    continue
                }
                table.update(alert.number) { ($0.isShown, $0.place) = (true, place ?? $0.place) }
                save(alert.number)
            }
        case .failed(let id, let reason):
            guard let alert = members(of: id).last, let app = app(of: alert) else { return }
            let reason = String(reason.unicodeScalars.prefix(200))
            // Log a reason only when it changes: without a desktop, each alert would fail for the same reason.
            guard reason != lastFailure else { return }
            lastFailure = reason
            // If commands are configured, users still learn of the alert from the commands, so this is no warning.
            let level: LogLevel = host.alertRules.commands.isEmpty ? .warning : .info
            note(app, .alert, text: "has an alert, \(alert.id), that is not on the screen: \(reason)", level: level)
        case .closed(let id, let why):
            let alerts = members(of: id)
            switch why {
            case .dismissed: for alert in alerts { dismiss(alert.number) }
            // Keep the alert: it has left the screen, but users can still answer it.
            case .expired:
                for alert in alerts { leave(alert.number) }
            case .closed: break
            }
        case .answered(let id, let action, let token): answered(id, action, token)
        case .focused, .following, .listening, .pong, .sound, .unseen: break
        }
    }

    /// Records that an alert which is still open is no longer on the screen.
    private func leave(_ number: Int64) {
        table.update(number) { $0.hasLeft = true }
        endInterruption(by: number)
    }

    /// The longest activation token that is passed on, in bytes.
    private static let longestToken = 1024

    private func answered(_ id: Int64, _ action: String, _ token: String?) {
        let alerts = members(of: id)
        // No open alert has this number: it was answered elsewhere, or the screen has repeated its report.
        guard let last = alerts.last else {
            screen?.acknowledge(id)
            return
        }
        let others = alerts.dropLast()
        if !others.isEmpty, let app = app(of: last) {
            let names = others.map(\.id).joined(separator: ", ")
            let what = others.count == 1 ? "an alert that was" : "\(others.count) alerts that were"
            note(app, .alert, text: "closes \(what) shown as one with \(last.id), which is answered: \(names)")
        }
        for alert in others { close(alert.number) }
        let token = token.flatMap { $0.utf8.count <= Self.longestToken ? $0 : nil }
        let known = last.actions.contains { $0.id == action } ? action : AlertRules.defaultAction
        if last.permission != nil, known == AlertRules.defaultAction {
            // A click on the text neither allows nor denies the permission, so the question stays open.
            leave(last.number)
            screen?.acknowledge(id)
            return
        }
        answer(last.number, known, token: token) { [weak self] problem in
            guard problem == nil else { return }
            self?.screen?.acknowledge(id)
        }
    }
}
