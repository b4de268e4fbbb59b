// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
import Processes

/// Watches the sockets of apps that are suspended or not running: connections and datagrams wake the apps.
extension ListeningSockets {
    package func added(_ app: AppRuntime) { reconcile(app) }

    package func concerns(_ app: AppRuntime) -> Bool { sets[app.id] != nil || !wanted(app).isEmpty }

    package func touched(_ app: AppRuntime) {
        guard let set = sets[app.id] else { return }
        // Usually both arrays share their storage, so the comparison takes constant time.
        let isSame =
            app.next == nil ? set.specifications == app.specification.sockets : set.specifications == wanted(app)
        guard isSame else { return reconcile(app) }
        look(set)
    }

    /// Called when the app's state may have changed: updates which of its sockets are watched.
    func look(_ set: SocketSet) {
        let machine = coordinator.machine(set.app.id)
        closeIfRefused(set, machine)
        share(set)
        let isInactive = machine.state == .inactive || machine.transition == .launching
        for socket in set.sockets where socket.descriptor != nil {
            if let warning = socket.withhold(isInactive, standsBy: machine.standsBySockets) { warn(set.app, [warning]) }
        }
        guard isBegun, sleeps(set.app, machine) else {
            for socket in set.sockets where !isCounted(socket, of: set, machine) { stopWatching(socket) }
            return
        }
        let mayWake = machine.mayRun && mayWake(set, machine)
        for socket in set.sockets where socket.descriptor != nil {
            watch(socket, of: set, toWake: mayWake && socket.specification.wake != .none)
        }
    }

    /// Whether connections wait because the app is suspended or does not run. False if nothing should wake it: it is
    /// being launched, woken or removed, torpord is shutting down, or torpor-keeper is lost.
    private func sleeps(_ app: AppRuntime, _ machine: AppMachine) -> Bool {
        guard !isEnding, !coordinator.isShuttingDown, !host.isKeeperLost,
            !coordinator.isLeaving(app.id), app.pendingWake == nil
        else { return false }
        if !machine.isAlive { return !machine.isWaitingToLaunch }
        return machine.transition == .suspending || (machine.state == .suspended && machine.transition == nil)
    }

    /// Whether a connection should wake the app. It should not during the delay after launches that accepted no
    /// connection, nor after a wake-up was refused, until the reason for the refusal may no longer hold.
    private func mayWake(_ set: SocketSet, _ machine: AppMachine) -> Bool {
        if let until = set.unserved.until {
            guard until <= self.now else { return false }
            set.unserved.until = nil
        }
        guard let refusal = set.refusal else { return true }
        let now = now
        let isOver = refusal.until.map { $0 <= now } ?? (refusal.at + SocketSet.patience <= now)
        guard isOver || refusal.of != situation(machine) else { return false }
        set.refusal = nil
        return true
    }

    private func situation(_ machine: AppMachine) -> SocketSet.Situation {
        SocketSet.Situation(machine, isBeforeFirstUnlock: host.isBeforeFirstUnlock)
    }

    private func watch(_ socket: ListeningSocket, of set: SocketSet, toWake: Bool) {
        if socket.source != nil {
            if socket.wakes == toWake, set.unserved.run?.counter !== socket.source { return }
            stopWatching(socket)
        }
        guard !socket.isShutDown else { return renew(socket, of: set) }
        guard let descriptor = socket.descriptor else { return }
        socket.wakes = toWake
        do throws(Errno) {
            // If connections do not wake the app, each is reported only once (edge-triggered), to notice a full queue.
            let wanted: IOEvents = toWake ? [.readable, .peerClosed] : [.readable, .peerClosed, .edgeTriggered]
            socket.source = try loop.watch(descriptor.raw, wanted) {
                [weak self, weak set, weak socket] events in
                guard let self, let set, let socket else { return }
                guard events.isDisjoint(with: ListeningSocket.shutDown) else {
                    self.stopWatching(socket)
                    return self.renew(socket, of: set)
                }
                if toWake { self.arrived(at: socket, of: set) } else { self.waits(at: socket, of: set) }
            }
        } catch {
            log.error("\(set.app.name): its socket \(socket.label) cannot be watched (\(error))")
        }
    }

    /// The app has called shutdown(2) on its socket, as many programs do at exit. If the app does not run, binds the
    /// socket again for the next launch.
    private func renew(_ socket: ListeningSocket, of set: SocketSet) {
        guard !coordinator.machine(set.app.id).isAlive else { return }
        log.info("\(set.app.name) has shut down its socket \(socket.label): binding it again")
        close(socket)
        if bind(socket, of: set.app) { look(set) } else { arrangeRetry() }
    }

    func stopWatching(_ socket: ListeningSocket) {
        guard socket.source != nil else { return }
        socket.source?.cancel()
        socket.source = nil
        socket.isToldFull = false
    }

    private func arrived(at socket: ListeningSocket, of set: SocketSet) {
        let app = set.app
        let event = WakeEvent(
            .socket,
            socket.specification.name,
            socket.arrival,
            wake: socket.specification.wake.wake(),
            at: now
        )
        if !machine(app).isAlive {
            let waiting = socket.backlog.map { Int($0.waiting) }
            set.unserved.run = SocketSet.Unserved.Run(socket: socket, waiting: waiting, since: now)
        }
        // Only an event with a message can be refused, and this event has none.
        let outcome = try? wakes.happened(event, for: app)
        if case .heldBack(_, let until) = outcome {
            set.unserved.run = nil
            let machine = machine(app)
            set.refusal = SocketSet.Refusal(at: now, until: until, of: situation(machine))
        }
        look(set)
    }

    /// Called for a connection or datagram that does not wake the app. Reports a nearly full queue.
    private func waits(at socket: ListeningSocket, of set: SocketSet) {
        guard !socket.isToldFull, socket.isNearlyFull, let backlog = socket.backlog else { return }
        socket.isToldFull = true
        let isDatagram = socket.specification.plan.kind == .datagram
        let what = isDatagram ? "\(backlog.waiting) of \(backlog.most) bytes" : "\(backlog.waiting) connections"
        note(
            set.app,
            .backlogNearlyFull,
            text: "is not awake, and \(what) wait at \(socket.label): its backlog is nearly full"
        )
    }

    // MARK: Launches that served nobody

    /// Called when a run of the app has ended. If a connection launched the app and the run accepted no connection,
    /// that connection still waits and would launch the app again at once. So connections then launch the app only
    /// after a restart delay, which grows with each such run in a row.
    package func ended(_ app: AppRuntime, _ ending: Ending) {
        guard let set = sets[app.id], let run = set.unserved.run else { return }
        set.unserved.run = nil
        if run.counter != nil { stopWatching(run.socket) }
        let backoff = app.specification.rules.backoff
        guard ending.next == .rest, run.servedNone, now - run.since < backoff.stableAfter else {
            set.unserved.count = 0
            return
        }
        let delay = backoff.delay(attempt: set.unserved.count)
        set.unserved.count += 1
        let until = now + delay
        set.unserved.until = until
        set.unserved.timer = try? loop.timer { [weak self, weak set] in
            guard let self, let set else { return }
            set.unserved.timer = nil
            self.look(set)
        }
        set.unserved.timer?.arm(at: until)
        let label = run.socket.label
        // Check this later: if a policy has ended the app, events are held back for that reason, which is logged
        // elsewhere.
        loop.later { [weak self, weak app] in
            guard let self, let app, app.wakes?.heldUntil.map({ $0 <= self.now }) ?? true else { return }
            self.note(
                app,
                .notWoken,
                text:
                    "ended without accepting the connection at \(label) that had launched it: connections launch it "
                    + "again in \(Quantity.text(delay))"
            )
        }
    }

    /// Called when a user has asked for the app.
    func startedByPerson(_ app: AppRuntime) { sets[app.id]?.unserved = SocketSet.Unserved() }

    /// Whether new connections at the socket are counted, by its `source`: only during a run that a connection at
    /// this socket launched, and only if the run before it accepted none. Begins to count if necessary.
    private func isCounted(_ socket: ListeningSocket, of set: SocketSet, _ machine: AppMachine) -> Bool {
        guard set.unserved.count > 0, let run = set.unserved.run, run.socket === socket,
            machine.isAlive || machine.isWaitingToLaunch, let descriptor = socket.descriptor
        else { return false }
        if let counter = run.counter, socket.source === counter { return true }
        stopWatching(socket)
        // Start at -1: epoll first reports once that connections are waiting already, which is no new connection.
        run.arrivals = -1
        let wanted: IOEvents = [.readable, .edgeTriggered]
        socket.source = try? loop.watch(descriptor.raw, wanted) { [weak run] _ in run?.arrivals += 1 }
        run.counter = socket.source
        return true
    }
}
