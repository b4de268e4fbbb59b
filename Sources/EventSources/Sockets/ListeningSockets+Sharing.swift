// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
package import Linux

/// Ports at which several apps listen (`reuse_port`), and connections that the kernel holds back.
extension ListeningSockets {
    /// Whether an app accepts connections at a port that it shares with other apps (`reuse_port`).
    enum PortStanding {
        /// The app accepts no connections: a user stopped it, it has failed, or it is being removed.
        case down
        /// The app accepts no connections: it has ended again and again, and waits for its next restart.
        case failing
        /// The app accepts no connections now, but may do so later.
        case coming
        /// The app accepts connections, or is woken when one comes.
        case takes
    }

    private func standing(_ set: SocketSet, _ socket: ListeningSocket?) -> PortStanding {
        let machine = coordinator.machine(set.app.id)
        if isKeptDown(machine) || machine.failed || coordinator.isLeaving(set.app.id) { return .down }
        if machine.isCrashLooping { return .failing }
        let isComing =
            machine.isWaitingToLaunch || machine.transition == .launching || machine.transition == .terminating
        if isComing || socket.map({ $0.descriptor == nil }) ?? false { return .coming }
        let sleeps = !machine.isAlive || machine.state == .suspended
        return sleeps && socket?.specification.wake == WakeManner.none ? .coming : .takes
    }

    /// Whether a user stopped the app, so that no connection launches it.
    private func isKeptDown(_ machine: AppMachine) -> Bool {
        guard machine.goal == .notRunning, !machine.isWaitingToLaunch else { return false }
        let reason = machine.isAlive ? machine.endingReason : machine.lastEnding
        return reason == .stopped || reason == .forceQuit
    }

    /// Closes or binds sockets at ports that several apps share, because the kernel distributes connections among all
    /// sockets of a port. The socket of an app that was stopped or is failing stays closed while another app accepts
    /// connections at the port. If no app accepts connections there or is about to, all sockets are bound again, so
    /// that connections are queued.
    func share(_ set: SocketSet) {
        guard isBegun, set.sockets.contains(where: { $0.specification.plan.reusePort }) else { return }
        let standing = standing(set, nil)
        guard set.portStanding != standing else { return }
        set.portStanding = standing
        if standing == .takes { setKnownToFail(set, false) }
        // Do this later, because apps that share the port may start together. Closing a socket loses its queue, and may
        // turn out to be unnecessary.
        loop.later { [weak self] in
            for socket in set.sockets where socket.specification.plan.reusePort {
                self?.share(socket.specification.plan)
            }
        }
    }

    /// The sockets of all apps at a shared port.
    private func group(_ plan: SocketPlan) -> [(set: SocketSet, socket: ListeningSocket)] {
        sets.values.flatMap { set in
            set.sockets.filter {
                $0.specification.plan.reusePort && $0.specification.plan.address == plan.address
                    && $0.specification.plan.kind == plan.kind
            }.map { (set: set, socket: $0) }
        }
    }

    /// Whether the app has ended again and again, and is being launched or is about to be, while others accept
    /// connections at the socket's port. If the launch fails too, the connections of this socket are reset.
    private func isUnproven(_ socket: ListeningSocket, of set: SocketSet, isComing: Bool) -> Bool {
        let plan = socket.specification.plan
        guard set.isKnownToFail, isComing, plan.reusePort, plan.kind == .stream else { return false }
        return group(plan).contains { $0.set !== set && standing($0.set, $0.socket) == .takes }
    }

    private func setKnownToFail(_ set: SocketSet, _ isKnown: Bool) {
        guard set.isKnownToFail != isKnown else { return }
        set.isKnownToFail = isKnown
        record(set.app)
    }

    /// The size, in bytes, of the fields that ``encode(_:into:)`` writes.
    package static let recordBytes = 1

    /// Writes what the next torpord must know about the app's sockets at shared ports.
    package func encode(_ app: AppRuntime, into record: inout RecordWriter) {
        record.put(sets[app.id]?.isKnownToFail ?? false)
    }

    /// Reads the fields that ``encode(_:into:)`` has written. Must be called before missing sockets are bound: while an
    /// app that fails is launched, connections at its socket are held back.
    package func restore(_ app: AppRuntime, from record: inout RecordReader) {
        let isKnownToFail = record.takeFlag()
        sets[app.id]?.isKnownToFail = isKnownToFail
    }

    /// Makes the kernel hold back connections at the app's sockets, or let them through, as the app's state demands.
    func withhold(_ set: SocketSet, isForLaunch: Bool = false) {
        // Until torpord has found the apps that were running at its start, the sockets stay as the last torpord left
        // them.
        guard isRecovered || isForLaunch else { return }
        let machine = machine(set.app)
        let isLaunching = isForLaunch || machine.transition == .launching
        let isInactive = machine.state == .inactive || isLaunching
        for socket in set.sockets where socket.descriptor != nil {
            let warning = socket.withhold(
                isInactive,
                standsBy: machine.standsBySockets,
                isUnproven: isUnproven(socket, of: set, isComing: isLaunching || machine.isWaitingToLaunch)
            )
            if let warning { warn(set.app, [warning]) }
        }
    }

    package func share(_ plan: SocketPlan) {
        let group = group(plan)
        for (set, socket) in group {
            if set.isKnownToFail { withhold(set) }
            let others = group.filter { $0.set !== set }.map { self.standing($0.set, $0.socket) }
            let isStopped = isKeptDown(coordinator.machine(set.app.id))
            let isDown = isStopped || self.standing(set, nil) == .failing
            if isDown, socket.descriptor != nil, others.contains(.takes) {
                close(socket)
                socket.isYielded = true
                let why = isStopped ? "was stopped" : "ended again and again"
                socket.trouble = "\(set.app.name) \(why), and others take the connections"
                // A failing app gets its socket at each launch and loses it again, so note this only the first time.
                guard isStopped || !set.isKnownToFail else { continue }
                setKnownToFail(set, !isStopped)
                let text = "no longer listens at \(socket.label): it \(why), and others listen there"
                note(set.app, .socketClosed, text: text)
            } else if socket.isYielded, !isDown || !others.contains(where: { $0 == .coming || $0 == .takes }) {
                socket.isYielded = false
                bind(socket, of: set.app)
                arrangeRetry()
                if set.portStanding != nil { look(set) }
            }
        }
    }
}
