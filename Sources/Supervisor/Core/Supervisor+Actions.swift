// SPDX-License-Identifier: Apache-2.0

import Configuration
import EventLoop
import Lifecycle
import Linux
import Processes
import Recovery
import Store
import SystemPackage
import TorporAPI

/// Carries out what the core decided.
extension Supervisor {
    /// The version that clients are told.
    public static let version = TorporVersion.text

    /// Writes down what the core decided, when it has. Only for ``perform(_:)``.
    func writeAhead(_ outputs: [AppAction]) {
        let now = loop.now
        for output in outputs {
            if case .entered(let state) = output.action { apps[output.app].times.enter(state, at: now) }
        }
        countTransitions(outputs)
        noteMain(outputs)
        enqueue(outputs)
        recordAhead(of: outputs)
    }

    /// Carries out what was written ahead. Only for ``perform(_:)``, which keeps the order.
    func carryOut(_ outputs: [AppAction]) {
        guard !isKeeperLost else { return }
        for output in outputs { perform(output.action, of: apps[output.app]) }
        recordDone(outputs)
    }

    func perform(_ action: Action, of app: AppRuntime) {
        switch action {
        case .launch(let order): launch(app, order)
        case .tell(let message):
            if message == .willEnterForeground || message == .didBecomeActive { raiseProfile(app) }
            tell(app, message)
        case .warn: warn(app)
        case .signalStop:
            guard !waitsForLook(app, action) else { break }
            signal(app, app.specification.stopSignal, toAll: app.specification.killMode == .all)
        case .signalWatchdog:
            guard !waitsForLook(app, action) else { break }
            signal(app, app.specification.watchdogSignal, toAll: false)
        case .stopProcesses:
            app.stop = .decided
            stopWhenHandled(app)
        case .continueProcesses:
            raiseProfile(app)
            continueProcesses(app)
        case .killProcesses:
            gatherEvidence(app, looking: false)
            trace(app, .signalled(Signal.kill))
            app.passDelay = .milliseconds(1)
            // Who is ended for its memory may have too little of a processor to give it back soon.
            let members = coordinator.machine(app.id).endingReason == .evicted ? app.tree?.pinned() : nil
            sweep(app)
            if let members { memoryWatch.worker.release(members) }
        case .endRemains: endRemains(app)
        case .entered(let state): entered(app, state)
        case .ended(let ending): ended(app, ending)
        case .report(let notice): report(app, notice)
        case .takeSnapshot: takeSnapshot(app)
        case .askForAdmission(let reason): governance?.mayLaunch(app, reason)
        case .askForMemory: memoryWatch.launchNeedsMemory(app)
        case .requestLaunch: break  // The coordinator keeps it to itself.
        }
    }

    /// There is memory for an app, or nobody looks: its launch goes on.
    func admitMemory(_ app: AppID) {
        uninterrupted { [self] in perform(coordinator.admitMemory(app, now: loop.now)) }
    }

    private func signal(_ app: AppRuntime, _ number: Int32, toAll: Bool) {
        guard let tree = app.tree else { return }
        do throws(Errno) {
            let count = try tree.signal(number, toAll: toAll)
            trace(app, .signalled(number))
            note(app, .signalled, text: "sent \(Signal.name(number)) to \(count) process\(count == 1 ? "" : "es")")
        } catch {
            if !error.isGone { log.warning("\(app.name): could not send \(Signal.name(number)): \(error)") }
        }
    }

    private func warn(_ app: AppRuntime) {
        if hearsByChannel(app.id) { pump(app) } else { tell(app, .taskExpiring) }
    }

    private func tell(_ app: AppRuntime, _ message: Message) {
        if hearsByChannel(app.id) { return pump(app) }
        guard let number = app.specification.signals[message] else { return }
        note(app, .told, text: "told \(message.rawValue) by \(Signal.name(number))")
        trace(app, .told(message))
        if (try? app.tree?.signal(number, toAll: false)) != nil { app.told = number }
    }

    // MARK: Stopping and continuing

    /// Stops its processes once it has handled what a signal has just told it: a handler that saves holds locks meanwhile.
    private func stopWhenHandled(_ app: AppRuntime) {
        guard let number = app.told, coordinator.machine(app.id).transition == .suspending else {
            return stopUnlessSounding(app)
        }
        app.told = nil
        app.passDelay = .milliseconds(1)
        let deadline = app.specification.rules.suspendDeadline
        waitForHandling(of: number, app, HandledSignal(since: loop.now, before: deadline))
    }

    private func waitForHandling(of number: Int32, _ app: AppRuntime, _ seen: HandledSignal) {
        guard coordinator.machine(app.id).transition == .suspending, let tree = app.tree else { return }
        var seen = seen
        guard !seen.isHandled(number, by: tree.main.pid, now: loop.now) else { return stopUnlessSounding(app) }
        again(app) { supervisor, app in supervisor.waitForHandling(of: number, app, seen) }
    }

    /// Stops its processes, whatever they hold.
    func beginStopping(_ app: AppRuntime) {
        app.stop = .underWay
        app.passDelay = .milliseconds(1)
        app.freezes = false
        if app.specification.suspendWith == .freezer, let tree = app.tree, tree.cgroupPath != nil {
            do throws(Errno) {
                try tree.freeze()
                app.freezes = true
            } catch {
                log.warning("\(app.name) cannot be frozen (\(error)): it is stopped by SIGSTOP")
            }
        }
        stopPass(app)
    }

    private func stopPass(_ app: AppRuntime) {
        guard app.stop == .underWay, let tree = app.tree else { return }
        let result: StopResult = app.freezes ? (tree.isFrozen ? .stopped : .again) : tree.stopPass()
        switch result {
        case .stopped:
            app.stop = .none
            // Heartbeats that were sent before the stop are read, and count for nothing after it.
            hear(app)
            deliver(.stopConfirmed, to: app.id)
            // Of one that somebody else had continued nothing is entered, and its look may have been given up for the stop.
            if isStillToBeLookedAt(app.id) { followLocks(app) }
        case .gone: app.stop = .none  // Its exit is on the way.
        case .again: again(app) { supervisor, app in supervisor.stopPass(app) }
        }
    }

    private func continueProcesses(_ app: AppRuntime) {
        app.stop = .none
        app.told = nil
        memoryWatch.continues(app)
        channelResumed(app)
        app.lockLook = nil
        guard let tree = app.tree else { return }
        mailboxes.deliverBeforeResume(to: app)
        do throws(Errno) {
            try tree.continue()
        } catch {
            if !error.isGone { log.warning("\(app.name): could not continue every process: \(error)") }
        }
    }

    /// Looks whether somebody else continued a suspended app; called when it shows a sign of life, and by `list`.
    func checkStillSuspended(_ app: AppRuntime) {
        let machine = coordinator.machine(app.id)
        guard machine.state == .suspended, machine.transition == nil, let tree = app.tree else { return }
        // On a busy machine a process stops a while after its signal: what is being stopped again was counted.
        guard app.stop == .none else { return }
        // Frozen it is not stopped by a signal, whatever the configuration says by now.
        let mayBeFrozen = app.specification.suspendWith == .freezer
        let isStill =
            (mayBeFrozen && tree.isFrozen) || tree.isStopped(thoroughly: false) || (!mayBeFrozen && tree.isFrozen)
        if !isStill, !tree.isEmpty { deliver(.foundRunning, to: app.id) }
    }

    // MARK: Ending

    private func endRemains(_ app: AppRuntime) {
        app.stop = .none
        app.passDelay = .milliseconds(1)
        guard let tree = app.tree, !tree.isEmpty else {
            gone(app)
            return
        }
        _ = try? tree.signal(app.specification.stopSignal, toAll: true)
        try? tree.continue()
        sweep(app)
    }

    /// Looks whether an ending app is gone, and kills on when it is past its grace.
    func sweep(_ app: AppRuntime) {
        let machine = coordinator.machine(app.id)
        guard machine.transition == .terminating, let tree = app.tree else { return }
        let isPastGrace = machine.deadlines.contains { $0.kind == .kill }
        let isGone = isPastGrace ? tree.killPass() == .gone : tree.mainHasEnded && tree.isEmpty
        if isGone { gone(app) } else { again(app) { supervisor, app in supervisor.sweep(app) } }
    }

    /// Looks again at an app one of whose processes was reaped.
    func sweepSoon(_ app: AppRuntime) {
        guard coordinator.machine(app.id).transition == .terminating, app.tree?.mainHasEnded ?? false else { return }
        sweep(app)
    }

    private func gone(_ app: AppRuntime) {
        // The keeper's word on how the main process ended may still be on its way: then that brings us here again.
        guard app.exitRecord != nil else { return again(app) { supervisor, app in supervisor.sweep(app) } }
        guard app.hooks == nil else { return }
        app.passTimer?.disarm()
        runHooks(app, app.specification.afterStop, named: "after_stop") { [weak self] failure in
            if let failure { self?.log.warning("\(app.name): \(failure)") }
            self?.deliver(.allGone, to: app.id)
        }
    }

    /// Repeats a pass after a delay that grows from 1 to 100 ms.
    private func again(_ app: AppRuntime, _ pass: @escaping (Supervisor, AppRuntime) -> Void) {
        app.passTimer = try? loop.timer { [weak self, weak app] in
            guard let self, let app else { return }
            pass(self, app)
        }
        app.passTimer?.arm(after: app.passDelay)
        app.passDelay = min(app.passDelay * 2, .milliseconds(100))
    }

    // MARK: What is to be told

    private func entered(_ app: AppRuntime, _ state: AppState) {
        // States that it only passes through would be most of what the log has; of not running its ending tells.
        let isThere = coordinator.machine(app.id).goal.rawValue == state.rawValue && state != .notRunning
        note(
            app,
            .entered,
            from: app.lastState.rawValue,
            to: state.rawValue,
            text: "is \(state.rawValue)",
            level: isThere ? nil : .debug
        )
        if state != .notRunning { trace(app, .entered(state)) }
        governance?.entered(app, from: app.lastState, to: state)
        app.lastState = state
        locksEntered(app, state)
        memoryWatch.entered(app, state)
        if state != .notRunning { watchMemory(app) }
        if state == .active || state == .background { app.probe = nil }
    }

    /// Events tell of transitions that last; those that are over at once show as states only.
    func announceTransition(_ app: AppRuntime) {
        let machine = coordinator.machine(app.id)
        let transition = machine.transition
        guard transition != app.announced else { return }
        app.announced = transition
        guard let transition else { return app.timeline.rest() }
        trace(app, .began(transition))
        // A launch that was overtaken while its commands ran, or its files were read, has no process to be ended.
        if transition == .terminating {
            cancelHooks(app)
            cancelReading(app)
        }
        note(app, .changing, to: transition.rawValue, text: "is \(transition.rawValue)")
    }

    private func report(_ app: AppRuntime, _ notice: Notice) {
        let text: String
        switch notice {
        case .missed(let kind, let transition):
            text =
                "did not answer within its \(kind.rawValue) deadline while \(transition?.rawValue ?? "running"); "
                + "it goes on"
        case .suspendFailed: text = "could not be stopped in time and was continued"
        case .stoppedAgain(let time):
            text = "was continued by somebody else while suspended; stopped again (\(time) of 3)"
        case .keepsRunning: text = "is continued by somebody else again and again: it is left running in the background"
        case .killed: text = "did not end within its grace: sent SIGKILL"
        case .snapshotMissed:
            let deadline = app.specification.rules.snapshotDeadline.map { " of " + Quantity.text($0) } ?? ""
            text = "gave no snapshot: it was not there within its deadline\(deadline)"
        case .holdEnded: text = "is held no longer: the time of an operator's hold is over"
        case .modeBegan(let mode): text = "may stay in the background while it has use for it (mode \(mode.rawValue))"
        case .modeEnded(let mode): text = "has no use for the background any more (mode \(mode.rawValue))"
        case .sleepsAgain: text = "is suspended again: its time for what woke it is over"
        case .backgroundTimeUsed:
            // Without a policy it is left running.
            governance?.timeUsed(app)
            return
        }
        if let happening = Happening(notice) { note(app, happening, text: text) }
    }
}
