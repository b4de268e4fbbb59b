// SPDX-License-Identifier: Apache-2.0

/// The edges of a running app. An edge is a transition between two states, given as a list of steps in order. This
/// extension decides which edge comes next and carries out its steps.
extension AppMachine {
    private static let activating: [Step] = [.tell(.didBecomeActive, .transition), .enter(.active)]
    private static let deactivating: [Step] = [.tell(.willResignActive, .transition), .enter(.inactive)]
    private static let activeToBackground: [Step] = [
        .tell(.willResignActive, .transition), .enter(.inactive),
        .tell(.didEnterBackground, .background), .enter(.background),
    ]
    private static let inactiveToBackground: [Step] = [.tell(.didEnterBackground, .background), .enter(.background)]
    private static let launchedIntoBackground: [Step] = [.tell(.didEnterBackground, .background)]
    /// Sends didEnterBackground again, before the app is suspended, if the app has run in the background since it last
    /// got that message. An app that misses this deadline is not terminated: it has already saved its state once, and
    /// may be busy with another message.
    static let savingAgain: [Step] = [.tell(.didEnterBackground, .transition)]
    private static let backgroundToActive: [Step] = [
        .tell(.willEnterForeground, .transition), .enter(.inactive),
        .tell(.didBecomeActive, .transition), .enter(.active),
    ]
    private static let backgroundToInactive: [Step] = [.tell(.willEnterForeground, .transition), .enter(.inactive)]
    private static let resuming: [Step] = [.enter(.background), .tell(.resumed, .transition)]
    private static let leaving: [Step] = [.tell(.willResignActive, .transition), .enter(.inactive)]

    // Only records of older versions contain these transitions: those versions sent openURL as a step of a transition.
    private static let activatingWithURL: [Step] = [
        .tell(.openURL, .transition), .tell(.didBecomeActive, .transition), .enter(.active),
    ]
    private static let backgroundToActiveWithURL: [Step] = [
        .tell(.willEnterForeground, .transition), .enter(.inactive), .tell(.openURL, .transition),
        .tell(.didBecomeActive, .transition), .enter(.active),
    ]

    /// All edges (transitions between two states), each as a list of steps. Records store an edge as its index in this
    /// list, so new edges must be appended.
    static let edges: [[Step]] = [
        [], activating, deactivating, activeToBackground, inactiveToBackground, launchedIntoBackground,
        backgroundToActive, backgroundToInactive, resuming, leaving, activatingWithURL, backgroundToActiveWithURL,
        savingAgain,
    ]

    /// Starts one edge (state transition) after the other until the app has reached its goal, an edge waits for an
    /// answer, or something keeps the app in the background.
    mutating func walk(into actions: inout [Action], now: Duration) {
        guard rules.hasScenes else { return walkEdges(into: &actions, now: now) }
        // An app with scenes is in the foreground only if one of its scenes is.
        if goal == .active, !hasSceneInForeground { setGoal(.background) }
        // First let the app enter the foreground, and only then connect its scenes, because the app must get
        // willEnterForeground before them. Afterwards, an app whose scenes have answered all messages may be suspended.
        walkEdges(into: &actions, now: now)
        moveScenes(into: &actions, now: now)
        walkEdges(into: &actions, now: now)
    }

    private mutating func walkEdges(into actions: inout [Action], now: Duration) {
        while case .running(let running) = phase {
            if let edge = running.edge {
                // Every transition must end first, except suspending. The app gets no message about suspending, so that
                // transition can be cancelled if the app has another goal or must stay awake.
                guard edge.transition == .suspending, effectiveGoal != .suspended || isKeptAwake else { return }
                abandonSuspending(into: &actions, now: now)
                continue
            }
            switch (running.state, effectiveGoal) {
            case (.active, .active), (.inactive, .inactive), (.background, .background), (.suspended, .suspended),
                (.active, .notRunning), (.inactive, .notRunning), (.background, .notRunning),
                (.suspended, .notRunning):
                return
            case (.inactive, .active):
                begin(.activating, Self.activating, into: &actions, now: now)
            case (.active, .inactive):
                begin(.deactivating, Self.deactivating, into: &actions, now: now)
            case (.active, .background), (.active, .suspended):
                if rules.exitsOnSuspend {
                    begin(.enteringBackground, Self.leaving, into: &actions, now: now)
                } else {
                    begin(.enteringBackground, Self.activeToBackground, into: &actions, now: now)
                }
            case (.inactive, .background), (.inactive, .suspended):
                if rules.exitsOnSuspend {
                    setGoal(.notRunning)
                    terminate(.exitsOnSuspend, politely: true, into: &actions, now: now)
                } else {
                    begin(.enteringBackground, Self.inactiveToBackground, into: &actions, now: now)
                }
            case (.background, .active):
                begin(.enteringForeground, Self.backgroundToActive, into: &actions, now: now)
            case (.background, .inactive):
                begin(.enteringForeground, Self.backgroundToInactive, into: &actions, now: now)
            case (.background, .suspended):
                // Wait while something keeps the app in the background: a task, hold, mode or lock, a snapshot, a
                // scene's message, or (`settlesIn`) the background time after the launch.
                if isKeptAwake || mayRun && waitsForLocks || awaitsSnapshot || hasBusyScenes
                    || settlesIn && grant != nil
                {
                    return
                }
                if isUnsaved || hasUnsavedScenes {
                    saveAgain(into: &actions, now: now)
                    // Scenes get their messages one at a time. Each answer leads to another call of this function.
                    if rules.hasScenes { moveScenes(into: &actions, now: now) }
                    if hasBusyScenes { return }
                    continue
                }
                beginSuspending(into: &actions, now: now)
            case (.suspended, .active), (.suspended, .inactive), (.suspended, .background):
                beginResuming(into: &actions, now: now)
            case (.notRunning, _):
                return
            }
        }
    }

    private mutating func begin(
        _ transition: Transition,
        _ steps: [Step],
        into actions: inout [Action],
        now: Duration
    ) {
        guard case .running(var running) = phase else { return }
        running.edge = Edge(transition: transition, steps: steps)
        phase = .running(running)
        if transition == .enteringForeground {
            grant = nil
            grantIsOver = false
            isPrepared = false
            rememberUnsavedScenes()
            isUnsaved = false
            isToldOnlyAtLaunch = false
            dropSnapshot()
        }
        advance(into: &actions, now: now)
    }

    /// Sends didEnterBackground again to the app, or sceneDidEnterBackground to its scenes, before the app is
    /// suspended, so that it saves its work since the last such message. Without that, the work is lost if the app is
    /// evicted.
    private mutating func saveAgain(into actions: inout [Action], now: Duration) {
        if rules.hasScenes { letScenesSaveAgain() }
        isUnsaved = false
        isToldOnlyAtLaunch = false
        if rules.hasScenes { return }
        isPrepared = false
        begin(.enteringBackground, Self.savingAgain, into: &actions, now: now)
    }

    /// Whether the app has got didEnterBackground again, before its suspension, and has not answered yet.
    public var isSavingAgain: Bool {
        guard case .running(let running) = phase, let edge = running.edge else { return false }
        return edge.steps == Self.savingAgain
    }

    func isAwaited(_ message: Message) -> Bool { hasDelegate || rules.answeredMessages.contains(message) }

    /// Whether tasks, holds or modes keep the app in the background although its goal is `suspended`. They do not if
    /// the suspension is forced, or if another machine may own the app.
    var isKeptAwake: Bool { isHeld && !isForced && mayRun }

    /// Carries out the steps of the current transition until a step has to wait for the app's answer.
    mutating func advance(into actions: inout [Action], now: Duration) {
        guard case .running(var running) = phase, var edge = running.edge else { return }
        edgeDeadline = nil
        edge.awaiting = nil
        while edge.index < edge.steps.count {
            let step = edge.steps[edge.index]
            edge.index += 1
            switch step {
            case .enter(let state):
                running.state = state
                if state == .background { beginStay() }
                actions.append(.entered(state))
            case .tell(let message, let kind):
                // Keep `declinesSnapshot` when the app only saves again: it shows nothing new, and may have declined a
                // snapshot since it entered the background.
                if message == .didEnterBackground, edge.steps != Self.savingAgain { declinesSnapshot = false }
                if rules.hasScenes, Self.isForScenes(message) {
                    edge.awaiting = message
                    running.edge = edge
                    phase = .running(running)
                    if waitsForScenes(message, into: &actions, now: now) { return }
                    if message == .didEnterBackground { isPrepared = areScenesPrepared }
                    edge.awaiting = nil
                    continue
                }
                actions.append(.tell(message))
                guard isAwaited(message) else { continue }
                edge.awaiting = message
                running.edge = edge
                phase = .running(running)
                let allowance = kind == .background ? rules.backgroundDeadline : rules.transitionDeadline
                edgeDeadline = Deadline(kind, allowance, now: latestStart(of: message, now: now))
                return
            }
        }
        running.edge = nil
        phase = .running(running)
        // After saving again the app is suspended next, so it gets no further background time.
        if edge.steps == Self.savingAgain { return }
        if running.state == .background, edge.transition == .enteringBackground || edge.transition == .resuming {
            // An app that was launched for an event gets the background time that belongs to the event.
            let forEvent = launchReason == .event && edge.steps == Self.launchedIntoBackground && !settlesIn
            var time = forEvent ? wokenFor ?? rules.eventTime : rules.backgroundTime
            if settlesIn { time = time ?? AppRuleValues.usualBackgroundTime }
            if grant == nil {
                grantIsOver = false
                grant = Deadline(.backgroundTime, time, now: now)
                if time == nil { workedSinceLaunch() }
            }
            if edge.transition == .enteringBackground { takeSnapshot(into: &actions, now: now) }
        }
    }

    /// Moves an app that has become ready from its launch to its first state, and then towards its goal.
    mutating func becomeReady(into actions: inout [Action], now: Duration) {
        edgeDeadline = nil
        armWatchdog(now: now)
        settlesIn = effectiveGoal == .suspended && (rules.readiness == .exec || rules.readiness == .probe)
        if launchInForeground {
            phase = .running(Running(state: .inactive))
        } else {
            phase = .running(Running(state: .background))
            beginStay()
            // The launch ends with didEnterBackground. The event for which the app was launched reaches it afterwards,
            // so the app will have to save again.
            isUnsaved = launchReason == .event
            isToldOnlyAtLaunch = true
            begin(.enteringBackground, Self.launchedIntoBackground, into: &actions, now: now)
        }
        walk(into: &actions, now: now)
    }

    // MARK: Suspending and resuming

    private mutating func beginSuspending(into actions: inout [Action], now: Duration) {
        guard case .running(var running) = phase else { return }
        running.edge = Edge(transition: .suspending, steps: [])
        phase = .running(running)
        grant = nil
        grantIsOver = false
        settlesIn = false
        // From here on some processes of the app may be stopped, so it cannot send heartbeats.
        watchdogDeadline = nil
        edgeDeadline = Deadline(.suspend, rules.suspendDeadline, now: now)
        actions.append(.stopProcesses)
    }

    mutating func abandonSuspending(into actions: inout [Action], now: Duration) {
        guard case .running(var running) = phase else { return }
        running.edge = nil
        phase = .running(running)
        edgeDeadline = nil
        armWatchdog(now: now)
        grant = Deadline(.backgroundTime, rules.backgroundTime, now: now)
        actions.append(.continueProcesses)
    }

    /// Called when the app is about to be stopped, and has worked in the background since it last got
    /// didEnterBackground. Sends the message again first.
    mutating func saveBeforeStop(into actions: inout [Action], now: Duration) {
        guard transition == .suspending else { return }
        abandonSuspending(into: &actions, now: now)
        grant = nil
        isUnsaved = true
        walk(into: &actions, now: now)
    }

    /// Called when the app is about to be stopped, and could not be woken yet, because it does not listen. Keeps the
    /// app in the background for `time`, after which the stop is tried again.
    mutating func settle(for time: Duration, into actions: inout [Action], now: Duration) {
        guard transition == .suspending, !isForced else { return }
        abandonSuspending(into: &actions, now: now)
        grant = Deadline(.backgroundTime, time, now: now)
        settlesIn = true
    }

    mutating func becomeSuspended(into actions: inout [Action], now: Duration) {
        guard case .running(var running) = phase else { return }
        edgeDeadline = nil
        watchdogDeadline = nil
        grant = nil
        if running.state != .suspended {
            running.stoppedAgain = 0
            suspendedSince = now
            // Reset the time for which file locks delayed this suspension, so that they may delay the next one for the
            // full `task_time`.
            forgetLocks()
            pauseRunningTime(now: now)
            actions.append(.entered(.suspended))
        }
        running.state = .suspended
        running.edge = nil
        phase = .running(running)
        if awaitsVerdict { changeBackgroundTime { $0.awaitsVerdict = false } }
        walk(into: &actions, now: now)
    }

    /// Called when the background time is over. If the app got didEnterBackground only as the last step of its launch,
    /// marks the app as unsaved, because it has worked since then.
    mutating func workedSinceLaunch() {
        guard isToldOnlyAtLaunch, !settlesIn else { return }
        isToldOnlyAtLaunch = false
        isUnsaved = true
    }

    mutating func beginResuming(into actions: inout [Action], now: Duration) {
        isUnsaved = true
        endSuspension(now: now)
        actions.append(.continueProcesses)
        armWatchdog(now: now)
        begin(.resuming, Self.resuming, into: &actions, now: now)
    }

    /// Records that the app's suspension is over and that the app runs again.
    mutating func endSuspension(now: Duration) {
        if let since = suspendedSince {
            pauseMessage(from: since, to: now)
            lastGap = now - since
            suspendedSince = nil
        }
        if runningSince == nil { runningSince = now }
    }

    mutating func pauseRunningTime(now: Duration) {
        if let since = runningSince { ranFor += now - since }
        runningSince = nil
    }

    mutating func armWatchdog(now: Duration) {
        watchdogDeadline = Deadline(.watchdog, watchdogInterval, now: now)
    }
}
