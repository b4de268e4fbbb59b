// SPDX-License-Identifier: Apache-2.0

extension AppMachine {
    /// Applies a request and returns the actions that follow.
    ///
    /// - Throws: ``RequestError`` when the request is not legal in the app's state; then nothing changes.
    public mutating func request(_ request: Request, now: Duration) throws(RequestError) -> [Action] {
        var actions: [Action] = []
        try requireOwner(for: request, now: now)
        switch request {
        case .start(let background):
            start(foreground: !background, reason: .user, into: &actions, now: now)
        case .foreground:
            start(foreground: true, reason: .user, into: &actions, now: now)
        case .stop(let reason):
            stop(reason, into: &actions, now: now)
        case .restart:
            restart(into: &actions, now: now)
        case .background:
            try requireGoing("background")
            setGoal(.background)
            walk(into: &actions, now: now)
        case .suspend:
            try requireGoing("suspend")
            if let refusal = refusalWhileHeld { throw refusal }
            setGoal(.suspended)
            walk(into: &actions, now: now)
        case .forceSuspend:
            try requireGoing("suspend")
            setGoal(.suspended)
            isForced = true
            forgetLocks()
            walk(into: &actions, now: now)
        case .hold(let reason, let until):
            try hold(reason, until: until, into: &actions, now: now)
        case .release:
            try releaseHolds(into: &actions, now: now)
        case .mode(let mode, let isTrue):
            setMode(mode, isTrue: isTrue, into: &actions, now: now)
        case .cover(let begin):
            isCovered = begin
            walk(into: &actions, now: now)
        case .resume:
            try resume(into: &actions, now: now)
        case .interrupt(let begin):
            try interrupt(begin: begin, into: &actions, now: now)
        case .forceQuit:
            forceQuit(into: &actions, now: now)
        case .evict:
            try evict(into: &actions, now: now)
        case .wake(let order):
            try wake(order, into: &actions, now: now)
        case .reset:
            failed = false
            restarts = 0
            unstable = Unstable()
            ledger = []
            forgetStop()
        case .own(let until, let renews):
            try own(until: until, renews: renews, now: now)
        case .runUnowned:
            runUnowned(now: now)
        case .disown:
            disown(into: &actions, now: now)
        case .standby:
            try standBy(into: &actions, now: now)
        case .scene(let id, let goal):
            try move(id, to: goal, into: &actions, now: now)
        }
        settleTasks(now: now)
        return actions
    }

    /// Launches the app for another reason than a user's request, such as the start of the supervisor or a dependent.
    /// An app that this machine does not own is not launched.
    public mutating func launch(foreground: Bool, reason: LaunchReason, now: Duration) -> [Action] {
        guard mayRun(at: now) else { return [] }
        var actions: [Action] = []
        start(foreground: foreground, reason: reason, into: &actions, now: now)
        return actions
    }

    /// Launches the app. The coordinator calls this after ``Action/requestLaunch``, once the required apps are up.
    public mutating func permitLaunch(now: Duration) -> [Action] {
        var actions: [Action] = []
        endOverdueOwnership(into: &actions, now: now)
        guard case .notRunning(.waiting) = phase else { return actions }
        incarnation += 1
        hasDelegate = false
        isPrepared = false
        isUnsaved = false
        isToldOnlyAtLaunch = false
        phase = .launching(Launching())
        edgeDeadline = Deadline(.launch, rules.launchDeadline, now: now)
        runningSince = now
        ranFor = .zero
        return actions + [.launch(launchOrder)]
    }

    private func requireGoing(_ verb: String) throws(RequestError) {
        switch phase {
        case .notRunning(.resting):
            throw RequestError("is not running: start it first")
        case .terminating(let terminating) where terminating.relaunch == nil:
            throw RequestError("is ending and will not run: start it first, then \(verb) it")
        case .notRunning, .launching, .running, .terminating:
            break
        }
    }

    mutating func start(foreground: Bool, reason: LaunchReason, into actions: inout [Action], now: Duration) {
        // An app that exits on suspend runs only in the foreground: in the background it would be terminated at once.
        let isWanted = foreground || rules.exitsOnSuspend
        let foreground = isWanted && (!rules.hasScenes || bringScenesBack())
        switch phase {
        case .notRunning:
            // A user who starts an app that crashes has probably mended it, so its restarts are counted anew.
            if failed || reason == .user { ledger = [] }
            if failed { unstable.launchesCutOff = 0 }
            failed = false
            if reason != .restart { unstable.attempt = 0 }
            requestLaunch(Relaunch(foreground: foreground, reason: reason), into: &actions)
            setGoal(foreground ? .active : .background)
        case .launching, .running:
            // The app runs already, so a start into the background changes nothing.
            if foreground { setGoal(.active) }
            // The start is for the foreground, but the app has no scene to show. Still, the start cancels a suspension.
            if isWanted, !foreground, goal == .suspended { setGoal(.background) }
            walk(into: &actions, now: now)
        case .terminating(var terminating):
            if reason == .user { ledger = [] }
            terminating.relaunch = Relaunch(foreground: foreground, reason: reason)
            phase = .terminating(terminating)
            setGoal(foreground ? .active : .background)
        }
    }

    mutating func requestLaunch(_ relaunch: Relaunch, into actions: inout [Action]) {
        launchInForeground = relaunch.foreground || rules.exitsOnSuspend
        launchReason = relaunch.reason
        if relaunch.reason != .event { wokenFor = nil }
        edgeDeadline = nil
        isDone = false
        phase = .notRunning(.waiting)
        actions.append(.requestLaunch)
    }

    private mutating func stop(_ reason: TerminationReason, into actions: inout [Action], now: Duration) {
        guard reason.wasAskedFor else {
            endForCause(reason, into: &actions, now: now)
            return
        }
        setGoal(.notRunning)
        interruptions = 0
        letScenesGo()
        switch phase {
        case .notRunning(let rest):
            edgeDeadline = nil
            scenes = nil
            phase = .notRunning(.resting)
            if reason == .stopped || reason == .shutdown && rest != .resting { lastEnding = reason }
            // A failed app that a user stops is stopped, and has all its restarts again when it is launched.
            if reason == .stopped, failed { forgiveRestarts() }
            endForcedRun()
        case .launching, .running:
            terminate(reason, politely: true, into: &actions, now: now)
        case .terminating(var terminating):
            // Nobody has stopped an app that is restarted: only the end of torpord keeps it from running again.
            if reason == .stopped || reason == .shutdown && terminating.relaunch != nil {
                terminating.stoppedBy = reason
            }
            terminating.relaunch = nil
            if terminating.reason == nil || terminating.stage == .announced { terminating.reason = reason }
            phase = .terminating(terminating)
        }
    }

    /// Terminates the app because of its own behavior or because its configuration changed. The goal stays the same, so
    /// the app may run again: at once if its configuration changed, otherwise if its restart policy says so.
    private mutating func endForCause(_ reason: TerminationReason, into actions: inout [Action], now: Duration) {
        switch phase {
        case .launching, .running:
            terminate(reason, politely: true, into: &actions, now: now)
        case .terminating(var terminating):
            if terminating.reason == nil { terminating.reason = reason }
            phase = .terminating(terminating)
        case .notRunning:
            break
        }
    }

    private mutating func restart(into actions: inout [Action], now: Duration) {
        let foreground = goal == .active || goal == .inactive || goal == .notRunning
        switch phase {
        case .notRunning:
            start(foreground: foreground, reason: .user, into: &actions, now: now)
        case .launching, .running:
            let before = goal == .notRunning ? Goal.active : goal
            interruptions = 0
            terminate(.stopped, politely: true, into: &actions, now: now)
            if case .terminating(var terminating) = phase {
                terminating.relaunch = Relaunch(foreground: foreground, reason: .user)
                phase = .terminating(terminating)
            }
            setGoal(before)
        case .terminating(var terminating):
            terminating.relaunch = Relaunch(foreground: foreground, reason: .user)
            phase = .terminating(terminating)
            setGoal(goal == .notRunning ? .active : goal)
        }
    }

    private mutating func resume(into actions: inout [Action], now: Duration) throws(RequestError) {
        try requireGoing("resume")
        if state != .suspended, transition != .suspending, goal != .suspended {
            if state == .background { return }
            throw RequestError(
                "is \(state.rawValue): only a suspended app is resumed; ‘background’ takes this one to the background"
            )
        }
        setGoal(.background)
        walk(into: &actions, now: now)
    }

    private mutating func interrupt(begin: Bool, into actions: inout [Action], now: Duration) throws(RequestError) {
        try requireGoing("interrupt")
        if begin {
            guard goal == .active else {
                throw RequestError(
                    "is not in the foreground: only an active app is interrupted; bring it there with ‘foreground’ first"
                )
            }
            interruptions += 1
        } else {
            guard interruptions > 0 else { throw RequestError("is not interrupted: there is nothing to end") }
            interruptions -= 1
        }
        goalGeneration += 1
        walk(into: &actions, now: now)
    }

    private mutating func forceQuit(into actions: inout [Action], now: Duration) {
        setGoal(.notRunning)
        interruptions = 0
        letScenesGo()
        switch phase {
        case .notRunning:
            edgeDeadline = nil
            scenes = nil
            phase = .notRunning(.resting)
            lastEnding = .forceQuit
            endForcedRun()
        case .launching, .running:
            kill(.forceQuit, into: &actions, now: now)
        case .terminating(var terminating):
            terminating.reason = .forceQuit
            terminating.stoppedBy = nil
            terminating.relaunch = nil
            terminating.stage = .killed
            phase = .terminating(terminating)
            if terminating.hasProcess, !terminating.isCleaningUp { sendKill(into: &actions, now: now) }
        }
    }

    /// Terminates the app to free memory: with SIGKILL at once if it is suspended and may be evicted without notice,
    /// otherwise with a short grace.
    private mutating func evict(into actions: inout [Action], now: Duration) throws(RequestError) {
        guard case .running(let running) = phase else {
            throw RequestError(isAlive ? "is being launched, or is ending" : "is not running")
        }
        guard running.edge == nil else { throw RequestError("is on its way to another state") }
        if rules.eviction == .never { throw RequestError("is protected from eviction (evict = \"never\")") }
        if running.state == .suspended, isEvictedWithoutNotice {
            kill(.evicted, into: &actions, now: now)
        } else {
            terminate(.evicted, politely: running.state != .suspended, isHurried: true, into: &actions, now: now)
        }
        letScenesGo()
        setGoal(.notRunning)
    }
}
