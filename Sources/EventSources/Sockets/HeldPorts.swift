// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// The listening sockets of an app that ended while suspended. torpord keeps them open until the app is launched again,
/// so that clients are not refused, and the first connection launches the app.
///
/// They are copies of the app's own sockets, so connections made before the app's end are still queued. torpor-keeper
/// holds the copies for the next torpord. The service manager (systemd) gets none: it might close its copies late, and
/// until then the app could not bind its port.
final class HeldPorts: EventRoom {
    let app: AppRuntime
    private unowned let owner: ConnectionWatch
    var wakes: Wakes { owner.wakes }
    private var ports: [Port] = []
    /// The event of a connection that could not launch the app yet. It is retried.
    private var heldBack: WakeEvent?

    /// The maximum number of sockets that are kept open for an app that has ended: otherwise such apps could use up the
    /// descriptors of torpord and torpor-keeper.
    private static let most = 32

    private final class Port {
        let copy: SocketCopy
        var source: IOSource?

        init(_ copy: SocketCopy) { self.copy = copy }
    }

    init(_ app: AppRuntime, _ copies: [SocketCopy], _ owner: ConnectionWatch) {
        self.app = app
        self.owner = owner
        ports = copies.prefix(Self.most).map { Port($0) }
        for copy in copies.dropFirst(Self.most) { copy.descriptor.close() }
    }

    /// Whether all sockets have been closed.
    var isEmpty: Bool { ports.isEmpty }

    /// The addresses at which the sockets listen, as text.
    var addresses: [String] { ports.map(\.copy.facts.local).sorted() }

    /// The sockets' descriptors, and their name in torpor-keeper.
    var held: (name: String, descriptors: [Int32]) {
        (DescriptorName.ports(app.name), ports.map(\.copy.descriptor.raw))
    }

    /// Watches the sockets, so that a connection launches the app. Retries an event that could not launch the app
    /// before.
    func watch() {
        for port in ports where port.source == nil { watch(port) }
        guard let event = heldBack else { return }
        heldBack = nil
        send(event)
    }

    private func watch(_ port: Port) {
        guard isOpen(port) else { return remove(port) }
        // Edge-triggered: while a connection waits for the app's launch, epoll reports it only once.
        let events: IOEvents = [.readable, .peerClosed, .edgeTriggered]
        port.source = try? loop.watch(port.copy.descriptor.raw, events) {
            [weak self, weak port] events in
            guard let self, let port else { return }
            guard isOpen(port) else { return remove(port) }
            arrived(at: port, events)
        }
    }

    /// Whether the socket still listens. It does not if the app called shutdown(2), which affects all copies of the
    /// socket.
    private func isOpen(_ port: Port) -> Bool {
        Descriptor.readiness(port.copy.descriptor.raw).isDisjoint(with: ListeningSocket.shutDown)
    }

    private func remove(_ port: Port) {
        close(port)
        ports.removeAll { $0 === port }
        if ports.isEmpty { loop.later { [owner, app] in owner.touched(app) } }
    }

    private func close(_ port: Port) {
        port.source?.cancel()
        port.copy.descriptor.close()
    }

    private func arrived(at port: Port, _ events: IOEvents) {
        guard let wake = ConnectionWish(app.specification).incoming.wake() else { return }
        let facts = port.copy.facts
        send(WakeEvent(.connection, facts.name, facts.text(events), wake: wake, at: now))
    }

    private func send(_ event: WakeEvent) {
        // `happened` throws only if an event's message does not fit into the mailbox, and this event has no message.
        guard let outcome = try? wakes.happened(event, for: app) else { return }
        if wakes.isTriedAgain(outcome, app) { heldBack = event }
    }

    /// Closes the sockets, and the copies in torpor-keeper.
    func close() {
        for port in ports { close(port) }
        ports = []
        host.release(DescriptorName.ports(app.name))
    }
}

extension DescriptorName {
    /// The name under which torpor-keeper holds the ports of an ended app. The name contains a colon, which systemd
    /// refuses in names of descriptors, so that it does not store the sockets.
    package static func ports(_ app: String) -> String { "ports:\(app)" }
}
