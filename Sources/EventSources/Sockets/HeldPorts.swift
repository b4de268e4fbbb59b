// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// The listening sockets of an app that ended while suspended. torpord keeps them open until the app is launched
/// again: no client is refused, and the first connection launches the app.
///
/// The sockets are copies of the app's, so connections from before its end are still queued. The keeper holds them
/// too, for the next torpord. It does not pass them on to the service manager, because that would release them at an
/// unknown time, and the app could not bind its port until then.
final class HeldPorts: EventRoom {
    let app: AppRuntime
    private unowned let owner: ConnectionWatch
    var wakes: Wakes { owner.wakes }
    private var ports: [Port] = []
    /// The event of a connection that could not launch the app yet, for a retry.
    private var heldBack: WakeEvent?

    /// The most sockets per app: an app that has ended must not use up the file descriptors of torpord and the keeper.
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

    /// Whether no socket is left.
    var isEmpty: Bool { ports.isEmpty }

    /// The addresses at which the sockets listen, for users.
    var addresses: [String] { ports.map(\.copy.facts.local).sorted() }

    /// The descriptors of the sockets, under their name in the keeper.
    var held: (name: String, descriptors: [Int32]) {
        (DescriptorName.ports(app.name), ports.map(\.copy.descriptor.raw))
    }

    /// Launches the app at the first connection, and retries an event that could not launch it before.
    func watch() {
        for port in ports where port.source == nil { watch(port) }
        guard let event = heldBack else { return }
        heldBack = nil
        send(event)
    }

    private func watch(_ port: Port) {
        guard isOpen(port) else { return remove(port) }
        // Edge-triggered, so that a connection that waits for the launch is reported only once.
        let events: IOEvents = [.readable, .peerClosed, .edgeTriggered]
        port.source = try? loop.watch(port.copy.descriptor.raw, events) {
            [weak self, weak port] events in
            guard let self, let port else { return }
            guard isOpen(port) else { return remove(port) }
            arrived(at: port, events)
        }
    }

    /// Whether the socket still listens. It does not if the app called shutdown(2), which affects all copies.
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
        // Only a message can be refused, and this event has none.
        guard let outcome = try? wakes.happened(event, for: app) else { return }
        if wakes.isTriedAgain(outcome, app) { heldBack = event }
    }

    /// Closes the sockets, here and in the keeper.
    func close() {
        for port in ports { close(port) }
        ports = []
        host.release(DescriptorName.ports(app.name))
    }
}

extension DescriptorName {
    /// The name of an ended app's ports in the keeper. Service managers refuse the colon, so they do not store them.
    package static func ports(_ app: String) -> String { "ports:\(app)" }
}
