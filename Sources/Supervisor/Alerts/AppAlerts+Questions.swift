// SPDX-License-Identifier: Apache-2.0

import Alerts
import Configuration
import Engine
import EventLoop
import Permissions
import Schedules
import Store

/// Questions of apps for permissions. People see them as alerts; only torpord makes them, and no request of an app
/// reaches them.
extension AppAlerts {
    /// Asks people for a permission. The question is shown once the caller has called ``showWhatIsDue()``.
    func ask(_ declaration: PermissionDeclaration, of app: AppRuntime) -> Int64 {
        let alert = PermissionQuestion.alert(
            declaration,
            number: nextID(),
            app: app.name,
            title: app.specification.presentation.title ?? app.name,
            now: host.clocks.wall
        )
        table.set(alert, clock)
        save(alert.number)
        return alert.number
    }

    /// Shows what is due. Called when it is on disk.
    func showWhatIsDue() { timeHasCome() }

    /// The question that people have not answered or dismissed; nil if there is none.
    func question(_ permission: String, of app: AppRuntime) -> Int64? {
        table.alerts(of: app.name).first { $0.permission?.utf8.elementsEqual(permission.utf8) ?? false }?.number
    }

    /// Closes the questions that are answered, or that the app does not ask any more.
    func closeAnsweredQuestions() {
        guard isLoaded else { return }
        for alert in table.all {
            guard let permission = alert.permission, let app = app(of: alert), !host.isAsked(permission, of: app)
            else { continue }
            close(alert.number)
        }
    }

    func answerQuestion(
        _ alert: Alert,
        _ permission: String,
        _ action: String,
        _ person: String,
        _ completion: @escaping (AlertProblem?) -> Void
    ) {
        guard let app = app(of: alert), action == PermissionQuestion.allow || action == PermissionQuestion.deny else {
            let how = "‘torpor alerts \(alert.app) --answer \(alert.id) --action allow’, or deny"
            return completion(.failed("the alert \(alert.id) asks for a permission: allow or deny it (\(how))"))
        }
        let isAllowed = action == PermissionQuestion.allow
        host.answerQuestion(permission, isAllowed: isAllowed, of: app, by: person) { [weak self] problem in
            // Otherwise the answer counts, and the question is closed; or it is asked no more.
            if problem == nil { self?.close(alert.number) }
            completion(problem.map { .failed($0) })
        }
    }

    /// A person does not want to see an alert any longer, or it is cancelled.
    func dismiss(_ number: Int64) {
        if let alert = table[number], let app = app(of: alert) {
            if let permission = alert.permission {
                note(
                    app,
                    .permission,
                    text: "its question for the permission \(permission) was dismissed: it is not asked again"
                )
            } else if alert.opening != nil {
                note(app, .alert, text: "has its alert \(alert.id) dismissed")
            }
        }
        close(number)
    }
}
