// SPDX-License-Identifier: Apache-2.0

/// Applies new rules to a running app.
extension AppMachine {
    /// Applies new rules. Armed deadlines stay as they are; deadlines that are armed later follow the new rules. A new
    /// watchdog interval applies from the next heartbeat on; if the new rules have no interval, the watchdog is
    /// disarmed at once. An app that set its own interval (WATCHDOG_USEC) keeps that interval.
    mutating func take(_ new: AppRules) {
        if !isAlive || watchdogInterval == rules.watchdog { watchdogInterval = new.watchdog }
        if watchdogInterval == nil { watchdogDeadline = nil }
        // The present ownership remains valid only if both the old and the new rules need an owner.
        if rules.owner == .none || new.owner == .none {
            ownership = .none
            ownedUntil = nil
        }
        rules = new
        if !new.hasScenes { scenes = nil }
        if !isAlive, !mayRun { cancelLaunch() }
    }

    /// Whether the app is terminating only to be launched again with its new definition or permissions, so that no
    /// other launch of it is needed.
    var isBeingReplaced: Bool {
        guard case .terminating(let terminating) = phase else { return false }
        return (terminating.reason?.isReplacement ?? false) && terminating.stoppedBy == nil && goal != .notRunning
    }

    /// Whether the app is terminating and will be launched again at once, because of a restart or a replacement.
    var endsToComeBack: Bool {
        guard case .terminating(let terminating) = phase else { return false }
        return terminating.relaunch != nil || isBeingReplaced
    }

    /// Forgets how the app ended. Call this when the app is in the configuration again: the app was stopped when it
    /// was removed, and that stop must not prevent events from launching it.
    mutating func forgetEnding() { lastEnding = nil }
}
