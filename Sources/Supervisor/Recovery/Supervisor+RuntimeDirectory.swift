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
extension Supervisor {
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
            runtimeRepair = timer
            try inotify.watchRemovals(of: runtime.path)
            runtimeWatch = try loop.watch(inotify.descriptor.raw, .readable) { _ in
                inotify.drain()
                next = .milliseconds(50)
                // Whoever removes a tree is at it for a while.
                timer.arm(after: .milliseconds(50))
            }
            if runtime.essentials.contains(where: { !File.exists($0) }) { timer.arm(after: delay) }
        } catch {
            if error == .noSuchFileOrDirectory, let runtimeRepair { return runtimeRepair.arm(after: delay) }
            log.info("cannot watch \(runtime.path) (\(error)): should somebody remove it, nobody would notice")
        }
    }

    /// Makes again what is missing.
    func repairRuntimeDirectory(again delay: Duration = .milliseconds(50)) {
        let missing = runtime.essentials.filter { !File.exists($0) }
        guard !missing.isEmpty, !isFinished else { return }
        let text = "its runtime directory was damaged, and is made again: somebody removed"
        note(.directoryDamaged, text: "\(text) \(missing.joined(separator: ", ")); nothing is lost")
        do {
            try runtime.repair()
            hold(HeldName.lock, runtime.lock.raw)
            if !File.exists(runtime.recovery) { try renewRecovery() }
            if !File.exists(runtime.batch) {
                try batch.move(to: runtime.batch)
                hold(HeldName.batch, batch.descriptor.raw)
            }
            if !File.exists(runtime.configuration) { keepConfiguration() }
            if !File.exists(runtime.socket), let server {
                try server.listenAgain()
                hold(HeldName.control, server.listener.raw)
            }
            for app in apps {
                renewNotifySocket(app)
                if let server = app.server, !File.exists(server.path) {
                    try server.listenAgain()
                    hold(HeldName.channel(app.name), server.listener.raw)
                }
            }
        } catch {
            log.error("\(runtime.path) cannot be made again: \(error)")
        }
        runtimeWatch?.cancel()
        watchRuntimeDirectory(again: delay)
    }

    private func renewRecovery() throws(Errno) {
        let old = recovery
        recovery = try RecoveryFile(
            creating: runtime.recovery,
            recordBytes: AppRecord.bytes(restartLimit: configuration.apps.map(\.rules.backoff.limit).max() ?? 0),
            capacity: apps.count
        )
        recovery.flags = old.flags
        recovery.keeper = old.keeper
        recovery.verdict = old.verdict
        recovery.nextEvent = old.nextEvent
        for app in apps {
            app.slot = nil
            app.ledger = nil
            record(app)
        }
        hold(HeldName.recovery, recovery.descriptor.raw)
    }

    private func renewNotifySocket(_ app: AppRuntime) {
        guard let socket = app.notifySocket, !File.exists(socket.path) else { return }
        // What waits in it was said already.
        hear(app)
        app.notifySource?.cancel()
        app.notifySource = nil
        app.notifySocket = nil
        socket.descriptor.close()
        do throws(LaunchTrouble) {
            try prepare(app, try identity(of: app))
        } catch {
            log.error("\(app.name) cannot notify any more: \(error)")
        }
    }
}
