// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle

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
        let actions = try coordinator.reconfigure(changes, replacing: reason, now: loop.now)
        writeAhead(actions)
        engine.performWritten(actions)
    }
}
