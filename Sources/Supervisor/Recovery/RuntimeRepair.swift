// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Notify
import Output
import Recovery
import VarlinkServer

/// Restores a runtime directory that was removed while the supervisor runs, by a cleaner of temporary files or by
/// mistake. No data is lost, because torpord and torpor-keeper still have all files of the directory open: only the
/// files' names must be created again.
final class RuntimeRepair: ShellRoom {
    unowned(unsafe) let supervisor: Supervisor
    private var watch: IOSource?
    private var timer: TimerSource?
    /// What was last reported as missing, and why it could not be restored. A repair that fails is repeated each minute,
    /// for instance while the filesystem is full, and is reported again only if something is different.
    private var reported: (missing: [String], error: String?) = ([], nil)
    /// Why the notify sockets of apps could not be restored, as it was last reported.
    private var unheard: [AppID: String] = [:]
    private lazy var removals = BackgroundWorker(loop, named: "removals")

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// Restores what was removed before, and watches the runtime directory from now on.
    func begin() {
        repair(again: Self.firstDelay)
        if watch == nil { watchRemovals(again: Self.firstDelay) }
    }

    /// Empties the folders of users that were moved away from the directories of apps that are gone.
    func clearRemoved() {
        let removed = supervisor.runtime.removed
        removals.ask({ removed.clear() }, { _ in })
    }

    /// The time from a removal to the repair. The repair waits because removing a whole directory tree takes a while.
    private static let firstDelay = Duration.milliseconds(50)
    private static let longestDelay = Duration.seconds(60)

    /// - Parameter delay: the delay before the first check, for files that were removed before the watch began. It
    ///   doubles at each check, up to a minute, because it may be impossible to restore a file.
    private func watchRemovals(again delay: Duration) {
        watch?.cancel()
        watch = nil
        do throws(Errno) {
            var next = delay
            let timer = try loop.timer { [weak self] in self?.repair(again: min(next * 2, Self.longestDelay)) }
            self.timer = timer
            let inotify = try Inotify()
            try inotify.watchRemovals(of: supervisor.runtime.path)
            watch = try loop.watch(inotify.descriptor.raw, .readable) { _ in
                inotify.drain()
                next = Self.firstDelay
                timer.arm(after: Self.firstDelay)
            }
            if supervisor.recovery.isBeingRepaired || !missing.isEmpty { timer.arm(after: delay) }
        } catch {
            if error == .noSuchFileOrDirectory, let timer { return timer.arm(after: delay) }
            log.info(
                "cannot watch \(supervisor.runtime.path) (\(error)): torpord will not notice if it is removed"
            )
        }
    }

    private var missing: [String] { supervisor.runtime.essentials.filter { !File.exists($0) } }

    /// Restores missing files of the runtime directory, and repeats that until a full check finds none missing. If
    /// torpord dies during the repair, some sockets that it has made are not served by any process, so the next torpord
    /// checks each file.
    private func repair(again delay: Duration) {
        let missing = missing
        guard !missing.isEmpty || supervisor.recovery.isBeingRepaired, !supervisor.shutdown.isFinished else { return }
        if !missing.isEmpty, missing != reported.missing {
            let text = "the runtime directory was damaged and is being restored; nothing is lost; missing:"
            note(.directoryDamaged, text: "\(text) \(missing.joined(separator: ", "))")
        }
        reported.missing = missing
        supervisor.recovery.isBeingRepaired = true
        do {
            if try !renew() { supervisor.recovery.isBeingRepaired = false }
            reported.error = nil
        } catch {
            let text = "\(error)"
            if text != reported.error { log.error("\(supervisor.runtime.path) cannot be restored: \(text)") }
            reported.error = text
        }
        watchRemovals(again: delay)
    }

    /// Restores missing files of the runtime directory. Returns whether any were missing.
    private func renew() throws -> Bool {
        let runtime = supervisor.runtime
        var isRenewed = false
        if try runtime.repair() {
            isRenewed = true
            supervisor.hold(DescriptorName.lock, runtime.lock.raw)
        }
        if !RuntimeDirectory.isAt(runtime.recovery, supervisor.recovery.descriptor) {
            isRenewed = true
            try renewRecovery()
        }
        if !RuntimeDirectory.isAt(runtime.batch, supervisor.batch.descriptor) {
            isRenewed = true
            try supervisor.batch.move(to: runtime.batch)
            supervisor.hold(DescriptorName.batch, supervisor.batch.descriptor.raw)
        }
        if !supervisor.inForce.isKeptForNext {
            isRenewed = true
            supervisor.inForce.keepForNext()
        }
        if !Sockets.isServed(path: runtime.socket) {
            isRenewed = true
            try supervisor.listenAgain()
        }
        for app in apps {
            if let socket = app.notifySocket, !Sockets.isServed(path: socket.path, kind: .datagram) {
                isRenewed = true
                renew(socket, of: app)
            }
            if let server = app.server, !Sockets.isServed(path: server.path) {
                isRenewed = true
                try server.listenAgain()
                supervisor.hold(DescriptorName.channel(app.name), server.listener.raw)
            }
        }
        return isRenewed
    }

    private func renewRecovery() throws(Errno) {
        let limit = supervisor.configuration.apps.map(\.rules.backoff.limit).max() ?? 0
        try supervisor.recovery.goOn(
            at: supervisor.runtime.recovery,
            recordBytes: AppRecord.bytes(restartLimit: limit),
            capacity: apps.count
        )
        for app in apps {
            app.slot = nil
            app.ledger = nil
            record(app)
        }
        supervisor.hold(DescriptorName.recovery, supervisor.recovery.descriptor.raw)
    }

    private func renew(_ socket: NotifySocket, of app: AppRuntime) {
        // Read the messages that wait in the socket before the socket is replaced and closed.
        supervisor.notifySockets.readNotifySocket(app)
        let source = app.notifySource
        (app.notifySource, app.notifySocket) = (nil, nil)
        do throws(LaunchError) {
            try supervisor.launcher.prepare(app, try supervisor.launcher.identity(of: app))
            source?.cancel()
            socket.descriptor.close()
            unheard[app.id] = nil
        } catch {
            // Keep the old one, so that the next repair tries again.
            (app.notifySource, app.notifySocket) = (source, socket)
            let text = "\(error)"
            if text != unheard[app.id] { log.error("\(app.name) cannot send notifications for now: \(text)") }
            unheard[app.id] = text
        }
    }
}
