// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// The sockets at which an app listened when it was ended in its sleep. They stay open until it is launched again: no client
/// is refused, and the first one has the app launched.
///
/// They are copies, so that what came before the end still waits. The keeper holds them too, for the next torpord, but under
/// a name that it does not pass on to the service manager: that one would let go of them at a time of its own, and until then
/// the app could not bind its port.
final class HeldPorts: EventRoom {
    let app: AppRuntime
    private unowned let owner: ConnectionWatch
    var wakes: Wakes { owner.wakes }
    private var ports: [Port] = []
    /// A connection was to launch the app, and may later.
    private var heldBack: WakeEvent?

    /// So many are kept of one app: what is gone takes no more of the descriptors that torpord and the keeper may have.
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

    /// Nothing listens any more.
    var isEmpty: Bool { ports.isEmpty }

    /// Where they listen, for people.
    var addresses: [String] { ports.map(\.copy.facts.local).sorted() }

    /// What the keeper holds.
    var held: (name: String, descriptors: [Int32]) {
        (DescriptorName.ports(app.name), ports.map(\.copy.descriptor.raw))
    }

    /// Has whatever comes launch the app.
    func watch() {
        for port in ports where port.source == nil { watch(port) }
        guard let event = heldBack else { return }
        heldBack = nil
        send(event)
    }

    private func watch(_ port: Port) {
        guard isOpen(port) else { return remove(port) }
        // While a launch waits, what waits for it is told once.
        let events: IOEvents = [.readable, .peerClosed, .edgeTriggered]
        port.source = try? loop.watch(port.copy.descriptor.raw, events) {
            [weak self, weak port] events in
            guard let self, let port else { return }
            guard isOpen(port) else { return remove(port) }
            arrived(at: port, events)
        }
    }

    /// Whether the app has not shut it down while it ended, for all who have it.
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
        // It has no mail, which alone may be refused.
        guard let outcome = try? wakes.happened(event, for: app) else { return }
        if wakes.isTriedAgain(outcome, app) { heldBack = event }
    }

    /// Closes them, here and in the keeper.
    func close() {
        for port in ports { close(port) }
        ports = []
        host.release(DescriptorName.ports(app.name))
    }
}

extension DescriptorName {
    /// The ports of an app that is gone. A service manager refuses a name with a colon, so they are not parked.
    package static func ports(_ app: String) -> String { "ports:\(app)" }
}
