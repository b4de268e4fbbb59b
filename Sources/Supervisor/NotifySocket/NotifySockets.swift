// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Notify
import Processes
import SystemPackage

/// The messages that apps send by sd_notify.
package final class NotifySockets: ShellRoom {
    package unowned(unsafe) let supervisor: Supervisor

    let datagrams = DatagramBuffer()

    package init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// Reads datagrams that wait in the app's notify socket, up to a limit, so that a flood of them cannot block the
    /// event loop.
    func readNotifySocket(_ app: AppRuntime, atMost limit: Int = 64) {
        guard let socket = app.notifySocket else { return }
        guard !app.isHearing else {
            // While the socket waits for a receiver, it may have been replaced by one that is watched.
            if app.awaitsReceiver { app.notifySource?.setEvents([]) }
            return
        }
        if app.run.tree == nil, coordinator.machine(app.id).isAlive {
            // A program may send messages before torpor-keeper has reported that the program was executed. These
            // messages stay in the socket until then.
            app.notifySource?.setEvents([])
            return
        }
        app.isHearing = true
        defer { app.isHearing = app.awaitsReceiver }
        // While a process removes or opens a datagram, the socket is not watched; its next one may need none.
        app.notifySource?.setEvents(.readable)
        // A datagram stays in the socket until torpord has acted on it, so that the next torpord can read it if this
        // one dies before that.
        for _ in 0..<limit {
            guard let received = socket.peek() else { return }
            if received.hasDescriptors, app.handledDatagram == HandledDatagram(received, socket) {
                // Only its removal is left.
            } else if isHeard(received, app) {
                supervisor.processControl.checkStillSuspended(app)
                for warning in received.message.warnings { warn(app, warning) }
                if received.message.fdStore, received.hasDescriptors {
                    if storesNow(app) { return open(received, socket, app) }
                    warn(app, "its descriptors were refused: what it has stored before cannot be closed now")
                }
                take(received, [], app)
            } else if !received.message.barrier {
                note(app, .unheard, text: "ignored a notification of process \(received.pid): not one of its own")
            }
            guard drop(received, socket, app) else { return }
        }
    }

    /// Removes a datagram that was handled. A datagram with descriptors is removed by a separate process: it may have
    /// the last reference to a file, and to let go of it may block. Later datagrams wait until then. Returns false if
    /// so.
    private func drop(_ received: NotifySocket.Received, _ socket: NotifySocket, _ app: AppRuntime) -> Bool {
        guard received.hasDescriptors else {
            socket.drop(received)
            return true
        }
        app.handledDatagram = HandledDatagram(received, socket)
        app.notifySource?.setEvents([])
        let dropper = app.dropper ?? DescriptorReceiver(of: app.name, supervisor)
        app.dropper = dropper
        dropper.drop(socket.descriptor) { [weak self, weak app] isDropped in
            guard let self, let app else { return }
            app.isHearing = false
            if app.notifySocket !== socket {
                app.handledDatagram = nil
                self.readNotifySocket(app)
            } else if isDropped {
                app.handledDatagram = nil
                app.notifySource?.setEvents(.readable)
                self.readNotifySocket(app)
            } else {
                self.readLater(app)
            }
            self.goOnAfterHearing(app)
        }
        return false
    }

    /// Reads the app's socket again after a second: the process that removes a datagram with descriptors is blocked, or
    /// cannot be started.
    private func readLater(_ app: AppRuntime) {
        warn(app, "its notifications waited: closing a descriptor that it sent blocks torpor-keeper --receive")
        if app.notifyRetry == nil {
            app.notifyRetry = try? loop.timer { [weak self, weak app] in
                app?.notifyRetry?.disarm()
                if let app { self?.readNotifySocket(app) }
            }
        }
        app.notifyRetry?.arm(after: .seconds(1))
    }

    /// Records what is wrong with a notification, once in each run of the app: most programs send the same ones again
    /// and again, such as heartbeats.
    private func warn(_ app: AppRuntime, _ warning: String) {
        var said = app.run.notifyWarnings
        guard said.count < Self.mostWarnings, said.insert(warning).inserted else { return }
        app.run.notifyWarnings = said
        note(app, .unheard, text: warning)
    }

    /// The maximum number of different warnings about an app's notifications in a run.
    private static let mostWarnings = 32

    /// Lets a separate process open the descriptors of a datagram, then acts on the datagram. Later datagrams wait
    /// until then.
    private func open(_ received: NotifySocket.Received, _ socket: NotifySocket, _ app: AppRuntime) {
        let receiver = app.receiver ?? DescriptorReceiver(of: app.name, supervisor)
        app.receiver = receiver
        app.notifySource?.setEvents([])
        let incarnation = coordinator.machine(app.id).incarnation
        receiver.open(socket.descriptor) { [weak self, weak app] opened, warnings in
            guard let self, let app else { return }
            if app.run.tree != nil, self.coordinator.machine(app.id).incarnation == incarnation {
                for warning in warnings { self.note(app, .unheard, text: warning) }
                self.take(received, opened, app)
            }
            app.isHearing = false
            if app.notifySocket === socket {
                app.handledDatagram = HandledDatagram(received, socket)
            } else {
                app.notifySource?.setEvents(.readable)
            }
            self.readNotifySocket(app)
            self.goOnAfterHearing(app)
        }
    }

    /// Calls `work` when all messages that the app has sent so far are read, or after 10 s: otherwise an app could
    /// delay the call for ever by sending descriptors that take long to open.
    func afterHearing(_ app: AppRuntime, _ work: @escaping () -> Void) {
        readNotifySocket(app)
        guard app.awaitsReceiver else { return work() }
        let until = app.afterHearing?.until ?? loop.now + .seconds(10)
        app.afterHearing = (until, (app.afterHearing?.work ?? []) + [work])
    }

    private func goOnAfterHearing(_ app: AppRuntime) {
        guard let waiting = app.afterHearing else { return }
        if app.awaitsReceiver, loop.now < waiting.until { return }
        app.afterHearing = nil
        for work in waiting.work { work() }
    }

    private func isHeard(_ received: NotifySocket.Received, _ app: AppRuntime) -> Bool {
        guard let tree = app.run.tree else { return false }
        if received.pid == tree.main.pid { return true }
        switch app.specification.notifyAccess {
        case .main: return false
        case .all:
            if tree.contains(received.pid) { return true }
            // The sender may have ended by now. If so, accept the message: only processes of the app's user can write
            // to the socket.
            return !File.exists("/proc/\(received.pid)")
        }
    }

    private func take(_ received: NotifySocket.Received, _ opened: [Descriptor], _ app: AppRuntime) {
        let id = app.id
        trace(app, .contact)
        for field in received.message.fields {
            switch field {
            case .ready:
                if app.specification.isReadyByNotify { deliver(.ready, to: id) }
                if app.run.isReloading {
                    app.run.isReloading = false
                    record(app)
                    note(app, .said, text: "has reloaded")
                }
            case .reloading:
                app.run.isReloading = true
                record(app)
                note(app, .said, text: "is reloading")
            case .stopping:
                note(app, .said, text: "says that it is stopping")
                trace(app, .saidStopping)
                deliver(.stopping, to: id)
            case .status(let text):
                let wasPulling = supervisor.launcher.containers.pull(of: app) != nil
                app.run.statusText = text
                record(app)
                supervisor.launcher.containers.statusChanged(app, wasPulling: wasPulling)
            case .errno(let number):
                app.run.saidErrno = number
                record(app)
            case .exitStatus(let status): note(app, .said, text: "says that it will exit with \(status)")
            case .mainPID(let pid): changeMain(app, pid)
            case .containerRuns(let stopSignal, let digest):
                supervisor.launcher.containers.runs(
                    app,
                    stopSignal: stopSignal,
                    digest: digest,
                    saidBy: received.pid
                )
            case .watchdogPing:
                supervisor.policyManager?.heard(app)
                deliver(.heartbeat, to: id)
            case .watchdogTrigger: deliver(.watchdogTriggered, to: id)
            case .watchdogUsec(let microseconds):
                let interval = microseconds == 0 ? nil : Duration.microseconds(Int64(clamping: microseconds))
                deliver(.watchdogInterval(interval), to: id)
            case .extendTimeoutUsec(let microseconds):
                deliver(.extendTimeout(.microseconds(Int64(clamping: microseconds))), to: id)
            case .done(let name):
                guard let message = Message(rawValue: name) else {
                    note(app, .unheard, text: "answered \(name), which is not a message")
                    continue
                }
                recorder.traceAnswer(app, message)
                // If the app has a delegate, only answers on the delegate's connection count, so ignore answers by
                // sd_notify.
                if app.channel?.delegate == nil { deliver(.answered(message), to: id) }
            case .showsNew: deliver(.showsNew, to: id)
            case .taskBegin(let name): supervisor.appSockets.beginTask(byNotify: name, app)
            case .taskEnd(let name): supervisor.appSockets.endTask(byNotify: name, app)
            case .fdStore, .fdStoreRemove: store(received.message, opened, app)
            case .barrier, .monotonicUsec, .busError, .fdName, .fdPoll, .unknown: break
            }
        }
    }

    private func changeMain(_ app: AppRuntime, _ pid: Int32) {
        // Ignore the pid that an app in a container sends: it belongs to the container's pid namespace.
        guard let tree = app.run.tree, pid != tree.main.pid, !tree.isContainer else { return }
        do throws(Errno) {
            app.run.mainSource = nil
            try tree.changeMain(to: pid)
            record(app)
            supervisor.watchMain(app)
            supervisor.launcher.startProbe(app)
            trace(app, .mainChanged)
            note(app, .mainChanged, text: "its main process is \(pid) now")
        } catch {
            note(app, .unheard, text: "named process \(pid) as its main process, which is not one of its processes")
        }
    }
}

extension AppRuntime {
    /// Functions to call once the app's messages are read, and the time at which they are called in any case.
    var afterHearing: (until: Duration, work: [() -> Void])? {
        get { slots[AfterHearingSlot.self] }
        set { slots[AfterHearingSlot.self] = newValue }
    }
}

extension AppRuntime {
    /// The datagram that was handled last, if it is not known to be removed.
    fileprivate var handledDatagram: HandledDatagram? {
        get { slots[HandledDatagramSlot.self] }
        set { slots[HandledDatagramSlot.self] = newValue }
    }

    /// Reads the app's socket again, if a datagram could not be removed.
    fileprivate var notifyRetry: TimerSource? {
        get { slots[NotifyRetrySlot.self] }
        set { slots[NotifyRetrySlot.self] = newValue }
    }
}

/// What is known of a datagram by which it is found again. If a process that removes one is late, the next datagram may
/// be another one.
private struct HandledDatagram: Equatable {
    let socket: ObjectIdentifier
    let pid: Int32
    let sent: Int64?
    let message: NotifyMessage

    init(_ received: NotifySocket.Received, _ socket: NotifySocket) {
        self.socket = ObjectIdentifier(socket)
        (pid, sent, message) = (received.pid, received.sent, received.message)
    }
}

private enum HandledDatagramSlot: Slot { typealias Value = HandledDatagram }

private enum NotifyRetrySlot: Slot { typealias Value = TimerSource }

extension Incarnation {
    /// The warnings about notifications that were recorded in this run.
    fileprivate var notifyWarnings: Set<String> {
        get { slots[NotifyWarningsSlot.self] ?? [] }
        set { slots[NotifyWarningsSlot.self] = newValue }
    }
}

private enum NotifyWarningsSlot: Slot { typealias Value = Set<String> }

private enum AfterHearingSlot: Slot { typealias Value = (until: Duration, work: [() -> Void]) }
