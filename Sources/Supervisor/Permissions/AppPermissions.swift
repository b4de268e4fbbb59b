// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Notify
import Permissions
package import Store
package import TorporAPI

/// The answers of users to apps that ask for permissions.
///
/// An answer takes effect when it is on disk. If it changes what a running app may do, the app is ended and launched
/// again: the sandbox of a running process cannot be changed from outside.
package final class AppPermissions: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    /// The answers by app name and permission name. Answers for apps that are not in the configuration are kept, so
    /// that a denial applies again when the app comes back.
    private var answers: [String: [String: StoredPermission]] = [:]
    /// Answers that wait because the previous answer is not on disk yet. Answers are stored one at a time, so that if
    /// the disk refuses one, only that one is lost.
    private var queue: [() -> Void] = []
    private var isAnswering = false
    /// The questions that users were asked, by app name and permission name.
    var questions: [String: [String: StoredPermission]] = [:]
    /// When an app last asked users, in microseconds since 1970. The key is the app's name; for a scene, the name of
    /// its template.
    var lastQuestions: [String: Int64] = [:]
    /// Whether the stored answers are loaded.
    private(set) var isLoaded = false
    /// Accesses that the kernel has denied to apps.
    package private(set) lazy var denials = {
        let denials = DenialWatch(engine, recorder, supervisor)
        denials.owner = { [unowned(unsafe) supervisor] app in supervisor.launcher.userID(of: app) }
        return denials
    }()
    /// Apps whose permissions have changed since they stored descriptors, or sent descriptors to their own sockets.
    /// These descriptors may give access that the app no longer has.
    private var outdatedStores: Set<AppID> = []
    /// The user of each app's last launch by this torpord, by name or number; empty for torpord's own user.
    private var usersAtLaunch: [AppID: String] = [:]

    package init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    package func load(_ contents: StoreContents) {
        guard !isLoaded else { return }
        isLoaded = true
        let now = Clock.realtimeMicroseconds()
        for row in contents.permissions.values {
            if let name = row.asked {
                questions[row.key.app, default: [:]][name] = row
                let family = Self.family(row.key.app)
                lastQuestions[family] = max(lastQuestions[family] ?? 0, min(row.at, now))
            } else {
                answers[row.key.app, default: [:]][row.key.name] = row
            }
        }
        for app in apps where answers[app.name] != nil {
            let before = app.grants
            heed(app)
            if app.grants.gifts != before.gifts { supervisor.wakes.configure() }
            // If an answer is still pending, the running app has the permissions from before the answer: the earlier
            // torpord was killed after it had stored the answer and before it restarted the app.
            guard answers[app.name]?.values.contains(where: \.isPending) ?? false else { continue }
            loop.later { [weak self, weak app] in
                guard let self, let app, self.answers[app.name] != nil else { return }
                self.launchAgain(app)
            }
        }
    }

    /// Saves all answers again, because the store's file was lost.
    func keepAll() {
        for rows in answers.values { for row in rows.values { supervisor.store.save(row) } }
        for rows in questions.values { for row in rows.values { supervisor.store.save(row) } }
    }

    /// Called when an app was added, by a new configuration or as a scene: its stored answers apply again.
    package func added(_ app: AppRuntime) { heed(app) }

    package func forget(_ app: AppRuntime) {
        outdatedStores.remove(app.id)
        usersAtLaunch[app.id] = nil
        for row in (questions.removeValue(forKey: app.name) ?? [:]).values {
            supervisor.store.removePermission(row.key)
        }
        // Forget the answers only if a scene was discarded, because such a scene never returns. An app that was removed
        // may return.
        if supervisor.scenes.session(of: app)?.isDiscarded ?? false { forgetAnswers(to: app.name) }
    }

    private func forgetAnswers(to name: String) {
        for row in (answers.removeValue(forKey: name) ?? [:]).values { supervisor.store.removePermission(row.key) }
    }

    /// Forgets the answers for an app that is not in the configuration. `completion` gets whether there were any
    /// answers, or the reason why the change cannot be stored.
    package func resetAbsent(_ name: String, _ completion: @escaping (Result<Bool, Refusal>) -> Void) {
        supervisor.persistence.whenLoaded { [weak self] in
            guard let self, let rows = answers[name], coordinator.id(of: name) == nil else {
                return completion(.success(false))
            }
            forgetAnswers(to: name)
            supervisor.store.sync { [weak self] problem in
                guard let problem else { return completion(.success(true)) }
                if let self, answers[name] == nil {
                    answers[name] = rows
                    for row in rows.values { supervisor.store.save(row) }
                }
                completion(.failure(Refusal("nothing is changed: it cannot be stored (\(problem))")))
            }
        }
    }

    /// Called before a launch. Closes the descriptors that the app stored before its permissions changed, and those
    /// that it may have sent to its own sockets. Through them, the app would keep access that it must no longer have.
    /// Closes those that it stored as another user too, who may still change what is behind them.
    func closeOutdatedStore(of app: AppRuntime) {
        let user = app.specification.user ?? ""
        let isAnother = usersAtLaunch.updateValue(user, forKey: app.id).map { $0 != user } ?? false
        let isOutdated = outdatedStores.remove(app.id) != nil
        if isOutdated, app.specification.sandbox.mode != nil { supervisor.wakes.sockets.closeOutdated(of: app) }
        guard isOutdated || isAnother, !app.store.entries.isEmpty else { return }
        for entry in app.store.entries { supervisor.notifySockets.letGo(of: entry, app) }
        app.store = FDStore()
        let why = isOutdated ? "its permissions have changed" : "it ran as another user before"
        note(app, .permission, text: "\(why): the descriptors that it stored are closed")
    }

    package func touched(_ apps: [AppRuntime]) {}

    // MARK: Requests

    /// The permissions of an app, in the order of their names.
    package func infos(of app: AppRuntime) -> [PermissionInfo] {
        app.specification.sandbox.states(app.permissionAnswers).map { declaration, state in
            let row = answers[app.name]?[declaration.name]
            var info = PermissionInfo(
                app: app.name,
                name: declaration.name,
                state: state.rawValue,
                purpose: declaration.purpose,
                purposes: declaration.purposes,
                ports: declaration.ports.map(Int64.init)
            )
            // An app that now asks for more has no valid answer, so do not report who answered earlier.
            if let row, row.isAllowed != nil, state != .asked { (info.by, info.at) = (row.by, row.at) }
            return info
        }
    }

    /// Stores a user's answer to permissions of an app. Once it is on disk, `completion` gets a sentence about the
    /// effect, or the reason why nothing was changed.
    package func answer(
        _ request: AnswerPermissionsRequest,
        of app: AppRuntime,
        by person: String,
        _ completion: @escaping (Result<String?, Refusal>) -> Void
    ) {
        supervisor.persistence.whenLoaded { [weak self, weak app] in
            guard let self, let app else { return }
            queue.append { [weak self, weak app] in
                guard let self, let app else { return completion(.success(nil)) }
                answerNow(request, app, person, completion)
            }
            answerNext()
        }
    }

    private func answerNext() {
        guard !isAnswering, !queue.isEmpty else { return }
        queue.removeFirst()()
        answerNext()
    }

    private func answerNow(
        _ request: AnswerPermissionsRequest,
        _ app: AppRuntime,
        _ person: String,
        _ completion: @escaping (Result<String?, Refusal>) -> Void
    ) {
        let declared = app.specification.sandbox.declarations
        for name in request.names where !declared.contains(where: { $0.name.utf8.elementsEqual(name.utf8) }) {
            return completion(.failure(undeclared(name, app)))
        }
        let chosen = declared.filter { one in
            request.names.isEmpty || request.names.contains { $0.utf8.elementsEqual(one.name.utf8) }
        }
        let before = answers[app.name] ?? [:]
        remember(request.answer, chosen, app, person)
        isAnswering = true
        supervisor.store.sync { [weak self, weak app] problem in
            guard let self else { return completion(.success(nil)) }
            isAnswering = false
            defer { answerNext() }
            guard let app, apps.contains(where: { $0 === app }) else { return completion(.success(nil)) }
            if let problem {
                takeBack(chosen, before, app)
                return completion(.failure(Refusal("nothing is changed: it cannot be stored (\(problem))")))
            }
            for one in chosen {
                let text = "\(request.answer.past) \(one.name)"
                note(app, .permission, text: "\(person) \(text)", level: .info)
            }
            if request.answer == .reset { forgetQuestions(chosen, app) }
            completion(.success(apply(app)))
        }
    }

    /// Restores the state before an answer that could not be stored. Also queues the restored state for the disk:
    /// otherwise the answer in the queue would be written as soon as the disk works again.
    private func takeBack(_ chosen: [PermissionDeclaration], _ before: [String: StoredPermission], _ app: AppRuntime) {
        for declaration in chosen {
            let key = StoredPermission.Key(app: app.name, name: declaration.name)
            answers[app.name, default: [:]][declaration.name] = before[declaration.name]
            if let row = before[declaration.name] {
                supervisor.store.save(row)
            } else {
                supervisor.store.removePermission(key)
            }
        }
    }

    func undeclared(_ name: String, _ app: AppRuntime) -> Refusal {
        let declared = app.specification.sandbox.declarations.map(\.name)
        let hint = Nearest.name(to: name, among: declared).map { "; did you mean \($0)?" } ?? ""
        return Refusal("\(app.name) asks for no permission \(name)\(hint)")
    }

    /// The reason why a request has changed nothing.
    package struct Refusal: Error, CustomStringConvertible {
        package let description: String
        init(_ description: String) { self.description = description }
    }

    private func remember(
        _ answer: PermissionVerdict,
        _ chosen: [PermissionDeclaration],
        _ app: AppRuntime,
        _ person: String
    ) {
        for declaration in chosen {
            if answer == .reset, answers[app.name]?[declaration.name] == nil { continue }
            let row = StoredPermission(
                app: app.name,
                name: declaration.name,
                isAllowed: answer == .reset ? nil : answer == .allow,
                scope: declaration.scope.map(String.init).joined(separator: " "),
                by: person,
                at: Clock.realtimeMicroseconds()
            )
            answers[app.name, default: [:]][declaration.name] = row
            supervisor.store.save(row)
        }
    }

    private func heed(_ app: AppRuntime) {
        app.permissionAnswers = (answers[app.name] ?? [:]).values.compactMap { row in
            row.isAllowed.map { isAllowed in
                PermissionAnswer(
                    name: row.key.name,
                    isAllowed: isAllowed,
                    scope: row.scope.split(separator: " ").compactMap { UInt16($0) }
                )
            }
        }
    }

    /// Applies the stored answers to the app. Returns a sentence about the effect; nil if there is none.
    private func apply(_ app: AppRuntime) -> String? {
        let before = app.grants
        heed(app)
        let now = app.grants
        if now.gifts != before.gifts { supervisor.wakes.configure() }
        if now != before { supervisor.transfers.matchFeeds(of: app) }
        supervisor.alerts.closeAnsweredQuestions()
        guard !now.isSame(besidesGifts: before) else {
            settle(app)
            return nil
        }
        return launchAgain(app)
    }

    /// Restarts the app if it runs, because its sandbox no longer matches the answers. Returns a sentence about the
    /// restart; nil if the app does not run or has no sandbox.
    @discardableResult private func launchAgain(_ app: AppRuntime) -> String? {
        defer { settle(app) }
        outdatedStores.insert(app.id)
        guard app.specification.sandbox.mode != nil, coordinator.machine(app.id).isAlive else { return nil }
        if evicts(app) { return "\(app.name) is evicted, and is launched again when it is needed" }
        do throws(DependencyError) {
            try supervisor.replace(app, .permissionChanged)
            return "\(app.name) is launched again"
        } catch {
            log.error("\(app.name) is not launched again for its permissions: \(error)")
            return "\(app.name) could not be launched again: \(error)"
        }
    }

    /// Evicts a suspended app, unless another app requires it or its configuration forbids eviction. Returns whether
    /// the app is evicted.
    private func evicts(_ app: AppRuntime) -> Bool {
        let machine = coordinator.machine(app.id)
        guard machine.state == .suspended, machine.transition == nil,
            coordinator.memoryProtection(app.id, lastResort: true) == nil
        else { return false }
        do throws(RequestError) {
            try request(.evict, of: app.id)
            return true
        } catch {
            return false
        }
    }

    /// Called when the app has ended, or will certainly end, and so no longer has its earlier permissions. Marks its
    /// answers as applied, and removes answers that were reset.
    private func settle(_ app: AppRuntime) {
        for (name, row) in answers[app.name] ?? [:] where row.isPending {
            guard row.isAllowed != nil else {
                answers[app.name]?[name] = nil
                supervisor.store.removePermission(row.key)
                continue
            }
            answers[app.name]?[name]?.isPending = false
            if let settled = answers[app.name]?[name] { supervisor.store.save(settled) }
        }
    }
}
