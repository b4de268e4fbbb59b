// SPDX-License-Identifier: Apache-2.0

/// A configuration that changes under a running app.
extension AppMachine {
    /// Takes new rules. They count from now on; a deadline that is armed stays as it is, and the next one of its kind
    /// is the new one. An armed watchdog takes its new interval at the next heartbeat, unless the app chose its own
    /// (WATCHDOG_USEC), and is off at once where there is none any more.
    mutating func take(_ new: AppRules) {
        if !isAlive || watchdogInterval == rules.watchdog { watchdogInterval = new.watchdog }
        if watchdogInterval == nil { watchdogDeadline = nil }
        rules = new
        if !new.hasScenes { scenes = nil }
    }

    /// Whether it is ending only to be launched again with its new definition: nobody else has to see to that.
    var isBeingReplaced: Bool {
        guard case .terminating(let terminating) = phase else { return false }
        return terminating.reason == .replaced && terminating.stoppedBy == nil && goal != .notRunning
    }

    /// The app left the configuration and is back: that it was stopped for it keeps no event from launching it.
    mutating func forgetEnding() { lastEnding = nil }
}
