// SPDX-License-Identifier: Apache-2.0

package import EventLoop
import Linux

/// Follows a service on a message bus by its well-known name: which client owns it now, also after the bus was lost.
/// Nothing blocks, and no service is started.
package final class BusService {
    /// A connection to the bus was begun: subscribe on it.
    package var onConnect: ((BusConnection) -> Void)?
    /// The service is present, with a new unique name: query its state again.
    package var onAppear: ((BusConnection) -> Void)?
    /// The service or the bus is gone.
    package var onDisappear: (() -> Void)?

    /// The unique name of the service's owner; messages of other senders are ignored.
    package private(set) var owner: String?
    /// The connection, if there is one.
    package private(set) var connection: BusConnection?
    /// Why the bus does not answer; nil if it does.
    package private(set) var trouble: String?
    /// A D-Bus address.
    package let address: String

    private let loop: EventLoop
    private let name: String
    private var slots: [BusSlot?] = []
    private var retry: TimerSource?
    private var delay = BusService.firstDelay
    private var connectedAt = Duration.zero

    private static let bus = "org.freedesktop.DBus"
    private static let firstDelay = Duration.milliseconds(100)
    private static let longestDelay = Duration.seconds(30)

    /// Starts to follow.
    ///
    /// - Parameter address: a D-Bus address; nil: the system bus.
    package init(_ loop: EventLoop, _ name: String, address: String? = nil) {
        self.loop = loop
        self.name = name
        self.address = address ?? Self.systemBus
        retry = try? loop.timer { [weak self] in self?.connect() }
        // The creator has not set its handlers yet.
        loop.later { [weak self] in self?.connect() }
    }

    deinit { retry?.cancel() }

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
            trouble = nil
            ask(made)
            // After the question for the owner, which is answered first.
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
                self?.isOwned(by: (try? answer.get())?.text())
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
        guard let name, let connection else { return }
        owner = name
        onAppear?(connection)
    }

    private func lost(_ error: BusError) {
        trouble = error.description
        isOwned(by: nil)
        connection = nil
        slots = []
        if loop.now - connectedAt > Self.longestDelay { delay = Self.firstDelay }
        retry?.arm(after: delay)
        delay = min(delay * 2, Self.longestDelay)
    }
}
