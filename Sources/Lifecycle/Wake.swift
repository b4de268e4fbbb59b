// SPDX-License-Identifier: Apache-2.0

/// How an event wakes an app that is suspended or not running.
public struct Wake: Sendable, Hashable {
    /// Whether the app is woken into the foreground. If false, the app is woken into the background; if it was
    /// suspended before, it is suspended again when its background time for the event is over.
    public var foreground: Bool
    /// Background time for the event; `nil` means the app's `event_time`.
    public var time: Duration?
    /// Whether the event also launches an app that a user force-quit, because the app's `wake_after_force_quit`
    /// contains the event's background mode.
    public var overridesForceQuit: Bool
    /// Whether the event first clears the app's restarts and failed mark, so that it also launches an app that was
    /// restarted too often. True for timers, because the app's work is due again at each time of a timer.
    public var startsAfresh: Bool

    /// By default, the event wakes the app into the background for the app's `event_time`.
    public init(
        foreground: Bool = false,
        time: Duration? = nil,
        overridesForceQuit: Bool = false,
        startsAfresh: Bool = false
    ) {
        self.foreground = foreground
        self.time = time
        self.overridesForceQuit = overridesForceQuit
        self.startsAfresh = startsAfresh
    }
}

extension AppMachine {
    /// Launches or wakes the app for an event.
    mutating func wake(_ order: Wake, into actions: inout [Action], now: Duration) throws(RequestError) {
        var wake = order
        // An app without a scene to show cannot come to the foreground.
        if wake.foreground, !canComeToForeground { wake.foreground = false }
        switch phase {
        case .notRunning(.resting):
            let isForgiven = !failed || wake.startsAfresh
            let isAllowed =
                mayRun && (lastEnding?.allowsLaunchByEvent ?? true)
                || (wake.overridesForceQuit && lastEnding == .forceQuit)
            guard isForgiven, isAllowed else { throw RequestError("is not launched by events until a user starts it") }
            try requireBackground(for: wake)
            if wake.startsAfresh { forgiveRestarts() }
            start(foreground: wake.foreground, reason: .event, into: &actions, now: now)
            wokenFor = wake.time
        case .terminating(var terminating):
            if terminating.relaunch == nil {
                let reason = terminating.stoppedBy ?? terminating.reason
                let isAllowed =
                    (reason?.allowsLaunchByEvent ?? true) || (wake.overridesForceQuit && reason == .forceQuit)
                guard isAllowed, !failed else {
                    throw RequestError("is ending and is not launched by events until a user starts it")
                }
                try requireBackground(for: wake)
                if wake.startsAfresh { forgiveRestarts() }
                terminating.relaunch = Relaunch(foreground: wake.foreground, reason: .event)
                phase = .terminating(terminating)
                setGoal(wake.foreground ? .active : .background)
                wokenFor = wake.time
            } else if wake.foreground {
                terminating.relaunch?.foreground = true
                phase = .terminating(terminating)
                setGoal(.active)
            }
        case .running(let running):
            if wake.foreground {
                start(foreground: true, reason: .event, into: &actions, now: now)
                return
            }
            if goal == .suspended {
                setGoal(.background)
                sleepsAgain = true
                walk(into: &actions, now: now)
            }
            if running.state == .background { isUnsaved = true }
            if grant != nil || running.state == .suspended || isSavingAgain {
                let time = wake.time ?? rules.eventTime
                // If the app has more background time left than the event grants, keep the longer time.
                if running.state != .suspended, let left = grant?.at, let time, left > now + time { return }
                grant = Deadline(.backgroundTime, time, now: now)
            }
        case .notRunning, .launching:
            // The app is already being launched. Make sure that it is not suspended before it gets the event.
            if wake.foreground {
                start(foreground: true, reason: .event, into: &actions, now: now)
            } else if goal == .suspended {
                setGoal(.background)
                sleepsAgain = true
                wokenFor = wake.time
            }
        }
    }

    /// Clears the failed mark and the count of restarts, so that the app may again be restarted up to the limit, as
    /// after a start by a user.
    mutating func forgiveRestarts() {
        failed = false
        unstable = Unstable()
        ledger = []
    }

    private func requireBackground(for wake: Wake) throws(RequestError) {
        if rules.exitsOnSuspend, !wake.foreground {
            throw RequestError("is launched only into the foreground (exits_on_suspend): the event waits")
        }
    }

    /// Called for an app that was woken for its dependents. If `isOver`, the dependents no longer need the app, which
    /// is suspended again after its `event_time`. Otherwise they need the app again. Returns whether anything changed.
    mutating func sleepAgain(_ isOver: Bool, now: Duration) -> Bool {
        guard sleepsAgain != isOver else { return false }
        guard isOver else {
            sleepsAgain = false
            return true
        }
        guard goal == .background, case .running(let running) = phase, running.state == .background, running.edge == nil
        else { return false }
        sleepsAgain = true
        grantIsOver = false
        grant = Deadline(.backgroundTime, rules.eventTime, now: now)
        return true
    }

    /// Handles the end of the background time of an app that nothing else keeps awake. If the app was woken only for an
    /// event or a dependent, it is suspended again. Otherwise torpord reports that the time is used up.
    mutating func backgroundTimeIsOver(into actions: inout [Action], now: Duration) {
        workedSinceLaunch()
        guard sleepsAgain, goal == .background, case .running(let running) = phase, running.state == .background
        else { return actions.append(.report(.backgroundTimeUsed)) }
        actions.append(.report(.sleepsAgain))
        setGoal(.suspended)
        walk(into: &actions, now: now)
    }
}
