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

/// The answers of persons to apps that ask for permissions.
///
/// An answer is on disk before it counts. An app that runs with other permissions then is ended and launched again,
/// since no sandbox can be opened from outside.
package final class AppPermissions: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    private var answers: [AppID: [String: StoredPermission]] = [:]
    /// Whether the stored answers are loaded.
    private(set) var isLoaded = false
    private var afterLoad: [() -> Void] = []
    /// Apps whose stored descriptors were opened under other permissions.
    private var outdatedStores: Set<AppID> = []

    package init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    package func load(_ contents: StoreContents) {
        guard !isLoaded else { return }
        isLoaded = true
        for row in contents.permissions.values {
            guard let id = coordinator.id(of: row.key.app) else { continue }
            answers[id, default: [:]][row.key.name] = row
        }
        for app in apps where answers[app.id] != nil {
            let before = app.grants
            heed(app)
            if app.grants.gifts != before.gifts { supervisor.wakes.configure() }
            // An app that was taken over runs with what it was launched with. An earlier torpord may have been killed
            // before it had ended an app for a new answer.
            guard answers[app.id]?.values.contains(where: \.isPending) ?? false else { continue }
            loop.later { [weak self, weak app] in
                guard let self, let app, self.answers[app.id] != nil else { return }
                self.launchAgain(app)
            }
        }
        for body in afterLoad { body() }
        afterLoad = []
    }

    /// Calls `body` when the stored answers are loaded: at once, except in the first moments of a supervisor.
    package func whenLoaded(_ body: @escaping () -> Void) {
        if isLoaded { body() } else { afterLoad.append(body) }
    }

    /// Saves all answers again, because the store's file was lost.
    func keepAll() {
        for rows in answers.values { for row in rows.values { supervisor.store.save(row) } }
    }

    package func forget(_ app: AppRuntime) {
        answers[app.id] = nil
        outdatedStores.remove(app.id)
    }

    /// Closes the descriptors that an app stored before its permissions changed: they would outlive what they were
    /// opened by. Called before a launch.
    func closeOutdatedStore(of app: AppRuntime) {
        guard outdatedStores.remove(app.id) != nil, !app.store.entries.isEmpty else { return }
        for entry in app.store.entries { supervisor.notifySockets.letGo(of: entry, app) }
        app.store = FDStore()
        note(app, .permission, text: "its permissions have changed: the descriptors that it stored are closed")
    }

    package func touched(_ apps: [AppRuntime]) {}

    // MARK: Requests

    /// The permissions of an app, in the order of their names.
    package func infos(of app: AppRuntime) -> [PermissionInfo] {
        app.specification.sandbox.states(app.permissionAnswers).map { declaration, state in
            let row = answers[app.id]?[declaration.name]
            var info = PermissionInfo(
                app: app.name,
                name: declaration.name,
                state: state.rawValue,
                purpose: declaration.purpose,
                purposes: declaration.purposes,
                ports: declaration.ports.map(Int64.init)
            )
            // An answer to less is none to what is asked now.
            if let row, row.isAllowed != nil, state != .asked { (info.by, info.at) = (row.by, row.at) }
            return info
        }
    }

    /// Answers an app. `completion` gets what follows, or why nothing was changed, when it is on disk.
    package func answer(
        _ request: AnswerPermissionsRequest,
        of app: AppRuntime,
        by person: String,
        _ completion: @escaping (Result<String?, Refusal>) -> Void
    ) {
        whenLoaded { [weak self, weak app] in
            guard let self, let app else { return }
            let declared = app.specification.sandbox.declarations
            for name in request.names where !declared.contains(where: { $0.name.utf8.elementsEqual(name.utf8) }) {
                let hint = Nearest.name(to: name, among: declared.map(\.name)).map { "; did you mean \($0)?" } ?? ""
                return completion(.failure(Refusal("\(app.name) asks for no permission \(name)\(hint)")))
            }
            let chosen = declared.filter { one in
                request.names.isEmpty || request.names.contains { $0.utf8.elementsEqual(one.name.utf8) }
            }
            let before = answers[app.id]
            remember(request.answer, chosen, app, person)
            supervisor.store.sync { [weak self, weak app] problem in
                guard let self, let app, self.apps.contains(where: { $0 === app }) else {
                    return completion(.success(nil))
                }
                if let problem {
                    self.answers[app.id] = before
                    return completion(.failure(Refusal("nothing is changed: it cannot be stored (\(problem))")))
                }
                for one in chosen {
                    let text = "\(request.answer.past) \(one.name)"
                    self.note(app, .permission, text: "\(person) \(text)", level: .info)
                }
                completion(.success(self.apply(app)))
            }
        }
    }

    /// Why a request changes nothing.
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
            if answer == .reset, answers[app.id]?[declaration.name] == nil { continue }
            let row = StoredPermission(
                app: app.name,
                name: declaration.name,
                isAllowed: answer == .reset ? nil : answer == .allow,
                scope: declaration.scope.map(String.init).joined(separator: " "),
                by: person,
                at: Clock.realtimeMicroseconds()
            )
            answers[app.id, default: [:]][declaration.name] = row
            supervisor.store.save(row)
        }
    }

    private func heed(_ app: AppRuntime) {
        app.permissionAnswers = (answers[app.id] ?? [:]).values.compactMap { row in
            row.isAllowed.map { isAllowed in
                PermissionAnswer(
                    name: row.key.name,
                    isAllowed: isAllowed,
                    scope: row.scope.split(separator: " ").compactMap { UInt16($0) }
                )
            }
        }
    }

    /// Lets the answers count; returns what follows from that, as a sentence.
    private func apply(_ app: AppRuntime) -> String? {
        let before = app.grants
        heed(app)
        let now = app.grants
        if now.gifts != before.gifts { supervisor.wakes.configure() }
        if now != before { supervisor.transfers.matchFeeds(of: app) }
        guard !now.isSame(besidesGifts: before) else {
            settle(app)
            return nil
        }
        return launchAgain(app)
    }

    /// Ends an app that runs in another sandbox than it would be launched in, and launches it again.
    @discardableResult private func launchAgain(_ app: AppRuntime) -> String? {
        defer { settle(app) }
        outdatedStores.insert(app.id)
        guard app.specification.sandbox.mode != nil, coordinator.machine(app.id).isAlive else { return nil }
        do throws(DependencyError) {
            try supervisor.replace(app, .permissionChanged)
            return "\(app.name) is launched again"
        } catch {
            log.error("\(app.name) is not launched again for its permissions: \(error)")
            return "\(app.name) could not be launched again: \(error)"
        }
    }

    /// No app runs any longer with what applied before, or its end is decided: answers that were taken back can go.
    private func settle(_ app: AppRuntime) {
        for (name, row) in answers[app.id] ?? [:] where row.isPending {
            guard row.isAllowed != nil else {
                answers[app.id]?[name] = nil
                supervisor.store.removePermission(row.key)
                continue
            }
            answers[app.id]?[name]?.isPending = false
            if let settled = answers[app.id]?[name] { supervisor.store.save(settled) }
        }
    }
}
