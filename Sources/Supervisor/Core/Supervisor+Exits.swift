// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
import Mailbox
import MemoryPressure
import Output
import Permissions
package import Processes
import SystemPackage
import TorporAPI
import Varlink

/// Handles the exits that torpor-keeper reports.
extension Supervisor {
    package func exited(_ record: ExitRecord) {
        if let completion = launcher.helpers.removeValue(forKey: record.pid) {
            launcher.keepExit(of: record)
            if launcher.hasFailedToStart(record) { return }
            return completion(record.status ?? .exited(255))
        }
        if launcher.foundEnded(record) { return }
        guard let id = coordinator.id(of: record.app), !takeover.leftOverExited(pid: record.pid), !record.isHelper,
            coordinator.machine(id).incarnation == record.incarnation, coordinator.machine(id).isAlive
        else { return keeper.forget(record) }
        let app = apps[id]
        // torpor-keeper stores the exit until torpord has recorded that the app has ended. If torpord dies before that,
        // the next torpord gets the exit again.
        app.keptExits.append(record)
        let machine = coordinator.machine(id)
        if app.run.tree == nil, !machine.hasProcess {
            if let failure = record.launchFailure {
                return launcher.launched(app, machine.launchOrder, .failure(failure), cgroupPath: nil)
            }
            // The process started and ended while no torpord was running, so this torpord has no process tree for it
            // yet.
            let tag = AppTag(app: app.name, incarnation: record.incarnation)
            let main = Identity(pid: record.pid, startTime: record.startTime)
            app.run.tree = takeover.tree(tag, main, nil, takeover.cgroup(of: app), isOurs: true)
            deliver(.launched, to: id)
        }
        guard app.run.tree != nil else { return }
        // Read the app's messages first: the process may have named its successor (MAINPID) just before it ended.
        notifySockets.afterHearing(app) { [weak self, weak app] in
            guard let self, let app, let tree = app.run.tree, tree.tag.incarnation == record.incarnation else { return }
            guard tree.main.pid == record.pid else {
                // The app has named another process as its main process (MAINPID), so the app continues.
                return self.processControl.sweepSoon(app)
            }
            self.mainEnded(app, MainExit(record))
        }
    }

    func orphanExited(_ record: OrphanRecord) {
        for app in apps {
            guard let tree = app.run.tree else { continue }
            if tree.main.pid == record.pid, tree.main.startTime == record.startTime {
                return mainExited(app, MainExit(record))
            }
        }
        if let name = record.app, let id = coordinator.id(of: name) { processControl.sweepSoon(apps[id]) }
    }

    /// Handles the end of the main process, once the messages that the process sent before are handled.
    package func mainExited(_ app: AppRuntime, _ record: MainExit) {
        guard app.run.exitRecord == nil else { return }
        let tree = app.run.tree
        notifySockets.afterHearing(app) { [weak self, weak app] in
            guard let self, let app, app.run.tree === tree else { return }
            self.mainEnded(app, record)
        }
    }

    /// Called when the main process has ended, and all messages that it sent before have been handled.
    private func mainEnded(_ app: AppRuntime, _ record: MainExit) {
        guard app.run.exitRecord == nil else { return }
        app.run.exitRecord = record
        trace(app, .exited)
        app.capture?.endLine()
        let cause = cause(record, app)
        // This is recorded together with the core's decision: if torpord dies before `ended`, the next one cannot tell
        // a kill from an eviction.
        if isAsleep(app), cause.isKill { (app.wasCutShort, app.wasKilledAsleep) = (true, true) }
        log.holdingBack {
            deliver(.mainExited(cause), to: app.id)
            launcher.containers.endJoined(to: app)
        }
    }

    /// Watches a main process that the app has named (MAINPID). While the parent of that process lives, the parent
    /// reaps it, so torpor-keeper cannot report its end.
    func watchMain(_ app: AppRuntime) {
        guard let tree = app.run.tree else { return }
        let main = tree.main
        guard let pidfd = tree.pidfd else { return mainExited(app, MainExit(pid: main.pid, status: nil)) }
        app.run.mainSource = try? loop.watch(pidfd.raw, .readable) { [weak self, weak app] _ in
            guard let self, let app else { return }
            app.run.mainSource?.cancel()
            app.run.mainSource = nil
            guard app.run.exitRecord == nil, app.run.tree?.main == main else { return }
            if let stat = try? ProcFS.stat(main.pid), stat.startTime == main.startTime,
                stat.parent != ThisProcess.parent
            {
                return self.mainExited(app, MainExit(pid: main.pid, status: Self.statusOfZombie(main.pid)))
            }
            // The process was reaped, or is about to be. If torpor-keeper reaps it, torpor-keeper's report comes within
            // half a second. If another parent does, no report comes.
            app.run.mainTimer = try? self.loop.timer { [weak self, weak app] in
                guard let self, let app, app.run.exitRecord == nil, app.run.tree?.main == main else { return }
                self.mainExited(app, MainExit(pid: main.pid, status: nil))
            }
            app.run.mainTimer?.arm(after: .milliseconds(500))
        }
    }

    /// Reads `exit_code`, the last field of /proc/PID/stat (proc(5)), of a process that waits to be reaped. Nil if the
    /// process is gone.
    private static func statusOfZombie(_ pid: Int32) -> ExitStatus? {
        guard let text = try? File.readString("/proc/\(pid)/stat"),
            let code = text.split(whereSeparator: { $0 == " " || $0 == "\n" }).last.flatMap({ Int32($0) })
        else { return nil }
        let signal = code & 0x7f
        return signal == 0 ? .exited((code >> 8) & 0xff) : .signaled(signal, coreDumped: code & 0x80 != 0)
    }

    private func cause(_ record: MainExit, _ app: AppRuntime) -> ExitCause {
        switch record.status {
        case nil: return .unknown
        // conmon exits with this status if its container was killed. A suspended container cannot exit by itself, so
        // it was killed.
        case .exited(128 + Signal.kill) where app.run.tree?.isContainer == true && isAsleep(app):
            return .signaled(Signal.kill, coreDumped: false)
        case .exited(let code): return .exited(code: code)
        case .signaled(let signal, let coreDumped):
            if signal == Signal.kill, let path = app.run.tree?.cgroupPath, place.countsMemory(path) {
                switch Cgroup.memoryShortage(path) {
                case .ownLimit: return .memoryLimit
                case .machine: return .outOfMemory
                case nil: break
                }
            }
            return .signaled(signal, coreDumped: coreDumped)
        }
    }

    private func isAsleep(_ app: AppRuntime) -> Bool {
        let machine = coordinator.machine(app.id)
        return machine.state == .suspended && machine.transition == nil
    }

    /// Records and reports the end of an incarnation (one run of an app), and releases what it held.
    package func ended(_ app: AppRuntime, _ ending: Ending) {
        let at = Clock.realtimeMicroseconds()
        var exit = LastExit(reason: ending.reason.rawValue, at: at)
        switch ending.cause {
        case .exited(let code): exit.code = code
        case .signaled(let signal, _): exit.signal = Signal.name(signal)
        case .outOfMemory, .memoryLimit: exit.signal = Signal.name(Signal.kill)
        case .unknown, nil: break
        }
        app.lastExit = exit
        if ending.reason == .evicted {
            app.wasCutShort = app.isEndedByPolicy != true ? true : nil
            let isAsked = app.isEndedByPolicy == true || memoryWatch.isEnding(app)
            app.wasKilledAsleep = !isAsked && ending.state == .suspended ? true : nil
        } else {
            (app.wasCutShort, app.wasKilledAsleep) = (nil, nil)
        }
        app.counters.ended(ending.reason)
        var text = EndingText.describe(
            ending,
            failing: reports.failing(of: app, ending) ?? launcher.containers.failure(of: app),
            refusal: app.run.refusal,
            remains: app.run.tree?.isContainer == true ? nil : app.run.remains,
            missing: missingRequirements(of: app),
            failedInSandbox: failsAtStartInSandbox(app, ending) ? app.name : nil,
            bound: reachedBound(app, ending)
        )
        if ending.reason.spoilsDelivery, let guilt = mailboxes.guilt(of: app, reason: ending.reason) { text += guilt }
        // Name the incarnation that has ended, because the next one may have been launched already.
        recorder.note(
            app,
            EventKind(ending),
            incarnation: ending.incarnation,
            to: AppState.notRunning.rawValue,
            text: text,
            reason: ending.reason.rawValue,
            details: EndingText.details(ending, at: at),
            fields: EndingText.fields(ending, app.run.launchFailure?.errno)
        )
        if ending.reason.isReported {
            let report = reports.makeReport(app, ending, exit, text)
            persistence.file(report, app)
            reports.failureCommands.failed(app, ending, report)
        }
        app.lastEnding = (ending, text)
        engine.ended(app, ending)
        app.heldBack = nil
        app.run.passTimer?.cancel()
        if let path = app.run.tree?.cgroupPath { try? Cgroup.removeTree(path) }
        app.run = Incarnation()
        takeNextSpecification(app)
    }

    /// Whether an app in a sandbox exited with a failure soon after its launch. The cause may then be an access that
    /// the sandbox denied: programs report this in words of their own, or not at all.
    private func failsAtStartInSandbox(_ app: AppRuntime, _ ending: Ending) -> Bool {
        guard app.specification.sandbox.mode != nil, ending.reason == .exitFailure, case .exited = ending.cause else {
            return false
        }
        if ending.transition == .launching { return true }
        return app.run.launchedAt.map { loop.now - $0 < app.specification.rules.backoff.stableAfter } ?? false
    }

    /// The app's limit or rule for which a signal has ended it, as a sentence; nil if none is known.
    private func reachedBound(_ app: AppRuntime, _ ending: Ending) -> String? {
        guard case .signaled(let signal, _) = ending.cause, app.specification.container == nil else { return nil }
        switch Signal.name(signal) {
        case "SIGXFSZ":
            guard let limit = app.specification.limits.first(where: { $0.name == "fsize" }), limit.soft < .max else {
                return nil
            }
            let bound = Bytes.text(limit.soft)
            return "one of its files reached the limit of \(bound): limits = { fsize = … } sets another"
        case "SIGSYS":
            guard app.specification.sandbox.mode != nil else { return nil }
            return "a sandbox ends programs for another architecture (32-bit) like this"
        case let name:
            guard ending.reason == .signal, let message = app.run.signalled[signal] else { return nil }
            return "torpord had told it \(message.rawValue) by \(name), which ends a program without a handler: "
                + "install handlers before the program is ready (READY=1)"
        }
    }

    /// The dependencies of the app that are neither up nor about to be.
    private func missingRequirements(of app: AppRuntime) -> [String] {
        app.specification.requires.filter { name in
            guard let id = coordinator.id(of: name) else { return true }
            let machine = coordinator.machine(id)
            return !machine.isUp && !machine.isAlive && !machine.isWaitingToLaunch
        }
    }
}

extension Incarnation {
    var mainTimer: TimerSource? {
        get { slots[MainTimerSlot.self] }
        set { slots[MainTimerSlot.self] = newValue }
    }
}

private enum MainTimerSlot: Slot { typealias Value = TimerSource }
