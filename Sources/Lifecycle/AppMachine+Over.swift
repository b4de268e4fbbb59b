// SPDX-License-Identifier: Apache-2.0

/// Whether an app has ended for good. If the app that `[supervisor] main` names ends for good, torpord terminates all
/// other apps.
extension AppMachine {
    /// Whether the app counts as ended for good: it has no process, no launch is planned, and the app does not come
    /// back by itself when it is needed.
    ///
    /// An app that was evicted or exited on suspend (`exits_on_suspend`) comes back when it is needed, so it counts
    /// only if it has the failed mark. Every other ending counts: stopped, force quit, given up, done, or never
    /// launched because a dependency failed.
    var isOver: Bool {
        guard case .notRunning(.resting) = phase, goal == .notRunning, let lastEnding else { return false }
        switch lastEnding {
        case .evicted, .exitsOnSuspend: return failed
        case .exitSuccess, .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog,
            .taskExpired, .lockWhileSuspending, .oomKill, .unknown, .dependencyFailed, .replaced, .permissionChanged,
            .protectedDataOpen,
            .memoryLimit,
            .unresponsive, .wakeStorm, .stopped, .shutdown, .forceQuit,
            .launchFailed, .gpuInBackground, .noPurposeString:
            return true
        }
    }
}

extension Coordinator {
    /// Whether the app has ended for good and no pending request brings it back.
    public func isOver(_ app: AppID) -> Bool {
        nodes[app].machine.isOver && nodes[app].pendingStop == nil && nodes[app].pendingGoal == nil
    }
}
