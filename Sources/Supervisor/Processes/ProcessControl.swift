// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import MemoryPressure
import Processes

/// Signals, stops, continues and ends the processes of apps, as the core decides.
///
/// No method blocks. Work that takes time is done in passes: a pass is one attempt on all processes of an app, and a
/// timer repeats it until it succeeds or is no longer needed.
package final class ProcessControl: ShellRoom {
    package unowned(unsafe) let supervisor: Supervisor

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// Sends a signal to the app's main process, or to all its processes.
    func signal(_ app: AppRuntime, _ number: Int32, toAll: Bool) {
        guard let tree = app.run.tree else { return }
        if machine(app).transition == .terminating, tree.isDeaf(to: number) { return endDeaf(app, number, tree) }
        let pids = toAll && !tree.isContainer ? tree.pidsOfCgroup() : nil
        if let pids, tree.isCrowd(pids) {
            return signalCrowd(app, tree, [number], pids[...], 0) { [weak self, weak app] count in
                guard let self, let app else { return }
                self.trace(app, .signalled(number))
                self.note(app, .signalled, text: "sent \(Signal.name(number)) to \(count) processes")
            }
        }
        do throws(Errno) {
            let count = try tree.signal(number, toAll: toAll, read: pids)
            trace(app, .signalled(number))
            note(app, .signalled, text: "sent \(Signal.name(number)) to \(count) process\(count == 1 ? "" : "es")")
        } catch {
            if !error.isGone { log.warning("\(app.name): could not send \(Signal.name(number)): \(error)") }
        }
    }

    /// Continues the processes of an app that is asked to end, if its main process is stopped, for example because a user
    /// sent it SIGSTOP: a stopped process cannot handle the signal that asks it to end, and would be killed after its
    /// grace without saving anything.
    func continueToEnd(_ app: AppRuntime) {
        guard let tree = app.run.tree, (try? ProcFS.stat(tree.addressee.pid))?.state == "T" else { return }
        let pids = tree.isContainer ? nil : tree.pidsOfCgroup()
        if let pids, tree.isCrowd(pids) {
            return signalCrowd(app, tree, [Signal.continue], pids[...], 0) { _ in }
        }
        _ = try? tree.signal(Signal.continue, toAll: true, read: pids)
    }

    /// Sends signals to an app that has very many processes, to a portion of them in each turn of the event loop, as long
    /// as this run of the app lasts. `completion` gets how many processes got them.
    private func signalCrowd(
        _ app: AppRuntime,
        _ tree: ProcessTree,
        _ numbers: [Int32],
        _ rest: ArraySlice<Int32>,
        _ count: Int,
        _ completion: @escaping (Int) -> Void
    ) {
        guard app.run.tree === tree else { return }
        let count = count + tree.signal(numbers, pids: rest.prefix(tree.mostAtOnce))
        let rest = rest.dropFirst(tree.mostAtOnce)
        guard !rest.isEmpty else { return completion(count) }
        loop.later { [weak self, weak app] in
            if let self, let app { self.signalCrowd(app, tree, numbers, rest, count, completion) }
        }
    }

    // MARK: Stopping

    /// Stops the app's processes. If the app has to save its state first, cannot be woken yet, or holds a file lock that
    /// forbids the stop, reports that to the core instead.
    func stop(_ app: AppRuntime) {
        app.run.stop = .decided
        app.run.passDelay = .milliseconds(1)
        lookBeforeStop(app) { [weak self] in self?.handleAndAsk(app) }
    }

    /// How soon to look again at an app that has not stopped at once: a process that waits for the processor on which
    /// torpord runs stops as soon as torpord waits.
    private static let shortStopDelay = Duration.microseconds(50)
    /// The same for an app with more than ``fewProcesses``, or without a cgroup: each look takes longer.
    private static let stopDelay = Duration.milliseconds(1)
    private static let fewProcesses = 8

    private func handleAndAsk(_ app: AppRuntime) {
        guard let number = app.run.told, coordinator[app.id].transition == .suspending else { return ask(app) }
        app.run.told = nil
        let deadline = app.specification.rules.suspendDeadline
        waitForHandling(of: number, app, HandledSignal(since: loop.now, before: deadline))
    }

    /// Waits until the app has handled the signal that was just sent. The handler may hold locks while it saves data,
    /// and these locks would prevent the stop.
    private func waitForHandling(of number: Int32, _ app: AppRuntime, _ seen: HandledSignal) {
        guard isToBeStopped(app), let tree = app.run.tree else { return }
        var seen = seen
        guard !seen.isHandled(number, by: tree.addressee.pid, now: loop.now) else { return ask(app) }
        again(app) { control, app in control.waitForHandling(of: number, app, seen) }
    }

    /// What prevents a stop of the app: nothing, or file locks.
    private enum Answer {
        /// `pids`: what the app's cgroup contained, if it was read just now.
        case nothing(pids: [Int32]? = nil)
        case locks([LockInTheWay])
    }

    /// Checks once whether the app may be stopped now, and acts on the answer if the stop is still wanted.
    private func ask(_ app: AppRuntime) {
        let tree = app.run.tree
        mayBeStopped(app) { [weak self] answer in
            guard let self, app.run.tree === tree, self.isToBeStopped(app) else { return }
            switch answer {
            case .nothing(let pids): self.begin(app, pids)
            case .locks(let locks):
                app.run.stop = .none
                self.supervisor.lockWatch.isHeld(app, by: locks)
            }
        }
    }

    /// Checks that the app plays no sound, which would let it stay in the background, and holds no lock that forbids
    /// the stop. Calls `answer` at once if no check is needed. If the app plays sound, `answer` is not called: the core
    /// gets an event instead.
    private func mayBeStopped(_ app: AppRuntime, _ answer: @escaping (Answer) -> Void) {
        app.run.lockLook = nil
        guard !coordinator[app.id].isForced else { return answer(.nothing()) }
        let lookForLocks = { [supervisor] in
            guard app.specification.rules.onLock != .ignore else { return answer(.nothing()) }
            supervisor.lockWatch.look(at: app) { finding in
                switch finding {
                case .free(_, let pids): answer(.nothing(pids: pids))
                case .inTheWay(let locks): answer(.locks(locks))
                }
            }
        }
        // A suspended app that another process has continued is stopped again, whether or not it plays sound: check
        // only its locks.
        guard coordinator[app.id].transition == .suspending else { return lookForLocks() }
        supervisor.wakes.audioMode.look(before: app, lookForLocks)
    }

    func isToBeStopped(_ app: AppRuntime) -> Bool {
        guard app.run.stop == .decided else { return false }
        let transition = coordinator[app.id].transition
        return transition == .suspending || transition == nil && coordinator[app.id].state == .suspended
    }

    /// Stops the app's processes, even if they hold locks.
    ///
    /// - Parameter read: the processes in the app's cgroup, if they were read just now.
    private func begin(_ app: AppRuntime, _ read: [Int32]?) {
        app.run.stop = .underWay
        app.run.freezes = false
        let isFreezer = app.specification.suspendWith == .freezer
        let pids = isFreezer ? nil : read ?? app.run.tree?.pidsOfCgroup()
        // Stopping very many processes one by one would hold up the event loop for seconds, so freeze them.
        if let tree = app.run.tree, tree.cgroupPath != nil, isFreezer || tree.isCrowd(pids) {
            do throws(Errno) {
                try tree.freeze()
                app.run.freezes = true
            } catch {
                log.warning("\(app.name) cannot be frozen (\(error)): stopping it with SIGSTOP")
            }
        }
        let isShort = app.run.freezes || pids?.count ?? .max <= Self.fewProcesses
        app.run.passDelay = isShort ? Self.shortStopDelay : Self.stopDelay
        stopPass(app, pids)
    }

    /// - Parameter pids: the processes in the app's cgroup, if they were read just now.
    private func stopPass(_ app: AppRuntime, _ pids: [Int32]? = nil) {
        guard app.run.stop == .underWay, let tree = app.run.tree else { return }
        let result: StopResult = app.run.freezes ? (tree.isFrozen ? .stopped : .again) : tree.stopPass(read: pids)
        switch result {
        case .stopped:
            app.run.stop = .none
            // Read now the messages that the app sent before the stop: heartbeats that are read later would count as
            // sent after the stop.
            supervisor.notifySockets.readNotifySocket(app)
            deliver(.stopConfirmed, to: app.id)
            // If another process had continued the app, this stop changes no state, but it may have cancelled a check
            // of the app's locks. Start that check again.
            supervisor.lockWatch.followOn(app)
        case .gone: app.run.stop = .none  // The exit of its main process is on the way.
        case .again: again(app) { control, app in control.stopPass(app) }
        }
    }

    // MARK: Continuing

    /// Continues the app's processes, whether the freezer or a signal has stopped them.
    func `continue`(_ app: AppRuntime) {
        app.run.stop = .none
        app.run.told = nil
        supervisor.memoryWatch.continues(app)
        supervisor.appSockets.channelResumed(app)
        app.run.lockLook = nil
        guard let tree = app.run.tree else { return }
        supervisor.mailboxes.deliverBeforeResume(to: app)
        do throws(Errno) {
            try tree.continue()
        } catch {
            if !error.isGone { log.warning("\(app.name): could not continue every process: \(error)") }
        }
    }

    /// Checks whether another process has continued a suspended app. Called when the app does something that a stopped
    /// process cannot do, and when a client lists apps.
    package func checkStillSuspended(_ app: AppRuntime) {
        let outline = coordinator[app.id].outline
        guard outline.state == .suspended, outline.transition == nil, let tree = app.run.tree else { return }
        // Do not check while torpord is stopping the app: on a busy machine, a process stops only some time after
        // SIGSTOP is sent. If torpord is stopping the app because another process has continued it, that was reported
        // already.
        guard app.run.stop == .none else { return }
        // The configuration may have changed since the stop, so check for both the freezer and SIGSTOP. Check the
        // configured method first, since it is the more likely one.
        let mayBeFrozen =
            app.specification.suspendWith == .freezer || app.run.freezes || app.run.usage.processes > tree.mostAtOnce
        let isStill =
            (mayBeFrozen && tree.isFrozen) || tree.isStopped(thoroughly: false) || (!mayBeFrozen && tree.isFrozen)
        if !isStill, !tree.isEmpty { deliver(.foundRunning, to: app.id) }
    }

    // MARK: Ending

    /// Sends a signal to a container whose first process does not handle it. The kernel does not deliver such a signal
    /// to the first process of a PID namespace (pid_namespaces(7)), so the other processes get the signal instead. When
    /// the first process is the only one left, it is killed, because outside of a container the signal would have ended
    /// it.
    private func endDeaf(_ app: AppRuntime, _ number: Int32, _ tree: ProcessTree) {
        let name = Signal.name(number)
        let count = (try? tree.signal(number, tree.othersInContainer)) ?? 0
        trace(app, .signalled(number))
        if count > 0 {
            let others = count == 1 ? "the other process" : "the \(count) others"
            note(app, .signalled, text: "sent \(name) to \(others) inside: the first one does not handle it")
        }
        if count == 0 { return killFirst(app, number, tree) }
        app.run.passDelay = .milliseconds(1)
        killWhenAlone(app, number, tree, nil)
    }

    /// - Parameter rest: the result of `firstRestsAlone()` at the last check. If the result has not changed, the first
    ///   process has slept since then, so it does not react to the end of the other processes and is killed.
    private func killWhenAlone(_ app: AppRuntime, _ number: Int32, _ tree: ProcessTree, _ rest: UInt64?) {
        guard app.run.tree === tree, machine(app).transition == .terminating, tree.isDeaf(to: number) else { return }
        let now = tree.firstRestsAlone()
        if let now, now == rest { return killFirst(app, number, tree) }
        again(app) { control, app in control.killWhenAlone(app, number, tree, now) }
    }

    private func killFirst(_ app: AppRuntime, _ number: Int32, _ tree: ProcessTree) {
        let name = Signal.name(number)
        note(app, .signalled, text: "killed the first process inside, which does not handle \(name) and is alone")
        tree.killFirstInContainer()
    }

    /// Kills the app's processes repeatedly until they are gone.
    func kill(_ app: AppRuntime) {
        supervisor.shares.raiseToEnd(app)
        app.run.passDelay = .milliseconds(1)
        sweep(app)
    }

    /// Called when the main process has ended. Ends the app's other processes.
    func endRemains(_ app: AppRuntime) {
        app.run.stop = .none
        app.run.passDelay = .milliseconds(1)
        guard let tree = app.run.tree, !tree.isEmpty else {
            gone(app)
            return
        }
        supervisor.shares.raiseToEnd(app)
        let number = supervisor.launcher.containers.stopSignal(of: app)
        let pids = tree.isContainer ? nil : tree.pidsOfCgroup()
        if let pids, tree.isCrowd(pids) {
            app.run.remains = pids.count
            _ = try? tree.thaw()
            signalCrowd(app, tree, [number, Signal.continue], pids[...], 0) { _ in }
            return sweep(app)
        }
        app.run.remains = try? tree.signal(number, toAll: true, read: pids)
        try? tree.continue()
        sweep(app)
    }

    /// Checks whether all processes of an app that is ending have ended. After the grace period, kills those that are
    /// left.
    func sweep(_ app: AppRuntime) {
        let machine = machine(app)
        guard machine.transition == .terminating, let tree = app.run.tree else { return }
        let isPastGrace = machine.deadlines.contains { $0.kind == .kill }
        let isGone = isPastGrace ? tree.killPass() == .gone : tree.mainHasEnded && tree.isEmpty
        if isGone { gone(app) } else { again(app) { control, app in control.sweep(app) } }
    }

    /// Checks an app again after one of its processes was reaped.
    func sweepSoon(_ app: AppRuntime) {
        guard machine(app).transition == .terminating, app.run.tree?.mainHasEnded ?? false else {
            return
        }
        sweep(app)
    }

    private func gone(_ app: AppRuntime) {
        // torpor-keeper may not have reported yet how the main process ended: check again until it has.
        guard app.run.exitRecord != nil else { return again(app) { control, app in control.sweep(app) } }
        guard app.hooks == nil else { return }
        app.run.passTimer?.disarm()
        let hooks = supervisor.launcher.containers.cleanup(of: app) + app.specification.afterStop
        if !hooks.isEmpty { deliver(.cleaningUp, to: app.id) }
        supervisor.launcher.runHooks(app, hooks, as: .afterStop) { [weak self] failure in
            if let failure { self?.note(app, .hookFailed, text: failure) }
            self?.deliver(.allGone, to: app.id)
        }
    }

    /// Calls `pass` after a delay, which doubles with each call up to 100 ms.
    private func again(_ app: AppRuntime, _ pass: @escaping (ProcessControl, AppRuntime) -> Void) {
        app.run.passTimer = try? loop.timer { [weak self, weak app] in
            guard let self, let app else { return }
            pass(self, app)
        }
        app.run.passTimer?.arm(after: app.run.passDelay)
        app.run.passDelay = min(app.run.passDelay * 2, .milliseconds(100))
    }
}
