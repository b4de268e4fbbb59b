// SPDX-License-Identifier: Apache-2.0

/// New rules for a running app.
extension AppMachine {
    /// Applies new rules. A deadline that is armed stays as it is; the next one of its kind follows the new rules. An
    /// armed watchdog takes the new interval at the next heartbeat, unless the app chose its own (WATCHDOG_USEC). If
    /// the new rules have no watchdog, it is disarmed at once.
    mutating func take(_ new: AppRules) {
        if !isAlive || watchdogInterval == rules.watchdog { watchdogInterval = new.watchdog }
        if watchdogInterval == nil { watchdogDeadline = nil }
        rules = new
        if !new.hasScenes { scenes = nil }
    }

    /// Whether it is terminating only to be launched again with its new definition. Then no other launch is needed.
    var isBeingReplaced: Bool {
        guard case .terminating(let terminating) = phase else { return false }
        return terminating.reason == .replaced && terminating.stoppedBy == nil && goal != .notRunning
    }

    /// The app was removed from the configuration and is back: the stop at its removal must not block launches by
    /// events.
    mutating func forgetEnding() { lastEnding = nil }
}
