// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle

extension Supervisor {
    /// The answers to apps that ask for permissions.
    package var permissions: AppPermissions { launcher.permissions }

    /// Ends an app whose launch would be another one now, and launches it again to its goal.
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
