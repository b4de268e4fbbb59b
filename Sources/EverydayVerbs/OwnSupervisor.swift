// SPDX-License-Identifier: Apache-2.0

import Linux
package import TorporAPI

/// Hints and refusals for a user whose own supervisor does not run, so that `torpor` uses the machine's supervisor.
package enum OwnSupervisor {
    private static let paths = DefaultPaths(environment: ThisProcess.variables, userID: Users.effectiveUID)
    private static let start = "‘systemctl --user start torpord’ starts it"
    private static let isSaid = Monitor(false)

    /// A text that says how the user gets a supervisor of their own.
    package static var hint: String {
        let file = paths.configuration
        guard !File.exists(file), let folder = File.parent(of: file) else {
            return "your own supervisor is not running: \(start)"
        }
        let path = ShellWord.quoted(folder)
        return "for a supervisor of your own, ‘mkdir -p \(path) && torpor init \(path)’ writes \(file), then \(start)"
    }

    /// Why `torpor` does not ask the machine's supervisor for a change: the user has a configuration, or the state of
    /// an earlier run, and so probably means their own supervisor. Nil if the user has neither.
    package static var refusal: String? {
        let way: String
        if File.exists(paths.configuration) {
            way = start
        } else if File.exists(paths.state) {
            way = "‘torpord --config FILE’ starts it"
        } else {
            return nil
        }
        return "your own supervisor is not running, and nothing was changed: \(way); if you mean the machine's, add "
            + "--socket \(ControlSocket.machines)"
    }

    /// Whether this is the first call in this process, so that a notice is written only once.
    package static func isFirst() -> Bool {
        isSaid.withLock { isSaid in
            defer { isSaid = true }
            return !isSaid
        }
    }
}

extension ManagerRequest {
    /// Whether the request changes anything in apps or in the supervisor.
    package var isChange: Bool {
        switch self {
        case .verb(let request): request.verb != .wait
        case .apply(let request): !request.diff
        case .continueActivity(let request): !request.asksOnly
        case .signal, .post, .open, .openScene, .replayUnhandled, .dropUnhandled, .cancelTransfers, .scheduleAlert,
            .cancelAlerts, .answerAlert, .setBadge, .purgeData, .answerPermissions, .setSettings, .reloadPolicy,
            .lockData, .unlockData, .importState, .upgrade:
            true
        case .list, .listOf, .status, .scenes, .handlers, .mailbox, .unhandled, .transfers, .alerts, .data,
            .permissions, .settings, .logs, .events, .reports, .snapshot, .icon, .desktopApps, .doctor, .policies,
            .evictionOrder, .memory, .timers, .recordPolicies, .graph, .metrics, .describe, .protection, .exportState,
            .owners,
            .activities:
            false
        }
    }
}
