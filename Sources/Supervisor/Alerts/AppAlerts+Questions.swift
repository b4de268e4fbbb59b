// SPDX-License-Identifier: Apache-2.0

import Alerts
import Configuration
import Engine
import EventLoop
import Permissions
import Schedules
import Store

/// Permission questions: an app asks for a permission, and users see the question as an alert. Only torpord creates
/// these alerts, and no request of an app can change them.
extension AppAlerts {
    /// Asks users for a permission. Returns the number of the alert, which is shown when the caller calls
    /// ``showWhatIsDue()``.
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

    /// Shows alerts that are due. Called when a question is on disk.
    func showWhatIsDue() { timeHasCome() }

    /// The number of the question about a permission that users have neither answered nor dismissed; nil if there is
    /// none.
    func question(_ permission: String, of app: AppRuntime) -> Int64? {
        table.alerts(of: app.name).first { $0.permission?.utf8.elementsEqual(permission.utf8) ?? false }?.number
    }

    /// Closes questions that were answered, or whose permission the app no longer declares.
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
            // If the answer was carried out, or the question needs no answer any longer, close the question.
            if problem == nil { self?.close(alert.number) }
            completion(problem.map { .failed($0) })
        }
    }

    /// Closes an alert that a user has dismissed or that was cancelled, and records the dismissal. A dismissed question
    /// is not asked again.
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
