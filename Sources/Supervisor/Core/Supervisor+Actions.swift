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
    /// The version that torpord reports to clients.
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
        if let scene = machine.lateScene(now: loop.now), let deadline = scene.deadline {
            return reports.missedDeadline(deadline, app, awaiting: scene.awaiting)
        }
        guard let missed = machine.missedDeadline(now: loop.now) else { return }
        // While the app works on a message that no transition waits for, it has not got the message of its transition.
        let message = appSockets.messageInWork(of: app)?.message ?? machine.awaitedMessage
        reports.missedDeadline(missed, app, awaiting: message)
    }

    package func handled(_ event: AppEvent, of app: AppRuntime) {
        recorder.traceReady(app, after: event)
        switch event {
        case .answered(.didEnterBackground): processControl.saved(app)
        case .snapshotOver: processControl.showed(app)
        default: break
        }
    }

    package func isJudged(_ app: AppRuntime) -> Bool {
        // An app that does not run has sent no messages, so there are none to read first.
        guard app.run.tree != nil else { return true }
        // Read the app's messages before its deadline is judged, because an answer that the app has already sent
        // counts.
        notifySockets.readNotifySocket(app)
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
        case .tellScene(_, let message):
            if message == .sceneWillEnterForeground || message == .sceneDidBecomeActive { shares.raiseProfile(app) }
            appSockets.pump(app)
        case .warn: warn(app)
        case .signalStop:
            guard !reports.waitsForLook(app, action) else { break }
            processControl.signal(
                app,
                launcher.containers.stopSignal(of: app),
                toAll: app.specification.killMode == .all
            )
            processControl.continueToEnd(app)
        case .signalWatchdog:
            guard !reports.waitsForLook(app, action) else { break }
            processControl.signal(app, app.specification.watchdogSignal, toAll: false)
        case .stopProcesses: processControl.stop(app)
        case .continueProcesses:
            shares.raiseProfile(app)
            processControl.continue(app)
        case .killProcesses:
            reports.takeCrashSnapshot(app, looking: false)
            trace(app, .signalled(Signal.kill))
            // An app that is evicted may have too little CPU weight to free its memory soon, so torpord frees that
            // memory itself.
            let members = coordinator.machine(app.id).endingReason == .evicted ? app.run.tree?.pinned() : nil
            processControl.kill(app)
            if let members { memoryWatch.worker.release(members) }
        case .endRemains: processControl.endRemains(app)
        case .entered(let state): entered(app, state)
        case .ended(let ending): ended(app, ending)
        case .report(let notice): report(app, notice)
        case .takeSnapshot: snapshots.takeSnapshot(app)
        case .askForAdmission(let reason): policyManager?.mayLaunch(app, reason)
        case .askForMemory: protection.launchNeedsData(app)
        case .requestLaunch: break  // The coordinator handles this action itself.
        }
    }

    private func warn(_ app: AppRuntime) {
        if appSockets.hearsByChannel(app.id) { appSockets.pump(app) } else { tell(app, .taskExpiring) }
    }

    private func tell(_ app: AppRuntime, _ message: Message) {
        if message == .didEnterBackground { processControl.tellsToSave(app) }
        if appSockets.hearsByChannel(app.id) { return appSockets.pump(app) }
        guard let number = app.specification.signals[message] else { return }
        note(app, .told, text: "told \(message.rawValue) by \(Signal.name(number))")
        trace(app, .told(message))
        app.run.signalled[number] = message
        if (try? app.run.tree?.signal(number, toAll: false)) != nil { app.run.told = number }
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
                + "torpord continues without the answer"
        case .messageMissed:
            mailboxes.missedDeadline(appSockets.messageInWork(of: app)?.mail, by: app)
            text = missedMessage(app)
        case .suspendFailed: text = "could not be suspended in time and was resumed"
        case .stoppedAgain(let time):
            text = "was resumed by another process (SIGCONT) while suspended; stopped again (\(time) of 3)"
        case .keepsRunning:
            text = "keeps being resumed by another process (SIGCONT): leaving it running in the background"
        case .killed: text = "did not end within its grace: sent SIGKILL"
        case .snapshotMissed:
            let deadline = app.specification.rules.snapshotDeadline.map { " of " + Quantity.text($0) } ?? ""
            text = "gave no snapshot: it was not ready within its deadline\(deadline)"
        case .sceneMissed(let scene, let message):
            text =
                "did not answer \(message.rawValue) of its scene \(innerScenes.name(of: scene) ?? "") in time; "
                + "torpord continues without the answer"
        case .sceneRefused(let scene, let missed):
            text = innerScenes.refused(scene, missed: missed, app)
        case .holdEnded: text = "is held no longer: an operator's hold expired"
        case .modeBegan(let mode): text = "may stay in the background while it needs to (mode \(mode.rawValue))"
        case .modeEnded(let mode): text = "no longer needs the background (mode \(mode.rawValue))"
        case .sleepsAgain: text = "is suspended again: its time for the event that woke it is over"
        case .ownershipExpired:
            app.importedDigest = nil
            text = "is no longer owned: ‘torpor own --for’ was not repeated in time; it is suspended"
        case .backgroundTimeUsed:
            // The policies decide what happens to the app. If no policy does, the app continues to run.
            policyManager?.timeUsed(app)
            return
        }
        let reason = notice == .ownershipExpired ? "ownership-expired" : nil
        if let kind = EventKind(notice) { note(app, kind, text: text, reason: reason) }
    }
}
