// SPDX-License-Identifier: Apache-2.0

import Alerts
import Configuration
import DesktopProtocol
package import Engine
import EventLoop
import Lifecycle
import Linux
import Mailbox
import Permissions
import Store
package import TorporAPI
import Transfers
package import Varlink

/// Why a request about alerts is not carried out.
package enum AlertProblem: Error {
    /// A parameter is invalid.
    case invalid(FieldError)
    /// The app lacks a permission; the text says why, as a sentence.
    case notPermitted(String)
    /// The reason, as a sentence, and as a word.
    case refused(String, AppInterface.FailureReason)
    /// The reason, as a sentence.
    case failed(String)
}

/// Requests of apps and operators about alerts and badges.
extension AppAlerts {
    // MARK: Alerts

    /// The result of scheduling an alert.
    package struct Scheduled {
        /// The alert, with the time at which it is due.
        package var info: AlertInfo
        /// A sentence for the user, if no app can open the alert's URL now, or if the notification server plays no
        /// sounds; otherwise nil. The alert is scheduled all the same, since both may change before it is due.
        package var warning: String?
    }

    /// The reply to a request to cancel alerts.
    package static func json(ofCancelled alerts: [AlertInfo]) -> JSON {
        ["numbers": .array(alerts.map { .int($0.number) }), "alerts": .array(alerts.map(\.json))]
    }

    /// Schedules an alert. `completion` gets the alert when it is on disk.
    ///
    /// - Parameter isOperators: whether an operator made the request. Operators may open any URL.
    package func schedule(
        _ request: ScheduleAlertRequest,
        of app: AppRuntime,
        isOperators: Bool,
        _ completion: @escaping (Result<Scheduled, AlertProblem>) -> Void
    ) {
        guard isLoaded else {
            return host.whenLoaded { [weak self, weak app] in
                if let self, let app { self.schedule(request, of: app, isOperators: isOperators, completion) }
            }
        }
        if let token = request.token, let number = tokens[token.value, app.name] {
            return repeated(request, number, app, completion)
        }
        let alert: Alert
        do throws(AlertProblem) {
            alert = try make(request, app, isOperators: isOperators)
        } catch {
            return completion(.failure(error))
        }
        for other in table.alerts(of: app.name) where other.id == alert.id { close(other.number) }
        table.set(alert, clock)
        tokens.note(alert.token, of: app.name, is: alert.number)
        save(alert.number)
        let done = Scheduled(info: info(alert, app), warning: warning(about: alert))
        host.store.sync { [weak self] problem in
            guard let self else { return }
            if let problem {
                if table[alert.number]?.opening == nil { close(alert.number) }
                tokens.giveBack(alert.token, of: app.name)
                return completion(.failure(.failed("the alert is not scheduled: it cannot be stored (\(problem))")))
            }
            completion(.success(done))
            timeHasCome()
        }
    }

    /// Replies to a repeated request, whose first reply was lost: `completion` gets the alert that the first request
    /// made.
    private func repeated(
        _ request: ScheduleAlertRequest,
        _ number: Int64,
        _ app: AppRuntime,
        _ completion: @escaping (Result<Scheduled, AlertProblem>) -> Void
    ) {
        // If the alert was delivered, answered or dismissed after the first request, it is no longer in the table: then
        // reply with what the request says.
        var known = AlertInfo(
            number: number,
            app: app.name,
            id: request.id ?? "alert-\(number)",
            state: "open",
            title: request.title
        )
        if let alert = table[number] { known = info(alert, app) }
        let result = Scheduled(info: known, warning: table[number].flatMap(warning(about:)))
        host.store.sync { problem in
            if let problem {
                completion(.failure(.failed("it is not known whether the alert is stored (\(problem))")))
            } else {
                completion(.success(result))
            }
        }
    }

    private func warning(about alert: Alert) -> String? {
        let plays = server?.capabilities.contains("sound") ?? true
        let isSilent = alert.sound != nil && shownOn != nil && !plays
        let silence = isSilent ? "the notification server of the session plays no sounds: the alert is silent" : nil
        let warnings = [warning(aboutURLOf: alert), silence].compactMap(\.self)
        return warnings.isEmpty ? nil : warnings.joined(separator: "; ")
    }

    private func warning(aboutURLOf alert: Alert) -> String? {
        guard let url = alert.url, host.mailboxes.handlers(of: .url(url)).isEmpty else { return nil }
        // Only operators may learn which URL schemes other apps open.
        let scheme = OpenedURL.scheme(url) ?? ""
        let sentence =
            alert.isOperators ? host.mailboxes.sentence(ofNoHandlerFor: .url(url)) : "no app opens \(scheme): URLs"
        return "\(sentence). Until an app does, a person who chooses the alert brings \(alert.app) to the foreground"
    }

    private func make(
        _ request: ScheduleAlertRequest,
        _ app: AppRuntime,
        isOperators: Bool
    ) throws(AlertProblem) -> Alert {
        guard isOperators || app.allows(.alerts) else {
            throw .notPermitted("\(app.name) is in a sandbox: it needs the permission alerts")
        }
        var alert: Alert
        do throws(FieldError) {
            alert = try Alert(request, number: nextID(), app: app.name, clock: clock)
        } catch {
            throw .invalid(error)
        }
        alert.isOperators = isOperators
        if let url = alert.url {
            let target = OpenTarget.url(url)
            if let problem = target.problem { throw .invalid(FieldError(field: "url", problem: problem)) }
            let scheme = OpenedURL.scheme(url) ?? ""
            // Check whether the app may open the URL: without this check, it could make a user open URLs that it may
            // not open itself.
            let opening = app.specification.opening
            guard isOperators || opening.mayOpen(scheme: scheme) || opening.fit(target) != nil else {
                throw .notPermitted(
                    "\(app.name) may not open \(scheme): URLs: name the scheme in may_open of \(app.name)"
                )
            }
        }
        // The other scheduled alerts that count against the limits. Alerts that quiet hours hold back do not count,
        // because they were due already, nor do permission questions, because torpord makes them.
        let others = table.scheduled(of: app.name).filter {
            $0.id != alert.id && $0.heldUntil == nil && $0.permission == nil
        }
        let clock = clock
        func isDue(_ alert: Alert) -> Bool { (clock.due(alert) ?? .max) <= clock.wall }
        // Two separate limits apply. An alert that is due now counts with the other alerts that are due but not stored
        // yet: once it is stored, it is opened, and if too many alerts are open, the oldest one is closed. An alert
        // that is due later counts with the scheduled alerts that are not due yet.
        let isNow = isDue(alert)
        let count = others.count { isDue($0) == isNow }
        guard count < (isNow ? AlertRules.mostOpen : AlertRules.most) else {
            throw .refused(
                isNow
                    ? "\(app.name) has \(count) alerts that are not stored yet: try again when they are"
                    : "\(app.name) has \(count) scheduled alerts, which is the most: cancel one "
                        + "(\(Self.list(!isOperators)) lists them), or give the id of one to replace",
                .full
            )
        }
        return alert
    }

    /// Cancels scheduled and open alerts of some apps: the alerts with these ids or numbers, or all if both are nil.
    /// `completion` gets the cancelled alerts when the cancellation is on disk.
    ///
    /// - Parameters:
    ///   - namesApps: whether the request names the apps. If it does not, an id that several apps use is refused.
    ///   - isApps: whether an app makes the request. Apps cannot cancel permission questions.
    package func cancel(
        _ chosen: [AppRuntime],
        ids: [String]?,
        numbers: [Int64]?,
        namesApps: Bool = true,
        isApps: Bool = false,
        _ completion: @escaping (Result<[AlertInfo], AlertProblem>) -> Void
    ) {
        let all = chosen.flatMap { table.alerts(of: $0.name) }.filter { !isApps || $0.permission == nil }
        for id in ids ?? [] where !all.contains(where: { $0.id == id }) {
            let sentence = "there is no alert \(id): \(Self.list(isApps)) lists them"
            return completion(.failure(.refused(sentence, .unknown)))
        }
        for id in ids ?? [] where !namesApps {
            let names = chosen.map(\.name).filter { name in all.contains { $0.app == name && $0.id == id } }
            guard names.count < 2 else { return completion(.failure(.failed(Self.several("an alert", id, names)))) }
        }
        for number in numbers ?? [] where !all.contains(where: { $0.number == number }) {
            return completion(.failure(.refused("there is no alert of the number \(number)", .unknown)))
        }
        let isAll = ids == nil && numbers == nil
        let cancelled = infos(of: chosen, withQuestions: !isApps).filter { info in
            isAll || ids?.contains(info.id) ?? false || numbers?.contains(info.number) ?? false
        }
        for info in cancelled {
            dismiss(info.number)
            // A cancellation by number means that a user dismisses the alerts. In that case, mail that was sent about
            // these alerts stays in the apps' mailboxes.
            if numbers == nil, let app = chosen.first(where: { $0.name == info.app }) {
                host.mailboxes.forgetAlert(info.number, of: app)
            }
        }
        arm()
        host.store.sync { problem in
            if let problem {
                return completion(.failure(.failed("they are cancelled, but that cannot be stored (\(problem))")))
            }
            completion(.success(cancelled))
        }
    }

    private static func several(_ what: String, _ id: String, _ names: [String]) -> String {
        "several apps have \(what) \(id) (\(names.prefix(3).joined(separator: ", "))): name the app"
    }

    /// The command that lists alerts, for an app or for an operator.
    private static func list(_ isApps: Bool) -> String { isApps ? "‘torpor app alerts’" : "‘torpor alerts’" }

    /// Returns `number` if one of these apps has an open alert with that number; throws otherwise.
    package func openAlert(_ number: Int64, of chosen: [AppRuntime]) throws(AlertProblem) -> Int64 {
        guard let alert = table[number], alert.opening != nil, chosen.contains(where: { $0.name == alert.app }) else {
            throw .failed("there is no open alert of the number \(number)")
        }
        return number
    }

    /// The number of the latest open alert with this id. Throws if none of these apps has such an alert, or several
    /// have.
    package func openAlert(_ id: String, of chosen: [AppRuntime]) throws(AlertProblem) -> Int64 {
        let found = chosen.compactMap { app in table.open(of: app.name).last { $0.id == id } }
        guard let first = found.first else {
            throw .failed("there is no open alert \(id): ‘torpor alerts’ lists them")
        }
        guard found.count == 1 else {
            throw .failed(Self.several("an open alert", id, found.map(\.app)))
        }
        return first.number
    }

    /// The alerts of some apps: first the open ones, then the scheduled ones, each by time.
    ///
    /// - Parameter withQuestions: whether to include permission questions.
    package func infos(of chosen: [AppRuntime], withQuestions: Bool = true) -> [AlertInfo] {
        let infos = chosen.flatMap { app in
            table.alerts(of: app.name).filter { withQuestions || $0.permission == nil }.map { info($0, app) }
        }
        return infos.sorted { one, other in
            if (one.state == "open") != (other.state == "open") { return one.state == "open" }
            return (one.at ?? .max, one.number) < (other.at ?? .max, other.number)
        }
    }

    /// Whether any alert is open: its time has come, and a user has neither answered nor dismissed it.
    package var hasOpen: Bool { table.hasOpen }

    private func info(_ alert: Alert, _ app: AppRuntime) -> AlertInfo {
        let isOpen = alert.opening != nil
        var info = AlertInfo(
            number: alert.number,
            app: app.name,
            id: alert.id,
            state: isOpen ? "open" : "scheduled",
            title: alert.title
        )
        (info.body, info.urgency, info.actions, info.url) = (
            alert.body, alert.urgency.rawValue, alert.actions, alert.url
        )
        info.at = alert.opening?.scheduledAt ?? table.due(alert, clock) ?? clock.due(alert)
        info.calendar = isOpen ? nil : alert.calendar
        info.openedAt = alert.opening?.openedAt
        info.permission = alert.permission
        info.heldUntil = alert.heldUntil ?? (isOpen ? nil : heldUntil(alert, info.at, app))
        return info
    }

    // MARK: Badges

    /// The number (badge) at the app's desktop entry; 0 for none.
    package func badge(of app: AppRuntime) -> Int64 { badges[app.name]?.count ?? 0 }

    /// Shows a number at the app's desktop entry; 0 shows none. `completion` is called when the number is on disk.
    package func setBadge(_ count: Int64, of app: AppRuntime, _ completion: @escaping (AlertProblem?) -> Void) {
        if let problem = AlertRules.problem(badge: count) {
            return completion(.invalid(FieldError(field: "count", problem: problem.problem)))
        }
        setBadge(count, of: app)
        host.store.sync { problem in
            completion(problem.map { .failed("the badge is shown, but cannot be stored (\($0))") })
        }
    }

    func setBadge(_ count: Int64, of app: AppRuntime) {
        guard count != badge(of: app) else { return }
        if count == 0, let badge = badges.removeValue(forKey: app.name) {
            host.store.removeAlert(badge.number, of: app.name)
        } else {
            badges[app.name] = Badge(number: badges[app.name]?.number ?? nextID(), count: count)
            saveBadge(of: app.name)
        }
        shownOn?.badge(Self.entry(of: app.name), count)
        engine.touch(app.id)
    }

    /// How many of an app's alerts are in each state.
    package func states(of app: AppRuntime) -> [(state: String, count: Int)] {
        let all = table.alerts(of: app.name)
        let open = all.count { $0.opening != nil }
        return [("open", open), ("scheduled", all.count - open)]
    }
}
