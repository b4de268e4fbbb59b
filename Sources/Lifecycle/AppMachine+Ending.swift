// SPDX-License-Identifier: Apache-2.0

/// Ends an incarnation (one run of an app, from launch to exit), and decides whether the app restarts.
extension AppMachine {
    /// The longest grace (time from willTerminate to SIGKILL) of an app that is terminated to free memory.
    public static let shortGrace = Duration.seconds(2)

    /// How many launches in a row a restart may cut off before the app's restarts are delayed and counted.
    static let launchesCutOffFreely: UInt32 = 2

    /// Starts to terminate the app: sends willTerminate if `politely` is true, then SIGTERM, and SIGKILL when the grace
    /// is over. A stopped app gets no willTerminate. `isHurried` limits the grace to ``shortGrace``.
    mutating func terminate(
        _ reason: TerminationReason,
        politely: Bool,
        isHurried: Bool = false,
        into actions: inout [Action],
        now: Duration
    ) {
        let (state, interrupted, hasProcess) = leave()
        let wasStopped = state == .suspended || interrupted == .suspending
        var terminating = Terminating(
            reason: reason,
            state: state,
            interrupted: interrupted,
            stage: .signaled,
            hasProcess: hasProcess
        )
        terminating.isHurried = isHurried
        defer { phase = .terminating(terminating) }
        guard hasProcess else {
            terminating.stage = .signaled
            return
        }
        let grace = grace(of: terminating)
        edgeDeadline = Deadline(.grace, grace, now: now)
        if wasStopped {
            // SIGTERM is queued before SIGCONT, so that the app runs its SIGTERM handler before anything else.
            endSuspension(now: now)
            actions.append(.signalStop)
            actions.append(.continueProcesses)
            if state == .suspended {
                terminating.state = .background
                actions.append(.entered(.background))
            }
            return
        }
        if politely, interrupted != .launching {
            actions.append(.tell(.willTerminate))
            if isAwaited(.willTerminate) {
                terminating.stage = .asked
                edgeDeadline = Deadline(.willTerminate, grace.map { $0 / 2 }, now: now)
                return
            }
        }
        actions.append(.signalStop)
    }

    /// Sends SIGKILL at once, without willTerminate and SIGTERM.
    mutating func kill(_ reason: TerminationReason, into actions: inout [Action], now: Duration) {
        let (state, interrupted, hasProcess) = leave()
        phase = .terminating(
            Terminating(
                reason: reason,
                state: state,
                interrupted: interrupted,
                stage: .killed,
                hasProcess: hasProcess
            )
        )
        if hasProcess { sendKill(into: &actions, now: now) }
    }

    mutating func missedHeartbeat(into actions: inout [Action], now: Duration) {
        let (state, interrupted, _) = leave()
        phase = .terminating(
            Terminating(
                reason: .watchdog,
                state: state,
                interrupted: interrupted,
                stage: .signaled,
                hasProcess: true
            )
        )
        edgeDeadline = Deadline(.grace, rules.grace, now: now)
        actions.append(.signalWatchdog)
        if interrupted == .suspending { actions.append(.continueProcesses) }
    }

    /// Handles STOPPING=1 from the app, which then exits on its own.
    mutating func announceStopping(into actions: inout [Action], now: Duration) {
        switch phase {
        case .running(let running) where running.state != .suspended:
            let (state, interrupted, _) = leave()
            phase = .terminating(
                Terminating(reason: nil, state: state, interrupted: interrupted, stage: .announced, hasProcess: true)
            )
            edgeDeadline = Deadline(.grace, rules.grace, now: now)
            if interrupted == .suspending { actions.append(.continueProcesses) }
        case .notRunning, .launching, .running, .terminating:
            break
        }
    }

    /// Disarms all deadlines before the app is terminated. Returns the state and transition that the app is leaving,
    /// and whether the app has a process.
    private mutating func leave() -> (AppState, Transition?, Bool) {
        let was = (state, transition)
        var hasProcess = true
        if case .launching(let launching) = phase { hasProcess = launching.hasProcess }
        edgeDeadline = nil
        watchdogDeadline = nil
        grant = nil
        grantIsOver = false
        forgetLocks()
        leakTasks()
        forgetMessage()
        leaveScenes()
        return (was.0, was.1, hasProcess)
    }

    mutating func sendKill(into actions: inout [Action], now: Duration) {
        actions.append(.killProcesses)
        edgeDeadline = Deadline(.kill, .seconds(1), now: now)
    }

    private func grace(of terminating: Terminating) -> Duration? {
        terminating.isHurried ? min(rules.grace ?? Self.shortGrace, Self.shortGrace) : rules.grace
    }

    /// Sends SIGTERM, because the app has answered willTerminate or half the grace (time until SIGKILL) has passed.
    mutating func sendStop(_ terminating: Terminating, into actions: inout [Action], now: Duration) {
        var terminating = terminating
        terminating.stage = .signaled
        phase = .terminating(terminating)
        if let grace = grace(of: terminating) {
            // The grace (time until SIGKILL) began when willTerminate was sent. Even if the app answered late, at
            // least half the grace remains after SIGTERM.
            let began = edgeDeadline?.started ?? now
            edgeDeadline = Deadline(.grace, max(grace / 2, began + grace - now), now: now)
        } else {
            edgeDeadline = nil
        }
        actions.append(.signalStop)
    }

    /// Sends SIGKILL to the app, because the grace is over or because processes survived an earlier SIGKILL.
    mutating func escalate(_ terminating: Terminating, into actions: inout [Action], now: Duration) {
        var terminating = terminating
        if terminating.stage != .killed { actions.append(.report(.killed)) }
        if terminating.stage == .announced { terminating.reason = terminating.reason ?? .unresponsive }
        terminating.stage = .killed
        phase = .terminating(terminating)
        sendKill(into: &actions, now: now)
    }

    // MARK: The end

    mutating func mainExited(_ cause: ExitCause, into actions: inout [Action], now: Duration) {
        let wasSuspended = state == .suspended
        let wasStopped = wasSuspended || transition == .suspending
        switch phase {
        case .notRunning:
            return
        case .launching, .running:
            var reason = wasSuspended && cause.isKill ? .evicted : reasonOf(cause)
            // An app that ends before it is ready has failed, whatever its exit status is.
            if isAwaited, reason == .exitSuccess { reason = .exitFailure }
            let (state, interrupted, _) = leave()
            phase = .terminating(
                Terminating(
                    reason: reason,
                    state: state,
                    interrupted: interrupted,
                    cause: cause,
                    stage: .cleaning,
                    hasProcess: true
                )
            )
            edgeDeadline = Deadline(.grace, rules.grace, now: now)
        case .terminating(var terminating):
            guard terminating.cause == nil else { return }
            terminating.cause = cause
            terminating.reason = terminating.reason ?? reasonOf(cause)
            phase = .terminating(terminating)
            if edgeDeadline == nil { edgeDeadline = Deadline(.grace, rules.grace, now: now) }
        }
        actions.append(.endRemains)
        // Stopped processes cannot act on SIGTERM until they are continued.
        if wasStopped { actions.append(.continueProcesses) }
    }

    mutating func finish(into actions: inout [Action], now: Duration) {
        endOverdueOwnership(into: &actions, now: now)
        guard case .terminating(let terminating) = phase else { return }
        var reason = terminating.reason ?? .unknown
        if runningSince != nil { pauseRunningTime(now: now) }
        suspendedSince = nil
        edgeDeadline = nil
        watchdogDeadline = nil
        watchdogInterval = rules.watchdog
        grant = nil
        tracedSince = nil
        interruptions = 0
        hasDelegate = false
        isPrepared = false
        let leaked = leakedTasks
        endTasks(now: now)
        let isCutOff = countCutOff(terminating)
        if isCutOff { reason = .launchFailed }
        lastEnding = terminating.relaunch == nil ? terminating.stoppedBy ?? reason : reason
        isDone = rules.isOneshot && reason == .exitSuccess
        phase = .notRunning(.resting)
        let next =
            isCutOff ? countedRestart(now: now) : whatFollows(reason, relaunch: terminating.relaunch, now: now)
        endScenes(next)
        actions.append(.entered(.notRunning))
        actions.append(
            .ended(
                Ending(
                    incarnation: incarnation,
                    reason: reason,
                    cause: terminating.cause,
                    state: terminating.state,
                    transition: terminating.interrupted,
                    tasks: leaked,
                    isCutOff: isCutOff,
                    next: next
                )
            )
        )
        switch next {
        case .relaunch:
            if let relaunch = terminating.relaunch { requestLaunch(relaunch, into: &actions) }
        case .restart(let delay) where delay <= .zero:
            restart(into: &actions)
        case .restart(let delay):
            phase = .notRunning(.delayed)
            edgeDeadline = Deadline(.restart, delay, now: now)
        case .gaveUp:
            failed = true
            goal = .notRunning
        case .rest:
            goal = .notRunning
        }
        endForcedRun()
    }

    private mutating func whatFollows(
        _ reason: TerminationReason,
        relaunch: Relaunch?,
        now: Duration
    ) -> Ending.Next {
        // A launch that failed has run nothing, so it proves no stability, even if `stable_after` is zero.
        if reason != .launchFailed, ranFor >= rules.backoff.stableAfter { unstable.attempt = 0 }
        if let relaunch {
            // A restart that a user requested is no failure, so the app's next restart delay is the shortest again.
            if relaunch.reason == .user { unstable.attempt = 0 }
            return .relaunch
        }
        if !mayRun { return .rest }
        if goal == .notRunning || reason.wasAskedFor { return .rest }
        // The coordinator launches the app again when what it requires is ready.
        if reason == .dependencyFailed { return .rest }
        if reason.leadsToLaunch { return .restart(after: .zero) }
        if rules.isOneshot, reason == .exitSuccess { return .rest }
        switch rules.restart {
        case .never: return .rest
        case .onFailure: if !reason.isFailure { return .rest }
        case .always: break
        }
        return countedRestart(now: now)
    }

    /// Counts a launch that a restart, of the app or of one that it requires, has ended before the app was ready.
    /// Returns whether it was one too many in a row, so that the next launch comes with a delay. Otherwise an app whose
    /// `before_start` restarts it would be launched without a pause forever.
    private mutating func countCutOff(_ terminating: Terminating) -> Bool {
        // A oneshot works while it is launching, so a long run of it was no launch that was cut off.
        let hasWorked = rules.isOneshot && ranFor >= rules.backoff.stableAfter
        guard terminating.interrupted == .launching, terminating.relaunch?.reason == .user, !hasWorked else {
            unstable.launchesCutOff = 0
            return false
        }
        unstable.launchesCutOff = min(unstable.launchesCutOff + 1, Self.launchesCutOffFreely + 1)
        return unstable.launchesCutOff > Self.launchesCutOffFreely && mayRun && goal != .notRunning
    }

    /// A restart after the next delay of `restart_backoff`, unless there were too many.
    private mutating func countedRestart(now: Duration) -> Ending.Next {
        ledger.removeAll { now - $0 >= rules.backoff.window }
        guard ledger.count < rules.backoff.limit else { return .gaveUp }
        ledger.append(now)
        let delay = rules.backoff.delay(attempt: Int(unstable.attempt))
        unstable.attempt &+= 1
        restarts += 1
        return .restart(after: delay + delay * (rules.backoff.jitter * jitter.next()))
    }

    /// Requests the launch of an app that restarts. Called when the restart delay is over, or at once without a delay.
    mutating func restart(into actions: inout [Action]) {
        let foreground = goal == .active || goal == .inactive
        requestLaunch(Relaunch(foreground: foreground, reason: .restart), into: &actions)
    }

    /// Whether the app is being launched and must still report that it is ready. A oneshot need not report it: it is
    /// ready when it has exited with 0.
    private var isAwaited: Bool {
        guard case .launching(let launching) = phase else { return false }
        return !launching.isReady && rules.readiness != .exec && !rules.isOneshot
    }

    private func reasonOf(_ cause: ExitCause) -> TerminationReason {
        switch cause {
        case .exited(let code):
            code == 0 || rules.successExitCodes.contains(code) ? .exitSuccess : .exitFailure
        case .signaled(let signal, let coreDumped):
            rules.successSignals.contains(signal) ? .exitSuccess : coreDumped ? .coreDump : .signal
        case .outOfMemory: .oomKill
        case .memoryLimit: .memoryLimit
        case .unknown: .unknown
        }
    }
}

extension AppMachine {
    /// How the last incarnation (run of the app) has ended, as far as a record shows it, for a report that an earlier
    /// supervisor has not made; nil if the app is alive or has never ended. The cause and the former state are unknown.
    public func recordedEnding(now: Duration) -> Ending? {
        guard case .notRunning(let rest) = phase, let reason = lastEnding else { return nil }
        let next: Ending.Next =
            switch rest {
            case .resting: failed ? .gaveUp : .rest
            case .delayed: .restart(after: max(.zero, (edgeDeadline?.at ?? now) - now))
            case .waiting: launchReason == .restart ? .restart(after: .zero) : .relaunch
            }
        return Ending(
            incarnation: incarnation,
            reason: reason,
            cause: nil,
            state: .notRunning,
            transition: nil,
            next: next
        )
    }
}

extension ExitCause {
    /// Whether SIGKILL has ended the process, which the kernel sends too if memory is short.
    public var isKill: Bool {
        switch self {
        case .signaled(let signal, _): signal == 9
        case .outOfMemory, .memoryLimit: true
        case .exited, .unknown: false
        }
    }
}
