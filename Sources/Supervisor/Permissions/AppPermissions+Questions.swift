// SPDX-License-Identifier: Apache-2.0

import Alerts
import Configuration
package import Engine
import EventLoop
import Linux
import Permissions
import Store
package import TorporAPI

/// Permission questions: an app asks torpord to ask a user for a permission.
///
/// Users are asked only once for each permission of an app, and an app can ask at most once an hour. Both rules survive
/// restarts of the app and of torpord, since questions are stored like answers.
extension AppPermissions {
    /// The minimum time between two questions of an app, in microseconds.
    static let hour =
        ThisProcess.environment("TORPOR_TEST_QUESTION_PAUSE_MS").flatMap { Int64($0) }.map { $0 * 1000 }
        ?? 3_600_000_000

    /// The name under which an app's questions are counted. All scenes of a template count as one app: otherwise an app
    /// could open further scenes to ask more often.
    static func family(_ app: String) -> String {
        app.utf8.firstIndex(of: UInt8(ascii: "@")).map { String(app[..<$0]) } ?? app
    }

    /// The state of each permission that the app declares.
    package func states(of app: AppRuntime) -> [PermissionStanding] {
        app.specification.sandbox.states(app.permissionAnswers).map { declaration, state in
            PermissionStanding(
                name: declaration.name,
                state: isConfined(app) ? state.word : PermissionState.allowed.word
            )
        }
    }

    private func isConfined(_ app: AppRuntime) -> Bool { app.specification.sandbox.mode != nil }

    /// Whether a question about this permission is still needed: the app declares the permission, no user has answered,
    /// and the question that users see names all declared ports. For a running app, both its current configuration and
    /// a new one must need the question, because they may declare different permissions or ports.
    func isAsked(_ name: String, of app: AppRuntime) -> Bool {
        guard isLoaded else { return true }
        let shown = questions[app.name]?[name].map { $0.scope.split(separator: " ").compactMap { UInt16($0) } }
        return [app.specification, app.next ?? app.specification].allSatisfy { specification in
            specification.sandbox.mode != nil
                && specification.sandbox.states(app.permissionAnswers).contains { declaration, state in
                    declaration.name.utf8.elementsEqual(name.utf8) && state == .asked
                        && shown.map { declaration.isCovered(by: $0) } ?? true
                }
        }
    }

    /// Handles an app's request for a permission. Once everything is on disk, `completion` gets the permission's state,
    /// and whether users are being asked now.
    package func request(
        _ name: String,
        for app: AppRuntime,
        _ completion: @escaping (Result<PermissionReply, Refusal>) -> Void
    ) {
        supervisor.persistence.whenLoaded { [weak self, weak app] in
            guard let self, let app else { return }
            requestNow(name, app, completion)
        }
    }

    private func requestNow(
        _ name: String,
        _ app: AppRuntime,
        _ completion: @escaping (Result<PermissionReply, Refusal>) -> Void
    ) {
        let states = app.specification.sandbox.states(app.permissionAnswers)
        guard let (declaration, state) = states.first(where: { $0.declaration.name.utf8.elementsEqual(name.utf8) })
        else {
            // An app without a sandbox need not declare permissions: nothing is denied to it.
            guard isConfined(app) || (try? Permission(name)) == nil else {
                return completion(.success(PermissionReply(state: PermissionState.allowed.word)))
            }
            let refusal = undeclared(name, app)
            return completion(.failure(Refusal("\(refusal): declare it in [apps.\(app.name).permissions]")))
        }
        guard isConfined(app) else {
            return completion(.success(PermissionReply(state: PermissionState.allowed.word)))
        }
        var reply = PermissionReply(state: state.word)
        guard state == .asked else { return completion(.success(reply)) }
        let how = "‘torpor permissions \(app.name) allow \(declaration.name)’"
        let now = Clock.realtimeMicroseconds()
        if supervisor.alerts.question(declaration.name, of: app) != nil {
            reply.message = "people are asked already, and have not answered"
            return tell(reply, completion)
        }
        if let row = questions[app.name]?[declaration.name],
            declaration.isCovered(by: row.scope.split(separator: " ").compactMap { UInt16($0) })
        {
            reply.message = "people were asked once, and did not answer: an operator can, with \(how)"
            return completion(.success(reply))
        }
        let family = Self.family(app.name)
        // If the wall clock was set back since the last question, the hour until the next question begins now.
        if let last = lastQuestions[family].map({ min($0, now) }), now < last + Self.hour {
            lastQuestions[family] = last
            reply.nextAt = last + Self.hour
            reply.message = "people are asked at most once an hour for \(family)"
            return completion(.success(reply))
        }
        if let obstacle = supervisor.desktop.obstacleToQuestions {
            return completion(
                .failure(
                    Refusal(
                        "no person can be asked: \(obstacle). Answer with \(how), or name commands in [supervisor.alerts] that "
                            + "tell people"
                    )
                )
            )
        }
        ask(declaration, app, now, reply, completion)
    }

    private func ask(
        _ declaration: PermissionDeclaration,
        _ app: AppRuntime,
        _ now: Int64,
        _ reply: PermissionReply,
        _ completion: @escaping (Result<PermissionReply, Refusal>) -> Void
    ) {
        let family = Self.family(app.name)
        let (earlier, last) = (questions[app.name]?[declaration.name], lastQuestions[family])
        let row = StoredPermission.question(
            declaration.name,
            of: app.name,
            scope: declaration.scope.map(String.init).joined(separator: " "),
            at: now
        )
        // Make the alert first: if torpord is killed before the question is stored, users may see the question twice,
        // but the question is not lost.
        let number = supervisor.alerts.ask(declaration, of: app)
        questions[app.name, default: [:]][declaration.name] = row
        lastQuestions[family] = now
        supervisor.store.save(row)
        supervisor.store.sync { [weak self, weak app] problem in
            guard let self, let app else { return }
            guard let problem else {
                note(app, .permission, text: "asks people for the permission \(declaration.name)", level: .info)
                supervisor.alerts.showWhatIsDue()
                var reply = reply
                reply.isAskedNow = true
                return completion(.success(reply))
            }
            supervisor.alerts.close(number)
            questions[app.name]?[declaration.name] = earlier
            lastQuestions[family] = last
            if let earlier { supervisor.store.save(earlier) } else { supervisor.store.removePermission(row.key) }
            completion(.failure(Refusal("no person is asked: the question cannot be stored (\(problem))")))
        }
    }

    /// Calls `completion` with the reply once an earlier question is on disk.
    private func tell(_ reply: PermissionReply, _ completion: @escaping (Result<PermissionReply, Refusal>) -> Void) {
        supervisor.store.sync { problem in
            if let problem {
                completion(.failure(Refusal("it is not known whether the question is stored (\(problem))")))
            } else {
                completion(.success(reply))
            }
        }
    }

    /// Called when answers were reset. Forgets the questions about these permissions, so that users may be asked again.
    func forgetQuestions(_ chosen: [PermissionDeclaration], _ app: AppRuntime) {
        for declaration in chosen {
            guard supervisor.alerts.question(declaration.name, of: app) == nil,
                let row = questions[app.name]?.removeValue(forKey: declaration.name)
            else { continue }
            supervisor.store.removePermission(row.key)
        }
    }
}

extension PermissionState {
    /// The word for this state in the reply to the app.
    var word: String {
        switch self {
        case .allowed: "allow"
        case .denied: "deny"
        case .asked: "ask"
        }
    }
}

extension Supervisor {
    var personAtScreen: String { desktop.person }

    func isAsked(_ permission: String, of app: AppRuntime) -> Bool { permissions.isAsked(permission, of: app) }

    func answerQuestion(
        _ permission: String,
        isAllowed: Bool,
        of app: AppRuntime,
        by person: String,
        _ completion: @escaping (String?) -> Void
    ) {
        let request = AnswerPermissionsRequest(app: app.name, names: [permission], answer: isAllowed ? .allow : .deny)
        permissions.answer(request, of: app, by: person) { result in
            switch result {
            case .success: completion(nil)
            case .failure(let refusal): completion(refusal.description)
            }
        }
    }
}
