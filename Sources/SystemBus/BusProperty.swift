// SPDX-License-Identifier: Apache-2.0

package import EventLoop
import Linux

/// Follows a property of a service on the system bus.
///
/// Nothing blocks and nothing is required: without a bus or service there is no value, and either may come and go at
/// any time. Signals of other senders are ignored.
package final class BusProperty<Value: Equatable> {
    /// The location of the property.
    package struct Place {
        let name: String
        let path: String
        let interface: String

        package init(name: String, path: String, interface: String) {
            (self.name, self.path, self.interface) = (name, path, interface)
        }
    }

    /// The value; nil: unknown.
    package private(set) var value: Value?
    /// Whether a service has answered, or is known to be missing.
    package private(set) var isKnown = false
    /// Called when ``value`` or ``isKnown`` has changed.
    package var onChange: (() -> Void)?

    private let loop: EventLoop
    private let address: String
    private let property: String
    private let places: [Place]
    private let read: (BusMessage) -> Value?
    /// How long the last value stays valid after the service is gone, as it may only be restarting.
    private let keeps: Duration
    private var keepTimer: TimerSource?
    private var connection: BusConnection?
    private var timer: TimerSource?
    private var delay = Duration.milliseconds(100)
    private var slots: [BusSlot?] = []
    /// Unique names of the services that are present, by index of the place.
    private var owners: [Int: String] = [:]
    /// The indices of places for which the bus has not reported yet whether a service is present.
    private var unheard: Set<Int> = []
    private var question: BusSlot?

    private static var bus: String { "org.freedesktop.DBus" }
    private static var patience: Duration { .seconds(2) }
    private static var longestDelay: Duration { .seconds(30) }

    /// Starts to follow the property.
    ///
    /// - Parameters:
    ///   - address: a D-Bus address; nil: the system bus.
    ///   - places: possible locations; the first that is present counts.
    ///   - keeps: how long the last value stays valid after the service is gone.
    ///   - read: decodes the value of an answer.
    package init(
        _ loop: EventLoop,
        address: String? = nil,
        _ property: String,
        of places: [Place],
        keeps: Duration = .zero,
        _ read: @escaping (BusMessage) -> Value?
    ) {
        self.loop = loop
        self.property = property
        self.places = places
        self.read = read
        self.keeps = keeps
        self.address =
            address ?? ThisProcess.environment("DBUS_SYSTEM_BUS_ADDRESS") ?? "unix:path=/run/dbus/system_bus_socket"
        timer = try? loop.timer { [weak self] in
            self?.timer?.disarm()
            self?.timeHasCome()
        }
        connect()
    }

    private func timeHasCome() {
        // There is no bus, so do not wait any longer.
        if connection == nil { connect() } else { publish(nil) }
    }

    private func connect() {
        do throws(BusError) {
            let made = try BusConnection(loop, address: address)
            made.onLost = { [weak self] _ in self?.lost() }
            connection = made
            unheard = Set(places.indices)
            for index in places.indices { follow(index, made) }
            // The connection waits for its bus. If the bus is not even installed, do not wait for an answer.
            if !made.isReady, !isBusThere { return publish(nil) }
            if !isKnown { timer?.arm(after: Self.patience) }
        } catch {
            lost()
        }
    }

    /// Whether a bus may exist. Not every bus has a path in the file system that could be checked.
    private var isBusThere: Bool {
        let prefix = "unix:path="
        guard address.hasPrefix(prefix) else { return true }
        let path = address.dropFirst(prefix.count).prefix { $0 != "," && $0 != ";" }
        return path.contains("%") || File.exists(String(path))
    }

    private func lost() {
        connection = nil
        slots = []
        question = nil
        owners = [:]
        publish(nil)
        timer?.arm(after: delay)
        delay = min(delay * 2, Self.longestDelay)
    }

    private func follow(_ index: Int, _ connection: BusConnection) {
        let place = places[index]
        let rules = [
            "type='signal',sender='\(Self.bus)',path='/org/freedesktop/DBus',interface='\(Self.bus)',"
                + "member='NameOwnerChanged',arg0='\(place.name)'",
            "type='signal',sender='\(place.name)',path='\(place.path)',"
                + "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='\(place.interface)'",
        ]
        slots.append(
            connection.subscribe(rules[0]) { [weak self] message in
                guard message.sender == Self.bus, message.text() != nil, message.text() != nil else { return }
                self?.appeared(index, message.text())
            }
        )
        slots.append(
            connection.subscribe(rules[1]) { [weak self] message in
                guard let self, let owner = self.owners[index], message.sender == owner else { return }
                if message.change(of: self.property).isNamed { self.ask() }
            }
        )
        slots.append(
            connection.call(Self.bus, "/org/freedesktop/DBus", Self.bus, "GetNameOwner", [.text(place.name)]) {
                [weak self] answer in
                self?.appeared(index, (try? answer.get())?.text())
            }
        )
    }

    private func appeared(_ index: Int, _ owner: String?) {
        let owner = owner.flatMap { $0.isEmpty ? nil : $0 }
        let isNew = unheard.remove(index) != nil
        guard owner != owners[index] || isNew else { return }
        owners[index] = owner
        ask()
    }

    /// Asks the first service that is present.
    private func ask() {
        guard let connection, let index = owners.keys.min() else {
            question = nil
            if unheard.isEmpty { publish(nil) }
            return
        }
        delay = .milliseconds(100)
        let place = places[index]
        question = connection.get(place.name, place.path, place.interface, property) { [weak self] answer in
            guard let self else { return }
            self.publish((try? answer.get()).flatMap(self.read))
        }
    }

    private func publish(_ value: Value?) {
        // Do not restart the timer if the loss of the bus is reported again.
        if value == nil, keepTimer != nil { return }
        keepTimer?.cancel()
        keepTimer = nil
        if value == nil, self.value != nil, keeps > .zero,
            let timer = try? loop.timer({ [weak self] in self?.forget() })
        {
            timer.arm(after: keeps)
            keepTimer = timer
            return
        }
        take(value)
    }

    private func forget() {
        keepTimer?.cancel()
        keepTimer = nil
        take(nil)
    }

    private func take(_ value: Value?) {
        guard value != self.value || !isKnown else { return }
        if !isKnown, connection != nil { timer?.disarm() }
        (self.value, isKnown) = (value, true)
        onChange?()
    }
}
