// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import Linux
import SystemBus

/// Whether the machine saves power: the profile that power-profiles-daemon, or what stands in for it, has in force
/// (`ActiveProfile` is `power-saver`).
///
/// As with ``LoginManager`` nothing here waits, and nothing is needed: where there is no bus or no such service, nobody
/// says, and either may come and go at any time.
public final class PowerProfiles {
    /// Whether the machine saves power; nil: nobody says.
    public private(set) var savesPower: Bool?
    /// ``savesPower`` is otherwise than before.
    public var onChange: (() -> Void)?

    /// Where the service is found: its name since version 0.20, and the one before.
    private struct Service {
        let name: String
        let path: String
    }
    private static let services = [
        Service(name: "org.freedesktop.UPower.PowerProfiles", path: "/org/freedesktop/UPower/PowerProfiles"),
        Service(name: "net.hadess.PowerProfiles", path: "/net/hadess/PowerProfiles"),
    ]

    private let loop: EventLoop
    private let address: String
    private var connection: BusConnection?
    private var timer: TimerSource?
    private var delay = PowerProfiles.firstDelay
    private var slots: [BusSlot?] = []
    /// Unique names of those that answer, by service: nobody else is listened to.
    private var owners: [Int: String] = [:]
    private var question: BusSlot?

    private static let bus = "org.freedesktop.DBus"
    private static let firstDelay = Duration.milliseconds(100)
    private static let longestDelay = Duration.seconds(30)

    /// Begins to follow.
    ///
    /// - Parameter address: a D-Bus address; the system's bus where nothing is said.
    public init(_ loop: EventLoop, address: String? = nil) {
        self.loop = loop
        self.address =
            address ?? ThisProcess.environment("DBUS_SYSTEM_BUS_ADDRESS") ?? "unix:path=/run/dbus/system_bus_socket"
        timer = try? loop.timer { [weak self] in
            self?.timer?.disarm()
            self?.connect()
        }
        connect()
    }

    private func connect() {
        do throws(BusError) {
            let made = try BusConnection(loop, address: address)
            made.onLost = { [weak self] _ in self?.lost() }
            connection = made
            for index in Self.services.indices { follow(index, made) }
        } catch {
            lost()
        }
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
        let service = Self.services[index]
        let rules = [
            "type='signal',sender='\(Self.bus)',path='/org/freedesktop/DBus',interface='\(Self.bus)',"
                + "member='NameOwnerChanged',arg0='\(service.name)'",
            "type='signal',sender='\(service.name)',path='\(service.path)',"
                + "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='\(service.name)'",
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
                if message.change(of: "ActiveProfile").isNamed { self.ask() }
            }
        )
        slots.append(
            connection.call(Self.bus, "/org/freedesktop/DBus", Self.bus, "GetNameOwner", [.text(service.name)]) {
                [weak self] answer in
                self?.appeared(index, (try? answer.get())?.text())
            }
        )
    }

    private func appeared(_ index: Int, _ owner: String?) {
        let owner = owner.flatMap { $0.isEmpty ? nil : $0 }
        guard owner != owners[index] else { return }
        owners[index] = owner
        ask()
    }

    /// Asks the first that is there.
    private func ask() {
        guard let connection, let index = owners.keys.min() else {
            question = nil
            return publish(nil)
        }
        delay = Self.firstDelay
        let service = Self.services[index]
        question = connection.get(service.name, service.path, service.name, "ActiveProfile") { [weak self] answer in
            let profile = (try? answer.get())?.variant("s") { $0.text() }
            self?.publish(profile.map { $0 == "power-saver" })
        }
    }

    private func publish(_ value: Bool?) {
        guard value != savesPower else { return }
        savesPower = value
        onChange?()
    }
}
