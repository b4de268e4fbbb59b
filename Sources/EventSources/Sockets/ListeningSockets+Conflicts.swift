// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import Lifecycle
package import Linux
import Permissions

/// Sockets of which the kernel lets only one be bound, such as TCP sockets of `127.0.0.1:80` and `0.0.0.0:80`, or Unix
/// sockets with the same path. After an apply, one of them is an app's old socket, and the other one its new one, or
/// that of an app which takes its place.
extension ListeningSockets {
    /// Postpones the binds that must fail while an app runs with its old sockets, or until a removed app has ended.
    func postpone(_ set: SocketSet) {
        let next = Set((set.app.next ?? set.app.specification).sockets.map(\.identity))
        let kept = set.sockets.filter { $0.descriptor != nil && !next.contains($0.specification.identity) }
        let leaving = coordinator.isAnyLeaving ? sets.values.filter { coordinator.isLeaving($0.app.id) } : []
        for socket in set.sockets where socket.descriptor == nil {
            socket.isPostponed = true
            if let old = kept.first(where: { $0.conflicts(with: socket) }) {
                let address = old.specification.plan.address
                socket.trouble = "\(set.app.name) still runs with \(address), which is closed at its next launch"
            } else if let other = leaving.first(where: { other in
                other !== set && other.sockets.contains { $0.descriptor != nil && $0.conflicts(with: socket) }
            }) {
                socket.trouble = "\(other.app.name), which is removed, listens there until it has ended"
            } else {
                socket.isPostponed = false
            }
        }
    }

    /// What to add to an address in use while the app runs: a program that listened by itself until its configuration
    /// got `sockets` still does, until it is launched again, and so does one whose socket only the app still has.
    func ownListener(_ failure: BindFailure, _ app: AppRuntime) -> String {
        guard failure.stage == .bind, failure.errno == .addressInUse, coordinator.machine(app.id).isAlive else {
            return ""
        }
        return "; if \(app.name) itself listens there, ‘torpor restart \(app.name)’ gives it over"
    }

    /// Gives the socket of an app that has left to the app that takes its place and has an equal socket, so that the
    /// connections in its queue are not lost. Returns false if there is no such app of the same user: a process of
    /// another user may have kept the socket, and would accept the connections of the app that gets it.
    func handOver(_ socket: ListeningSocket, of app: AppRuntime) -> Bool {
        let plan = socket.specification.plan
        guard socket.descriptor != nil, !socket.isShutDown else { return false }
        for set in sets.values where set.refused == nil {
            guard (set.app.next ?? set.app.specification).user == app.specification.user else { continue }
            guard let heir = set.sockets.first(where: { $0.isPostponed && $0.specification.plan == plan }),
                heir.descriptor == nil, mayInherit(heir, set.app),
                host.socketAccounts.missing(heir.specification) == nil,
                let warnings = heir.take(from: socket, host.socketAccounts), let descriptor = heir.descriptor
            else { continue }
            heir.isPostponed = false
            host.hold(heir.heldName, descriptor.raw)
            host.release(socket.heldName)
            warn(set.app, warnings)
            look(set)
            return true
        }
        return false
    }

    /// Whether the app may get the socket of a removed app instead of a new one. The other apps at a shared port take
    /// the connections anyway. An app in a sandbox gets no Unix socket: the removed app may have queued descriptors
    /// there of files that this app may not open.
    func mayInherit(_ socket: ListeningSocket, _ app: AppRuntime) -> Bool {
        let plan = socket.specification.plan
        switch plan.address {
        case .path, .abstract: return (app.next ?? app.specification).sandbox.mode == nil
        case .port, .ipv4, .ipv6, .vsock: return !plan.reusePort
        }
    }

    /// Makes a socket that is closed next stop listening, if another one waits for its address: torpor-keeper has a
    /// copy of the socket for a moment longer, and no other one could listen until then.
    func makeRoom(_ socket: ListeningSocket) {
        guard let descriptor = socket.descriptor,
            sets.values.contains(where: { set in
                set.sockets.contains { $0.descriptor == nil && $0.conflicts(with: socket) }
            })
        else { return }
        try? Sockets.shutDown(descriptor.raw)
    }

    /// Closes a socket that was passed to the app when it ran as another user, so that it is bound anew: a process of
    /// that user may have kept it, and would accept the app's connections. Sockets whose address cannot be bound again
    /// while it has them stay open.
    func closeIfForeign(_ socket: ListeningSocket, of app: AppRuntime) {
        let plan = socket.specification.plan
        guard let descriptor = socket.descriptor, let before = socket.userAtLaunch,
            before != app.specification.user ?? "",
            socket.hasFile || plan.kind != .datagram && socket.isBoundAnewAtOnce
        else { return }
        try? Sockets.shutDown(descriptor.raw)
        close(socket, removesFile: true)
    }

    /// Those of the app's next sockets that can listen only when its present ones are closed.
    package func waiting(_ next: [SocketSpecification], of app: AppRuntime) -> [SocketPlan] {
        let bound = sockets(of: app).filter { $0.descriptor != nil }
        return next.filter { specification in
            !bound.contains { $0.specification.identity == specification.identity }
                && bound.contains { $0.conflicts(with: specification.plan) }
        }.map(\.plan)
    }

    /// The inode numbers of all sockets that torpord has bound.
    package var numbers: Set<UInt32> { apps.reduce(into: []) { $0.formUnion(numbers(of: $1)) } }
}

extension ListeningSocket {
    /// Whether the kernel lets only one of the two sockets be bound.
    fileprivate func conflicts(with other: ListeningSocket) -> Bool {
        self !== other && conflicts(with: other.specification.plan)
    }

    fileprivate func conflicts(with plan: SocketPlan) -> Bool {
        let own = specification.plan
        switch (own.address, plan.address) {
        case (.path(let path), .path(let its)): return path == its
        // The kernel keeps the abstract names of each kind of socket apart (unix_find_socket_byname).
        case (.abstract(let name), .abstract(let its)): return name == its && own.kind == plan.kind
        default:
            guard let place = Place(own), let its = Place(plan) else { return false }
            return place.conflicts(with: its)
        }
    }

    /// Where a TCP socket listens.
    private struct Place {
        let port: UInt16
        /// The address; nil for all addresses.
        let address: String?
        let isIPv4: Bool
        let isIPv6: Bool
        let plan: SocketPlan

        /// Nil if the plan is not one of a TCP socket.
        init?(_ plan: SocketPlan) {
            guard plan.kind == .stream else { return nil }
            self.plan = plan
            switch plan.address {
            case .port(let port):
                (self.port, address, isIPv4, isIPv6) = (port, nil, plan.ipv6Only != true, true)
            case .ipv4(let text, let port):
                (self.port, address, isIPv4, isIPv6) = (port, text == "0.0.0.0" ? nil : text, true, false)
            case .ipv6(let text, let port, _):
                let isAny = text == "::"
                (self.port, address, isIPv4, isIPv6) = (port, isAny ? nil : text, isAny && plan.ipv6Only != true, true)
            case .path, .abstract, .vsock: return nil
            }
        }

        func conflicts(with other: Place) -> Bool {
            guard port == other.port, isIPv4 && other.isIPv4 || isIPv6 && other.isIPv6 else { return false }
            if plan.reusePort, other.plan.reusePort { return false }
            if let device = plan.device, let its = other.plan.device, device != its { return false }
            return address == nil || other.address == nil || address == other.address
        }
    }
}
