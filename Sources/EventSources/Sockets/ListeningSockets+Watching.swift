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
        // Usually the two arrays that are compared share their storage, so the comparison takes constant time.
        let isSame =
            app.next == nil ? set.specifications == app.specification.sockets : set.specifications == wanted(app)
        guard isSame else { return reconcile(app) }
        look(set)
    }

    /// Called when the app's state may have changed: begins or ends the watching of the app's sockets accordingly.
    func look(_ set: SocketSet) {
        let machine = coordinator.machine(set.app.id)
        closeIfRefused(set, machine)
        bindUnreached(set, machine)
        share(set)
        if machine.isAlive, set.unserved.until != nil { set.unserved.endDelay() }
        withhold(set)
        guard isBegun, sleeps(set.app, machine) else {
            for socket in set.sockets where !isCounted(socket, of: set, machine) { stopWatching(socket) }
            return
        }
        let mayWake = machine.mayRun && mayWake(set, machine)
        for socket in set.sockets where socket.descriptor != nil {
            watch(socket, of: set, toWake: mayWake && socket.specification.wake != .none)
        }
    }

    /// Whether connections wait because the app is suspended or does not run. False if no connection should wake the
    /// app now: the app is being launched, woken or removed, torpord is shutting down, or torpor-keeper is lost.
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
        if !machine.isAlive, let until = set.unserved.until {
            guard until <= self.now else { return false }
            set.unserved.endDelay()
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
            // If connections do not wake the app, the socket is watched only to notice a full queue, so each connection
            // is reported once (edge-triggered).
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

    /// Called when the app has called shutdown(2) on its socket, as many programs do at exit. If the app does not run,
    /// binds the socket again for the next launch.
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
        var event = WakeEvent(
            .socket,
            socket.specification.name,
            socket.arrival,
            wake: socket.specification.wake.wake(),
            at: now
        )
        event.isUntraced = socket.specification.plan.isUntraced
        if !machine(app).isAlive { set.unserved.run = SocketSet.Run(socket, since: now) }
        // `happened` throws only if an event's message does not fit into the mailbox, and this event has no message.
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

    /// Called when the app gets its sockets for a launch. If the app's last run accepted no connection, checks whether
    /// this run does, whatever the reason for the launch. Counts arrivals from now on, before the app can accept any
    /// connection.
    func launches(_ set: SocketSet) {
        guard set.unserved.count > 0, let socket = set.unserved.run?.socket ?? set.unserved.socket else { return }
        stopCounting(set)
        set.unserved.run = SocketSet.Run(socket, since: now)
        look(set)
    }

    /// Called when a run of the app has ended. If a connection launched the run and the run accepted none, that
    /// connection is still queued and launches the app again at once. After several such runs in a row, connections
    /// launch the app only after the delay of a restart, which grows with each such run.
    package func ended(_ app: AppRuntime, _ ending: Ending) {
        guard let set = sets[app.id], let run = set.unserved.run else { return }
        // What was never launched has accepted nothing, and may not even have got its sockets.
        let neverRan = ending.reason == .launchFailed
        guard neverRan || !isOver(run, of: set.app) && !run.hasServed() else { return forgetUnserved(set) }
        stopCounting(set)
        set.unserved.run = nil
        // Do not count an end that was requested: the requester knows why the connection was not served. While torpord
        // ends, nothing is launched anyway.
        guard ending.next == .rest, !ending.reason.wasAskedFor, machine(app).allowsLaunchByEvent, !isEnding,
            !coordinator.isShuttingDown
        else { return }
        set.unserved.socket = run.socket
        set.unserved.count += 1
        let attempt = set.unserved.count - SocketSet.Unserved.tolerated - 1
        guard attempt >= 0, run.isCounted || neverRan else { return }
        let delay = app.specification.rules.backoff.delay(attempt: attempt)
        let until = now + delay
        set.unserved.until = until
        set.unserved.timer = try? loop.timer { [weak self, weak set] in
            guard let self, let set else { return }
            set.unserved.timer = nil
            self.look(set)
        }
        set.unserved.timer?.arm(at: until)
        let label = run.socket.label
        // Record this later, when it is known whether a policy has ended the app. If a policy has, events are held back
        // for that reason, and another event records that.
        loop.later { [weak self, weak app] in
            guard let self, let app, app.wakes?.heldUntil.map({ $0 <= self.now }) ?? true else { return }
            self.note(
                app,
                .notWoken,
                text:
                    "ended again without accepting the connection at \(label): connections launch it again in "
                    + "\(Quantity.text(delay))"
            )
        }
    }

    /// Called when a user has requested the app. Forgets earlier runs that accepted no connection.
    func startedByPerson(_ app: AppRuntime) { if let set = sets[app.id] { forgetUnserved(set) } }

    /// Forgets the runs that accepted no connection.
    private func forgetUnserved(_ set: SocketSet) {
        stopCounting(set)
        set.unserved.endDelay()
        set.unserved = SocketSet.Unserved()
    }

    /// Whether the run has lasted so long that its end will not delay the next launch.
    private func isOver(_ run: SocketSet.Run, of app: AppRuntime) -> Bool {
        now - run.since >= app.specification.rules.backoff.stableAfter
    }

    /// Whether new connections at the socket must be counted: the app runs, and as far as is known its last run
    /// accepted no connection. If so, starts to count connections until the app has accepted one or the run has lasted
    /// long enough.
    private func isCounted(_ socket: ListeningSocket, of set: SocketSet, _ machine: AppMachine) -> Bool {
        guard set.unserved.count > 0, let run = set.unserved.run, run.socket === socket,
            machine.isAlive || machine.isWaitingToLaunch, let descriptor = socket.descriptor
        else { return false }
        if let counter = run.counter, socket.source === counter { return true }
        guard !isOver(run, of: set.app), !run.hasServed() else {
            forgetUnserved(set)
            return false
        }
        stopWatching(socket)
        let isReadable = Descriptor.readiness(descriptor.raw).contains(.readable)
        let wanted: IOEvents = [.readable, .edgeTriggered]
        socket.source = try? loop.watch(descriptor.raw, wanted) { [weak self, weak set, weak run] _ in
            guard let self, let set, let run, set.unserved.run === run else { return }
            if run.hasServed(isReport: true) || self.isOver(run, of: set.app) { self.forgetUnserved(set) }
        }
        run.count(by: socket.source, isReadable: isReadable)
        return true
    }

    private func stopCounting(_ set: SocketSet) {
        guard let run = set.unserved.run, let counter = run.counter, run.socket.source === counter else { return }
        stopWatching(run.socket)
    }
}
