// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Processes
import Recovery
import TorporAPI

/// Ends the supervisor: with all its apps, without them, or by a handover to the next torpord.
package final class Shutdown: ShellRoom {
    package unowned(unsafe) let supervisor: Supervisor
    /// Set when this torpord hands over to the next one.
    var handsOver: HandOver? { didSet { engine.isEnding = true } }
    /// Set when the supervisor ends and leaves its apps to the next one (`on_exit = "leave"`).
    package private(set) var isLeaving = false { didSet { engine.isEnding = true } }
    /// Whether all apps are being terminated.
    private var isFinishing = false { didSet { engine.isEnding = true } }
    /// Whether every app is gone and the loop stops.
    private(set) var isFinished = false
    /// Whether this torpord was asked to stop. A second request kills the remaining apps.
    private var isAsked = false
    /// How many apps at the beginning of the table had no process when ``hasLivingApp()`` last looked.
    private var passed = 0

    package init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// Continues a shutdown that an earlier torpord had begun.
    func goOn() { if supervisor.recovery.isShuttingDown { isFinishing = true } }

    /// SIGTERM or SIGINT: terminates all apps in order, or leaves them running if `on_exit` says so or systemd
    /// restarts the service. A second signal kills the remaining apps.
    package func ask() {
        let now = loop.now
        // If an earlier torpord died during a shutdown, continue that shutdown, even if `on_exit` says to leave apps
        // running.
        let isUnderWay = isFinishing || supervisor.recovery.isShuttingDown
        let reason = isUnderWay ? nil : supervisor.place.reasonToLeaveApps
        if let reason {
            note(.stopping, text: "stopping: apps keep running, and the next torpord takes them over", reason: reason)
            if supervisor.configuration.supervisor.onExit == .leave {
                for app in apps where machine(app).state == .suspended { app.run.tree?.stopInPlaceOfFreezing() }
            }
            supervisor.service.stop(leavingApps: true)
            supervisor.recovery.readsConfiguration = true
            isLeaving = true
            return loop.stop()
        }
        if isFinishing, isAsked {
            log.info("asked again to stop: killing the remaining apps now")
            for app in apps where coordinator.machine(app.id).isAlive {
                if let outputs = try? coordinator.request(.forceQuit, of: app.id, now: now) { perform(outputs) }
            }
            engine.settle()
        } else if !isUnderWay {
            note(.stopping, text: "stopping: every app is terminated")
            begin()
        } else {
            log.info("asked to stop: all apps are being terminated already")
        }
        // Only a request sets this flag, not a shutdown that an earlier torpord has begun: if torpord dies during a
        // shutdown, torpor-keeper asks the next torpord to stop, and that must not count as a second request.
        isAsked = true
    }

    /// Terminates all apps in order; then the supervisor ends.
    package func begin() {
        isFinishing = true
        supervisor.recovery.isShuttingDown = true
        uninterrupted { [weak self] in
            guard let self else { return }
            self.perform(self.coordinator.shutDown(now: self.loop.now))
            self.supervisor.service.stop(leavingApps: false)
        }
    }

    /// Whether an app has a process. This is asked at each end of one of perhaps thousands of apps, so the apps that were
    /// gone before are passed over until no other is left.
    private func hasLivingApp() -> Bool {
        let all = apps.all
        while passed < all.count, !coordinator[all[passed].id].isAlive { passed += 1 }
        if passed < all.count { return true }
        passed = 0
        return !coordinator.isEverythingGone
    }

    /// Stops the loop once all apps, their hooks, checks and transfers have ended and protected data is locked. If an
    /// app has a persistent timer (kept across restarts), first waits until the stored timers are loaded or loading has
    /// timed out, because new timers are saved only after that.
    func finishWhenGone() {
        guard isFinishing, !hasLivingApp(), apps.allSatisfy({ $0.hooks == nil }) else { return }
        guard supervisor.persistence.isRemembered || !supervisor.wakes.timers.arePersistent else { return }
        let areGone = [supervisor.transfers.endAll(), supervisor.desktop.endAll(), supervisor.launcher.endChecks()]
        guard !areGone.contains(false), supervisor.protection.endAll() else { return }
        isFinished = true
        loop.stop()
    }
}
