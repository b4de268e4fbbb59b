// SPDX-License-Identifier: Apache-2.0

extension AppMachine {
    /// Applies an event and returns the actions that follow. An event that comes too late changes nothing.
    public mutating func handle(_ event: AppEvent, now: Duration) -> [Action] {
        var actions: [Action] = []
        switch event {
        case .launched: launched(into: &actions, now: now)
        case .launchFailed: launchFailed(into: &actions, now: now)
        case .launchHeld:
            if isBeforeProcess { edgeDeadline = nil }
        case .launchContinues:
            if isBeforeProcess { edgeDeadline = Deadline(.launch, rules.launchDeadline, now: now) }
        case .launchRefused:
            if isBeforeProcess { goal = .notRunning }
            launchFailed(into: &actions, now: now)
        case .ready: ready(into: &actions, now: now)
        case .answered(let message): answered(message, into: &actions, now: now)
        case .mainExited(let cause): mainExited(cause, into: &actions, now: now)
        case .cleaningUp:
            if case .terminating(var terminating) = phase, terminating.cause != nil {
                terminating.isCleaningUp = true
                phase = .terminating(terminating)
                edgeDeadline = nil
            }
        case .allGone: allGone(into: &actions, now: now)
        case .stopConfirmed:
            if transition == .suspending { becomeSuspended(into: &actions, now: now) }
        case .foundRunning: foundRunning(into: &actions, now: now)
        case .extendTimeout(let time): extendTimeout(to: time, now: now)
        case .heartbeat:
            if watchdogDeadline != nil { armWatchdog(now: now) }
        case .watchdogTriggered:
            if case .running(let running) = phase, running.state != .suspended {
                missedHeartbeat(into: &actions, now: now)
            }
        case .watchdogInterval(let interval):
            watchdogInterval = interval
            if case .running(let running) = phase, running.state != .suspended,
                running.edge?.transition != .suspending
            {
                armWatchdog(now: now)
            }
        case .stopping: announceStopping(into: &actions, now: now)
        case .traced(let attached): setTraced(attached, now: now)
        case .deadline: deadline(into: &actions, now: now)
        case .dependencyFailed:
            if isWaitingForPermission { actions += endBeforeLaunch(.dependencyFailed) }
        case .delegate(let attached): setDelegate(attached, into: &actions, now: now)
        case .failedToPrepare: isPrepared = false
        case .delivered(let message): delivered(message, now: now)
        case .lockHeld: lockHeld(into: &actions, now: now)
        case .awaitsVerdict(let isAwaited): awaitVerdict(isAwaited, into: &actions, now: now)
        case .messageSent: messageSent(now: now)
        case .messagePending(let time): extendMessage(to: time, now: now)
        case .messageAnswered: endMessage(into: &actions, now: now)
        case .showsNew: takeSnapshot(into: &actions, now: now)
        case .declinedSnapshot: declineSnapshot(into: &actions, now: now)
        case .snapshotOver: endSnapshot(into: &actions, now: now)
        case .worked: saveBeforeStop(into: &actions, now: now)
        case .settles(let time): settle(for: time, into: &actions, now: now)
        case .scene(let id, let event): handle(event, of: id, into: &actions, now: now)
        case .scenesRestored: scenesChanged(into: &actions, now: now)
        }
        settleTasks(now: now)
        return actions
    }

    private var isBeforeProcess: Bool {
        if case .launching(let launching) = phase { !launching.hasProcess } else { false }
    }

    private mutating func launched(into actions: inout [Action], now: Duration) {
        switch phase {
        case .launching(var launching):
            guard !launching.hasProcess else { return }
            launching.hasProcess = true
            phase = .launching(launching)
            actions.append(.entered(state))
            if rules.readiness == .delegate, !rules.isOneshot {
                launching.awaiting = .willFinishLaunching
                phase = .launching(launching)
                actions.append(.tell(.willFinishLaunching))
                return
            }
            let ready = launching.isReady || (rules.readiness == .exec && !rules.isOneshot)
            if ready { becomeReady(into: &actions, now: now) }
        case .terminating(var terminating):
            // The app was terminated during its launch, so also terminate the process that this launch has created
            // after all.
            guard !terminating.hasProcess else { return }
            terminating.hasProcess = true
            phase = .terminating(terminating)
            if terminating.stage == .killed {
                sendKill(into: &actions, now: now)
            } else {
                edgeDeadline = Deadline(.grace, rules.grace, now: now)
                actions.append(.signalStop)
            }
        case .notRunning, .running:
            break
        }
    }

    private mutating func launchFailed(into actions: inout [Action], now: Duration) {
        switch phase {
        case .launching(let launching) where !launching.hasProcess:
            phase = .terminating(
                Terminating(
                    reason: .launchFailed,
                    state: .notRunning,
                    interrupted: .launching,
                    stage: .cleaning,
                    hasProcess: false
                )
            )
            finish(into: &actions, now: now)
        case .terminating(let terminating) where !terminating.hasProcess:
            finish(into: &actions, now: now)
        case .notRunning, .launching, .running, .terminating:
            break
        }
    }

    private mutating func ready(into actions: inout [Action], now: Duration) {
        guard case .launching(var launching) = phase, !rules.isOneshot else { return }
        if launching.hasProcess {
            becomeReady(into: &actions, now: now)
        } else {
            launching.isReady = true
            phase = .launching(launching)
        }
    }

    private mutating func answered(_ message: Message, into actions: inout [Action], now: Duration) {
        switch phase {
        case .running(let running):
            guard running.edge?.awaiting == message else { return }
            // In an app with scenes, torpord sent this message to the scenes, so the scenes' answers count, not the
            // app's.
            if rules.hasScenes, Self.isForScenes(message) { return }
            if message == .didEnterBackground { isPrepared = true }
            advance(into: &actions, now: now)
            walk(into: &actions, now: now)
        case .terminating(let terminating):
            guard terminating.stage == .asked, message == .willTerminate else { return }
            sendStop(terminating, into: &actions, now: now)
        case .launching(var launching):
            guard launching.awaiting == message else { return }
            launching.awaiting = Self.launchMessage(after: message)
            phase = .launching(launching)
            if let next = launching.awaiting {
                actions.append(.tell(next))
            } else {
                becomeReady(into: &actions, now: now)
            }
        case .notRunning:
            break
        }
    }

    private mutating func delivered(_ message: Message, now: Duration) {
        guard awaitedMessage == message, let deadline = edgeDeadline else { return }
        switch deadline.kind {
        case .transition, .background, .willTerminate:
            edgeDeadline = Deadline(deadline.kind, deadline.at - deadline.started, now: now)
        case .launch, .suspend, .grace, .kill, .restart, .watchdog, .backgroundTime, .task, .message: break
        }
    }

    /// The launch message that follows `message`; nil after the last one.
    private static func launchMessage(after message: Message) -> Message? {
        switch message {
        case .willFinishLaunching: .restoreState
        case .restoreState: .didFinishLaunching
        case .didFinishLaunching, .openURL, .didBecomeActive, .willResignActive, .didEnterBackground,
            .willEnterForeground, .resumed, .willTerminate, .didReceiveMemoryWarning, .taskExpiring, .settingsDidChange,
            .identityDidChange, .significantTimeChange, .performFetch, .didReceiveEvent, .didReceiveNotification,
            .didReceiveRemoteNotification, .protectedDataWillBecomeUnavailable, .protectedDataDidBecomeAvailable,
            .handleEventsForBackgroundTransfer, .transferDidFinish, .transferNeedsLogin, .didReceiveLocalNotification,
            .sceneWillConnect,
            .sceneDidBecomeActive, .sceneWillResignActive, .sceneDidEnterBackground, .sceneWillEnterForeground,
            .sceneDidDisconnect, .didDiscardScenes, .refresh, .willContinueActivity, .continueActivity,
            .didFailToContinueActivity,
            .activityWasContinued:
            nil
        }
    }

    /// Called when a delegate (the library in the app that answers messages) has connected or disconnected. After a
    /// disconnect, messages that only the delegate could answer count as answered, but a launch waits for another
    /// delegate.
    private mutating func setDelegate(_ attached: Bool, into actions: inout [Action], now: Duration) {
        guard isAlive, hasDelegate != attached else { return }
        hasDelegate = attached
        guard !attached else { return }
        endMessage(into: &actions, now: now)
        releaseScenes(into: &actions, now: now)
        switch phase {
        case .running(let running):
            guard let message = running.edge?.awaiting, !isAwaited(message) else { return }
            // The delegate disconnected before it could decline the snapshot. Take no snapshot, because it might show
            // private content.
            if message == .didEnterBackground, !isSavingAgain { declinesSnapshot = true }
            advance(into: &actions, now: now)
            walk(into: &actions, now: now)
        case .terminating(let terminating):
            guard terminating.stage == .asked, !isAwaited(.willTerminate) else { return }
            sendStop(terminating, into: &actions, now: now)
        case .notRunning, .launching:
            break
        }
    }

    private mutating func allGone(into actions: inout [Action], now: Duration) {
        switch phase {
        case .terminating(let terminating):
            // Wait until torpor-keeper, the parent of all processes, has also reported how the app's main process
            // ended.
            guard terminating.cause != nil else { return }
            finish(into: &actions, now: now)
        case .notRunning, .launching, .running:
            break
        }
    }

    private mutating func foundRunning(into actions: inout [Action], now: Duration) {
        guard case .running(var running) = phase, running.state == .suspended, running.edge == nil else { return }
        running.stoppedAgain += 1
        // If another process continues a suspended app, torpord stops the app again, up to three times, and then leaves
        // it running. But if another machine may own the app, the app must not run here, so torpord terminates it.
        if running.stoppedAgain > 3, !mayRun {
            terminate(.unresponsive, politely: false, into: &actions, now: now)
        } else if running.stoppedAgain <= 3 {
            actions.append(.report(.stoppedAgain(running.stoppedAgain)))
            actions.append(.stopProcesses)
            phase = .running(running)
        } else {
            actions.append(.report(.keepsRunning))
            running.state = .background
            phase = .running(running)
            setGoal(.background)
            isUnsaved = true
            endSuspension(now: now)
            armWatchdog(now: now)
            grant = Deadline(.backgroundTime, rules.backgroundTime, now: now)
            actions.append(.continueProcesses)
            actions.append(.entered(.background))
        }
    }

    private mutating func extendTimeout(to time: Duration, now: Duration) {
        guard var deadline = edgeDeadline else { return }
        switch deadline.kind {
        case .launch, .transition, .background, .willTerminate, .grace: break
        case .suspend, .kill, .restart, .watchdog, .backgroundTime, .task, .message: return
        }
        guard let limit = rules.extensionLimit ?? baseAllowance(of: deadline.kind).map({ $0 * 10 }) else { return }
        deadline.extend(to: time, limit: limit, now: now)
        edgeDeadline = deadline
    }

    /// The configured time for a deadline that the app itself has to meet. Nil if that time has no limit, or if the app
    /// does not have to meet deadlines of this kind.
    func baseAllowance(of kind: DeadlineKind) -> Duration? {
        switch kind {
        case .launch: rules.launchDeadline
        case .transition: rules.transitionDeadline
        case .background: rules.backgroundDeadline
        case .willTerminate, .grace: rules.grace
        case .message: rules.messageDeadline
        case .suspend, .kill, .restart, .watchdog, .backgroundTime, .task: nil
        }
    }

    private mutating func setTraced(_ attached: Bool, now: Duration) {
        if attached {
            // A debugger that attached after the incarnation ended is ignored.
            if tracedSince == nil, isAlive { tracedSince = now }
        } else if let since = tracedSince {
            tracedSince = nil
            edgeDeadline?.pause(from: since, to: now)
            watchdogDeadline?.pause(from: since, to: now)
            grant?.pause(from: since, to: now)
            pauseScenes(from: since, to: now)
            pauseMessage(from: since, to: now)
            if let clock = backgroundTime?.value.clock {
                changeBackgroundTime { $0.clock = clock + (now - max(since, clock)) }
            }
            if let due = backgroundTime?.value.snapshotDue {
                changeBackgroundTime { $0.snapshotDue = due + (now - since) }
            }
        }
    }

    /// Cancels a launch that is waiting and has not begun. The app then counts as ended for `reason`.
    mutating func endBeforeLaunch(_ reason: TerminationReason) -> [Action] {
        phase = .notRunning(.resting)
        lastEnding = reason
        goal = .notRunning
        scenes = nil
        endForcedRun()
        let ending = Ending(
            incarnation: incarnation,
            reason: reason,
            cause: nil,
            state: .notRunning,
            transition: .launching,
            next: .rest
        )
        return [.ended(ending)]
    }

    // MARK: Deadlines

    private mutating func deadline(into actions: inout [Action], now: Duration) {
        guard nextDeadline.map({ $0 <= now }) ?? false else { return }
        endOverdueOwnership(into: &actions, now: now)
        if tracedSince != nil, !isResting { return }
        // Judge the message that the app works on before any message that is queued behind it.
        missMessage(into: &actions, now: now)
        if let deadline = edgeDeadline, deadline.at <= now {
            edgeDeadline = nil
            missed(deadline, into: &actions, now: now)
        }
        if let deadline = watchdogDeadline, deadline.at <= now {
            watchdogDeadline = nil
            missedHeartbeat(into: &actions, now: now)
        }
        if let deadline = grant, deadline.at <= now {
            grant = nil
            if isHeld || (awaitsVerdict || isBusyWithMessage) && !settlesIn {
                grantIsOver = true
                workedSinceLaunch()
            } else if settlesIn {
                walk(into: &actions, now: now)
            } else {
                backgroundTimeIsOver(into: &actions, now: now)
            }
        }
        if backgroundTime != nil { backgroundDeadline(into: &actions, now: now) }
        if scenes != nil { sceneDeadlines(into: &actions, now: now) }
    }

    private mutating func missed(_ deadline: Deadline, into actions: inout [Action], now: Duration) {
        switch (deadline.kind, phase) {
        case (.restart, .notRunning(.delayed)):
            restart(into: &actions)
        case (.launch, .launching):
            terminate(.launchDeadline, politely: false, into: &actions, now: now)
        case (.transition, .running(let running)):
            actions.append(.report(.missed(.transition, running.edge?.transition)))
            // An app that still worked on an earlier message when it was to save again did not get that message.
            let wasTold = !(isSavingAgain && worksOnEarlierMessage)
            if rules.onMissedTransition == .end, wasTold {
                terminate(.unresponsive, politely: false, into: &actions, now: now)
            } else {
                advance(into: &actions, now: now)
                walk(into: &actions, now: now)
            }
        case (.background, .running):
            terminate(.backgroundDeadline, politely: false, into: &actions, now: now)
        case (.suspend, .running(var running)):
            actions.append(.report(.suspendFailed))
            guard mayRun else { return terminate(.unresponsive, politely: false, into: &actions, now: now) }
            running.edge = nil
            phase = .running(running)
            actions.append(.continueProcesses)
            armWatchdog(now: now)
            grant = Deadline(.backgroundTime, rules.backgroundTime, now: now)
            if goal == .suspended { setGoal(.background) }
        case (.willTerminate, .terminating(let terminating)):
            edgeDeadline = deadline
            sendStop(terminating, into: &actions, now: now)
        case (.grace, .terminating(let terminating)), (.kill, .terminating(let terminating)):
            escalate(terminating, into: &actions, now: now)
        case (.launch, _), (.transition, _), (.background, _), (.suspend, _), (.willTerminate, _), (.grace, _),
            (.kill, _), (.restart, _), (.watchdog, _), (.backgroundTime, _), (.task, _), (.message, _):
            break  // No deadline outlives the phase that armed it.
        }
    }
}
