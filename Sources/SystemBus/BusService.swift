// SPDX-License-Identifier: Apache-2.0

package import EventLoop
import Linux

/// Follows a service on a message bus by its well-known name: which client owns the name now, even if the bus is lost
/// and comes back. Nothing blocks, and no service is started.
package final class BusService {
    /// Called when a new connection to the bus was made, so that the handler can subscribe on it.
    package var onConnect: ((BusConnection) -> Void)?
    /// Called when the service has appeared under a new unique name: its state must be read again.
    package var onAppear: ((BusConnection) -> Void)?
    /// Called when the service or the bus is gone.
    package var onDisappear: (() -> Void)?

    /// Called when the connection to the bus was lost, and when the bus has reported the owner of the name, or that
    /// there is none.
    package var onChange: (() -> Void)?
    /// Whether the bus has reported the owner of the name, or that there is none.
    package private(set) var isAnswered = false

    /// The unique name of the service's owner; messages of other senders are ignored.
    package private(set) var owner: String?
    /// The connection, if there is one.
    package private(set) var connection: BusConnection?
    /// Why the bus does not answer; nil if it does.
    package private(set) var trouble: String?
    /// The D-Bus address of the bus.
    package let address: String

    private let loop: EventLoop
    /// The well-known name.
    let name: String
    private var slots: [BusSlot?] = []
    private var retry: TimerSource?
    private var delay = BusService.firstDelay
    private var connectedAt = Duration.zero
    /// Fires when a connection has waited too long for its bus, so that another one must be made; nil if connections
    /// may wait without limit.
    private var renewal: TimerSource?
    private var patience = BusService.firstPatience

    private static let bus = "org.freedesktop.DBus"
    private static let firstDelay = Duration.milliseconds(100)
    private static let longestDelay = Duration.seconds(30)
    private static let firstPatience = Duration.seconds(1)
    private static let longestPatience = Duration.seconds(10)

    /// Starts to follow the service.
    ///
    /// - Parameters:
    ///   - address: a D-Bus address; nil: the system bus.
    ///   - renews: whether to make another connection if there is no bus for some seconds. A connection waits for the
    ///     socket of its bus by itself. But it does not notice a socket whose folder was replaced, or a socket on which
    ///     the bus begins to listen only after the socket has appeared.
    package init(_ loop: EventLoop, _ name: String, address: String? = nil, renews: Bool = false) {
        self.loop = loop
        self.name = name
        self.address = address ?? Self.systemBus
        retry = try? loop.timer { [weak self] in self?.connect() }
        if renews { renewal = try? loop.timer { [weak self] in self?.renew() } }
        // Connect later, since the creator of this object has not set its handlers yet.
        loop.later { [weak self] in self?.connect() }
    }

    deinit {
        retry?.cancel()
        renewal?.cancel()
    }

    /// The address of the system bus.
    package static var systemBus: String {
        ThisProcess.environment("DBUS_SYSTEM_BUS_ADDRESS") ?? "unix:path=/run/dbus/system_bus_socket"
    }

    /// Whether the service itself sent a message.
    package func isSender(of message: BusMessage) -> Bool { owner != nil && message.sender == owner }

    private func connect() {
        retry?.disarm()
        do throws(BusError) {
            let made = try BusConnection(loop, address: address)
            made.onLost = { [weak self] error in self?.lost(error) }
            connection = made
            connectedAt = loop.now
            if renewal == nil { trouble = nil }
            renewal?.arm(after: patience)
            ask(made)
            // Call this after the request for the owner, so that the owner is known before any other reply arrives.
            onConnect?(made)
        } catch {
            lost(error)
        }
    }

    private func ask(_ connection: BusConnection) {
        slots = [
            connection.subscribe(
                "type='signal',sender='\(Self.bus)',path='/org/freedesktop/DBus',interface='\(Self.bus)',"
                    + "member='NameOwnerChanged',arg0='\(name)'"
            ) { [weak self] message in
                guard message.sender == Self.bus, message.text() != nil, message.text() != nil else { return }
                self?.isOwned(by: message.text())
            },
            connection.call(Self.bus, "/org/freedesktop/DBus", Self.bus, "GetNameOwner", [.text(name)]) {
                [weak self] answer in
                guard let self else { return }
                // If the name has no owner, the bus replies with a D-Bus error, which has a name. An error without a
                // name means that the bus did not reply.
                if case .failure(let error) = answer, error.name == nil { return }
                self.renewal?.disarm()
                (self.trouble, self.patience, self.isAnswered) = (nil, Self.firstPatience, true)
                let before = self.owner
                self.isOwned(by: (try? answer.get())?.text())
                if before == nil, self.owner == nil { self.onChange?() }
            },
        ]
    }

    private func isOwned(by name: String?) {
        let name = name.flatMap { $0.isEmpty ? nil : $0 }
        guard name != owner else { return }
        if owner != nil {
            owner = nil
            onDisappear?()
        }
        defer { onChange?() }
        guard let name, let connection else { return }
        owner = name
        onAppear?(connection)
    }

    /// Called when the bus has not answered in time.
    private func renew() {
        renewal?.disarm()
        guard !isAnswered else { return }
        patience = min(patience * 2, Self.longestPatience)
        delay = Self.firstDelay
        lost(BusError("no bus answers at \(address)"))
    }

    private func lost(_ error: BusError) {
        trouble = error.description
        isAnswered = false
        renewal?.disarm()
        isOwned(by: nil)
        connection = nil
        slots = []
        onChange?()
        if loop.now - connectedAt > Self.longestDelay { delay = Self.firstDelay }
        retry?.arm(after: delay)
        delay = min(delay * 2, Self.longestDelay)
    }
}
