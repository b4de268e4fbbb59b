// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
import MemoryPressure
import Processes
import Recovery
import Store
import SystemPackage
import TorporAPI

/// Carries out what the core decided.
extension Supervisor: ActionPerformer {
    /// The version that clients are told.
    package static let version = TorporVersion.text

    package func writeAhead(_ outputs: [AppAction]) {
        let now = loop.now
        for output in outputs {
            if case .entered(let state) = output.action { apps[output.app].times.enter(state, at: now) }
        }
        recorder.countTransitions(outputs)
        shutdown.noteMain(outputs)
        appSockets.enqueue(outputs)
        recordAhead(of: outputs)
    }

    package func carryOut(_ outputs: [AppAction]) {
        guard !isKeeperLost else { return }
        for output in outputs { perform(output.action, of: apps[output.app]) }
        recordDone(outputs)
    }

    package func willHandle(_ event: AppEvent, of app: AppRuntime) {
        guard event == .deadline else { return }
        let machine = coordinator.machine(app.id)
        guard let missed = machine.deadlines.first(where: { $0.at <= loop.now }) else { return }
        reports.missedDeadline(missed, app, awaiting: machine.awaitedMessage)
    }

    package func handled(_ event: AppEvent, of app: AppRuntime) { recorder.traceReady(app, after: event) }

    package func isJudged(_ app: AppRuntime) -> Bool {
        // What the app has said already counts before any deadline is judged.
        notifySockets.hear(app)
        return !restsForTracer(app)
    }

    package func settled() {
        shutdown.followMain()
        shutdown.finishWhenGone()
    }

    package func perform(_ action: Action, of app: AppRuntime) {
        switch action {
        case .launch(let order): launcher.launch(app, order)
        case .tell(let message):
            if message == .willEnterForeground || message == .didBecomeActive { shares.raiseProfile(app) }
            tell(app, message)
        case .warn: warn(app)
        case .signalStop:
            guard !reports.waitsForLook(app, action) else { break }
            signal(app, app.specification.stopSignal, toAll: app.specification.killMode == .all)
        case .signalWatchdog:
            guard !reports.waitsForLook(app, action) else { break }
            signal(app, app.specification.watchdogSignal, toAll: false)
        case .stopProcesses:
            app.run.stop = .decided
            stopWhenHandled(app)
        case .continueProcesses:
            shares.raiseProfile(app)
            continueProcesses(app)
        case .killProcesses:
            reports.gatherEvidence(app, looking: false)
            trace(app, .signalled(Signal.kill))
            app.run.passDelay = .milliseconds(1)
            // Who is ended for its memory may have too little of a processor to give it back soon.
            let members = coordinator.machine(app.id).endingReason == .evicted ? app.run.tree?.pinned() : nil
            sweep(app)
            if let members { memoryWatch.worker.release(members) }
        case .endRemains: endRemains(app)
        case .entered(let state): entered(app, state)
        case .ended(let ending): ended(app, ending)
        case .report(let notice): report(app, notice)
        case .takeSnapshot: snapshots.takeSnapshot(app)
        case .askForAdmission(let reason): governance?.mayLaunch(app, reason)
        case .askForMemory: memoryWatch.launchNeedsMemory(app)
        case .requestLaunch: break  // The coordinator keeps it to itself.
        }
    }

    private func signal(_ app: AppRuntime, _ number: Int32, toAll: Bool) {
        guard let tree = app.run.tree else { return }
        do throws(Errno) {
            let count = try tree.signal(number, toAll: toAll)
            trace(app, .signalled(number))
            note(app, .signalled, text: "sent \(Signal.name(number)) to \(count) process\(count == 1 ? "" : "es")")
        } catch {
            if !error.isGone { log.warning("\(app.name): could not send \(Signal.name(number)): \(error)") }
        }
    }

    private func warn(_ app: AppRuntime) {
        if appSockets.hearsByChannel(app.id) { appSockets.pump(app) } else { tell(app, .taskExpiring) }
    }

    private func tell(_ app: AppRuntime, _ message: Message) {
        if appSockets.hearsByChannel(app.id) { return appSockets.pump(app) }
        guard let number = app.specification.signals[message] else { return }
        note(app, .told, text: "told \(message.rawValue) by \(Signal.name(number))")
        trace(app, .told(message))
        if (try? app.run.tree?.signal(number, toAll: false)) != nil { app.run.told = number }
    }

    // MARK: Stopping and continuing

    /// Stops its processes once it has handled what a signal has just told it: a handler that saves holds locks meanwhile.
    private func stopWhenHandled(_ app: AppRuntime) {
        guard let number = app.run.told, coordinator.machine(app.id).transition == .suspending else {
            return lockWatch.stopUnlessSounding(app)
        }
        app.run.told = nil
        app.run.passDelay = .milliseconds(1)
        let deadline = app.specification.rules.suspendDeadline
        waitForHandling(of: number, app, HandledSignal(since: loop.now, before: deadline))
    }

    private func waitForHandling(of number: Int32, _ app: AppRuntime, _ seen: HandledSignal) {
        guard coordinator.machine(app.id).transition == .suspending, let tree = app.run.tree else { return }
        var seen = seen
        guard !seen.isHandled(number, by: tree.main.pid, now: loop.now) else {
            return lockWatch.stopUnlessSounding(app)
        }
        again(app) { supervisor, app in supervisor.waitForHandling(of: number, app, seen) }
    }

    /// Stops its processes, whatever they hold.
    func beginStopping(_ app: AppRuntime) {
        app.run.stop = .underWay
        app.run.passDelay = .milliseconds(1)
        app.run.freezes = false
        if app.specification.suspendWith == .freezer, let tree = app.run.tree, tree.cgroupPath != nil {
            do throws(Errno) {
                try tree.freeze()
                app.run.freezes = true
            } catch {
                log.warning("\(app.name) cannot be frozen (\(error)): it is stopped by SIGSTOP")
            }
        }
        stopPass(app)
    }

    private func stopPass(_ app: AppRuntime) {
        guard app.run.stop == .underWay, let tree = app.run.tree else { return }
        let result: StopResult = app.run.freezes ? (tree.isFrozen ? .stopped : .again) : tree.stopPass()
        switch result {
        case .stopped:
            app.run.stop = .none
            // Heartbeats that were sent before the stop are read, and count for nothing after it.
            notifySockets.hear(app)
            deliver(.stopConfirmed, to: app.id)
            // Of one that somebody else had continued nothing is entered, and its look may have been given up for the stop.
            if lockWatch.isStillToBeLookedAt(app.id) { lockWatch.followLocks(app) }
        case .gone: app.run.stop = .none  // Its exit is on the way.
        case .again: again(app) { supervisor, app in supervisor.stopPass(app) }
        }
    }

    private func continueProcesses(_ app: AppRuntime) {
        app.run.stop = .none
        app.run.told = nil
        memoryWatch.continues(app)
        appSockets.channelResumed(app)
        app.run.lockLook = nil
        guard let tree = app.run.tree else { return }
        mailboxes.deliverBeforeResume(to: app)
        do throws(Errno) {
            try tree.continue()
        } catch {
            if !error.isGone { log.warning("\(app.name): could not continue every process: \(error)") }
        }
    }

    /// Looks whether somebody else continued a suspended app; called when it shows a sign of life, and by `list`.
    package func checkStillSuspended(_ app: AppRuntime) {
        let machine = coordinator.machine(app.id)
        guard machine.state == .suspended, machine.transition == nil, let tree = app.run.tree else { return }
        // On a busy machine a process stops a while after its signal: what is being stopped again was counted.
        guard app.run.stop == .none else { return }
        // Frozen it is not stopped by a signal, whatever the configuration says by now.
        let mayBeFrozen = app.specification.suspendWith == .freezer
        let isStill =
            (mayBeFrozen && tree.isFrozen) || tree.isStopped(thoroughly: false) || (!mayBeFrozen && tree.isFrozen)
        if !isStill, !tree.isEmpty { deliver(.foundRunning, to: app.id) }
    }

    // MARK: Ending

    private func endRemains(_ app: AppRuntime) {
        app.run.stop = .none
        app.run.passDelay = .milliseconds(1)
        guard let tree = app.run.tree, !tree.isEmpty else {
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
        guard machine.transition == .terminating, let tree = app.run.tree else { return }
        let isPastGrace = machine.deadlines.contains { $0.kind == .kill }
        let isGone = isPastGrace ? tree.killPass() == .gone : tree.mainHasEnded && tree.isEmpty
        if isGone { gone(app) } else { again(app) { supervisor, app in supervisor.sweep(app) } }
    }

    /// Looks again at an app one of whose processes was reaped.
    func sweepSoon(_ app: AppRuntime) {
        guard coordinator.machine(app.id).transition == .terminating, app.run.tree?.mainHasEnded ?? false else {
            return
        }
        sweep(app)
    }

    private func gone(_ app: AppRuntime) {
        // The keeper's word on how the main process ended may still be on its way: then that brings us here again.
        guard app.run.exitRecord != nil else { return again(app) { supervisor, app in supervisor.sweep(app) } }
        guard app.hooks == nil else { return }
        app.run.passTimer?.disarm()
        launcher.runHooks(app, app.specification.afterStop, named: "after_stop") { [weak self] failure in
            if let failure { self?.log.warning("\(app.name): \(failure)") }
            self?.deliver(.allGone, to: app.id)
        }
    }

    /// Repeats a pass after a delay that grows from 1 to 100 ms.
    private func again(_ app: AppRuntime, _ pass: @escaping (Supervisor, AppRuntime) -> Void) {
        app.run.passTimer = try? loop.timer { [weak self, weak app] in
            guard let self, let app else { return }
            pass(self, app)
        }
        app.run.passTimer?.arm(after: app.run.passDelay)
        app.run.passDelay = min(app.run.passDelay * 2, .milliseconds(100))
    }

    // MARK: What is to be told

    private func entered(_ app: AppRuntime, _ state: AppState) {
        engine.entered(app, from: app.lastState, to: state)
        app.lastState = state
        if state == .active || state == .background { app.run.probe = nil }
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
