// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Processes
import Recovery
import TorporAPI

/// How the supervisor ends: with all its apps, without them, or by making way for the next torpord.
package final class Shutdown: ShellRoom {
    package unowned(unsafe) let supervisor: Supervisor
    /// This torpord makes way for the next one.
    var handsOver: HandOver? { didSet { engine.isEnding = true } }
    /// The supervisor ends and leaves its apps to the next one (`on_exit = "leave"`).
    package private(set) var isLeaving = false { didSet { engine.isEnding = true } }
    /// Everything is being ended.
    private var isFinishing = false { didSet { engine.isEnding = true } }
    /// Every app is gone and the loop stops.
    private(set) var isFinished = false
    /// Whoever asked to stop has asked once: the next time it hurries.
    private var isAsked = false

    package init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// Goes on with the end at which an earlier torpord was.
    func goOn() { if supervisor.recovery.isShuttingDown { isFinishing = true } }

    /// SIGTERM or SIGINT: everything is terminated in its order, or left, as `on_exit` says, or because systemd restarts the
    /// service. A second one hurries.
    package func ask() {
        let now = loop.now
        // Or it was when the torpord before this one died.
        let isUnderWay = isFinishing || supervisor.recovery.isShuttingDown
        let reason = isUnderWay ? nil : supervisor.place.reasonToLeaveApps
        if let reason {
            note(.stopping, text: "stopping: apps keep running, and the next torpord takes them over", reason: reason)
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
        // The keeper asks again what it asked of a torpord that died before it had finished: that is no hurry.
        isAsked = true
    }

    /// Everything is terminated in its order, and then the supervisor ends.
    package func begin() {
        isFinishing = true
        supervisor.recovery.isShuttingDown = true
        uninterrupted { [weak self] in
            guard let self else { return }
            self.perform(self.coordinator.shutDown(now: self.loop.now))
            self.supervisor.service.stop(leavingApps: false)
        }
    }

    /// Ends the loop once everything is ended that was to be. An end that comes before the store has said what it knows waits
    /// for that, as long as a start does, if a timer makes up for what it misses: one that is new is only kept then.
    func finishWhenGone() {
        guard isFinishing, coordinator.isEverythingGone, apps.allSatisfy({ $0.hooks == nil }) else { return }
        guard supervisor.persistence.isRemembered || !supervisor.wakes.timers.arePersistent else { return }
        guard supervisor.transfers.endAll() else { return }
        isFinished = true
        loop.stop()
    }
}
