// SPDX-License-Identifier: Apache-2.0

import Configuration
import EventLoop
import Lifecycle
import Linux
import Notify
import Output
import Recovery
import VarlinkServer

/// A runtime directory that somebody removed under a running supervisor (a cleaner of temporary files, a slip of the
/// hand). Everything in it is open here and in the keeper, so that nothing is lost; it gets its names again.
final class RuntimeRepair: ShellRoom {
    unowned(unsafe) let supervisor: Supervisor
    private var watch: IOSource?
    private var timer: TimerSource?

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// Begins to watch it.
    ///
    /// - Parameter delay: when it is made again if something of it went before there was a watch; twice as late the next
    ///   time, up to a minute, since it may be that it cannot be made.
    func watchRuntimeDirectory(again delay: Duration = .milliseconds(50)) {
        do throws(Errno) {
            let inotify = try Inotify()
            var next = delay
            let timer = try loop.timer { [weak self] in self?.repairRuntimeDirectory(again: min(next * 2, .seconds(60)))
            }
            self.timer = timer
            try inotify.watchRemovals(of: supervisor.runtime.path)
            watch = try loop.watch(inotify.descriptor.raw, .readable) { _ in
                inotify.drain()
                next = .milliseconds(50)
                // Whoever removes a tree is at it for a while.
                timer.arm(after: .milliseconds(50))
            }
            if supervisor.runtime.essentials.contains(where: { !File.exists($0) }) { timer.arm(after: delay) }
        } catch {
            if error == .noSuchFileOrDirectory, let timer { return timer.arm(after: delay) }
            log.info(
                "cannot watch \(supervisor.runtime.path) (\(error)): should somebody remove it, nobody would notice"
            )
        }
    }

    /// Makes again what is missing.
    func repairRuntimeDirectory(again delay: Duration = .milliseconds(50)) {
        let missing = supervisor.runtime.essentials.filter { !File.exists($0) }
        guard !missing.isEmpty, !supervisor.shutdown.isFinished else { return }
        let text = "its runtime directory was damaged, and is made again: somebody removed"
        note(.directoryDamaged, text: "\(text) \(missing.joined(separator: ", ")); nothing is lost")
        do {
            try supervisor.runtime.repair()
            supervisor.hold(HeldName.lock, supervisor.runtime.lock.raw)
            if !File.exists(supervisor.runtime.recovery) { try renewRecovery() }
            if !File.exists(supervisor.runtime.batch) {
                try supervisor.batch.move(to: supervisor.runtime.batch)
                supervisor.hold(HeldName.batch, supervisor.batch.descriptor.raw)
            }
            if !File.exists(supervisor.runtime.configuration) { supervisor.inForce.keepForNext() }
            if !File.exists(supervisor.runtime.socket) { try supervisor.listenAgain() }
            for app in apps {
                renewNotifySocket(app)
                if let server = app.server, !File.exists(server.path) {
                    try server.listenAgain()
                    supervisor.hold(HeldName.channel(app.name), server.listener.raw)
                }
            }
        } catch {
            log.error("\(supervisor.runtime.path) cannot be made again: \(error)")
        }
        watch?.cancel()
        watchRuntimeDirectory(again: delay)
    }

    private func renewRecovery() throws(Errno) {
        let old = supervisor.recovery
        supervisor.recovery = try RecoveryFile(
            creating: supervisor.runtime.recovery,
            recordBytes: AppRecord.bytes(
                restartLimit: supervisor.configuration.apps.map(\.rules.backoff.limit).max() ?? 0
            ),
            capacity: apps.count
        )
        supervisor.recovery.flags = old.flags
        supervisor.recovery.keeper = old.keeper
        supervisor.recovery.verdict = old.verdict
        supervisor.recovery.nextEvent = old.nextEvent
        for app in apps {
            app.slot = nil
            app.ledger = nil
            record(app)
        }
        supervisor.hold(HeldName.recovery, supervisor.recovery.descriptor.raw)
    }

    private func renewNotifySocket(_ app: AppRuntime) {
        guard let socket = app.notifySocket, !File.exists(socket.path) else { return }
        // What waits in it was said already.
        supervisor.notifySockets.hear(app)
        app.notifySource?.cancel()
        app.notifySource = nil
        app.notifySocket = nil
        socket.descriptor.close()
        do throws(LaunchTrouble) {
            try supervisor.launcher.prepare(app, try supervisor.launcher.identity(of: app))
        } catch {
            log.error("\(app.name) cannot notify any more: \(error)")
        }
    }
}
