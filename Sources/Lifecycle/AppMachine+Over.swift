// SPDX-License-Identifier: Apache-2.0

/// The end of an app that everything else ends with: `[supervisor] main`.
extension AppMachine {
    /// Whether it has ended for good: it has no process, no launch is planned, and it does not come back on demand.
    ///
    /// What was evicted, or goes when it is sent away (`exits_on_suspend`), was only put away. Everything else that
    /// leads to rest counts, also what a person did: stopped, force quit, given up, done, or never come up for want of
    /// what it requires.
    var isOver: Bool {
        guard case .notRunning(.resting) = phase, goal == .notRunning, let lastEnding else { return false }
        switch lastEnding {
        case .evicted, .exitsOnSuspend: return failed
        case .exitSuccess, .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog,
            .taskExpired, .lockWhileSuspending, .oomKill, .unknown, .dependencyFailed, .replaced, .memoryLimit,
            .unresponsive, .wakeStorm, .stopped, .shutdown, .forceQuit,
            .launchFailed:
            return true
        }
    }
}

extension Coordinator {
    /// Whether the app has ended for good, and nothing that was asked for brings it back.
    public func isOver(_ app: AppID) -> Bool {
        nodes[app].machine.isOver && nodes[app].pendingStop == nil && nodes[app].pendingGoal == nil
    }
}
