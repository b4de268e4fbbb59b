// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import EventLoop
package import Lifecycle

extension Supervisor {
    /// Manages the permissions of apps.
    package var permissions: AppPermissions { launcher.permissions }

    /// The data folders that are locked while the session is locked.
    package var protection: ProtectedData { dataFolders.protection }

    /// Terminates an app that would be launched differently now, and launches it again into the last state that was
    /// requested for it.
    func replace(_ app: AppRuntime, _ reason: TerminationReason = .replaced) throws(DependencyError) {
        let changes = apps.filter { !coordinator.isLeaving($0.id) }.map { other in
            var change = AppChange(AppDefinition(other.next ?? other.specification))
            change.liveRules = other.specification.rules
            change.isReplaced = other === app
            return change
        }
        let actions = try reconfigure(changes, replacing: reason)
        writeAhead(actions)
        engine.performWritten(actions)
    }

    /// Gives the lifecycle core the new definitions of all apps. An app that is restarted only because it requires a
    /// replaced one keeps its state, as the replaced one does. The caller records and performs the actions.
    package func reconfigure(
        _ changes: [AppChange],
        replacing reason: TerminationReason = .replaced
    ) throws(DependencyError) -> [AppAction] {
        let ending = Set(apps.filter { coordinator.isToEnd($0.id) }.map(\.id))
        let actions = try coordinator.reconfigure(changes, replacing: reason, now: loop.now)
        for app in apps where !ending.contains(app.id) && coordinator.endsToComeBack(app.id) {
            app.keepsStateWhenStopped = true
        }
        return actions
    }
}
