// SPDX-License-Identifier: Apache-2.0

package import EventLoop
import Linux
import SystemBus

/// Follows Bluetooth devices through BlueZ (bluetoothd(8), org.bluez.Device(5), org.bluez.GattCharacteristic(5)):
/// which are connected, the values of their characteristics, and requests of remote devices to GATT services of local
/// programs.
///
/// Nothing blocks, and BlueZ is optional: whenever the bus or BlueZ comes back, the state is read again.
package final class BlueZ {
    /// A device.
    package struct Device: Hashable, Sendable {
        /// The Bluetooth address of the device, in the form `AA:BB:CC:DD:EE:FF`.
        package var address: String
        /// The name shown to people.
        package var name: String?
        /// The UUIDs of the device's known services.
        package var services: [String] = []
        package var isConnected = false
    }

    /// A characteristic of a device.
    package struct Characteristic: Hashable, Sendable {
        /// The UUID of the characteristic.
        package var identifier: String
        /// The UUID of the service that the characteristic belongs to.
        package var service: String?
        /// The D-Bus path of the device that the characteristic belongs to.
        package var device: String
    }

    /// Called when a device appears, changes or disappears. `isNews` is false for the devices that exist when BlueZ
    /// appears.
    package var onDevice: ((_ path: String, _ before: Device?, _ now: Device?, _ isNews: Bool) -> Void)?
    /// Called with each new value of a characteristic.
    package var onValue: ((_ characteristic: Characteristic, _ device: Device?, _ value: [UInt8]) -> Void)?
    /// Called when BlueZ passes a remote device's request to a local program: the method, such as `ReadValue`, and
    /// the pid.
    package var onRequest: ((_ method: String, _ process: Int32) -> Void)?
    /// Selects the characteristics whose values are wanted; BlueZ is asked to subscribe to them.
    package var wants: ((Characteristic, Device) -> Bool)?

    /// The known devices, by D-Bus path.
    package private(set) var devices: [String: Device] = [:]

    private let loop: EventLoop
    private let service: BusService
    private let seesRequests: Bool
    private var characteristics: [String: Characteristic] = [:]
    /// UUIDs of services, by D-Bus path.
    private var services: [String: String] = [:]
    private var subscriptions: [String: BusSlot?] = [:]
    /// Pending calls that end subscriptions to characteristics, by the characteristic's D-Bus path.
    private var leaving: [String: BusSlot?] = [:]
    private var slots: [BusSlot?] = []
    private var monitor: BusMonitor?
    /// Pids by unique bus name; a bus never reuses these names.
    private var processes: [String: Int32] = [:]
    private var questions: [String: BusSlot?] = [:]
    private var isKnown = false

    static let name = "org.bluez"
    static let device = "org.bluez.Device1"
    static let gattService = "org.bluez.GattService1"
    static let gattCharacteristic = "org.bluez.GattCharacteristic1"
    private static let objects = "org.freedesktop.DBus.ObjectManager"
    private static let bus = "org.freedesktop.DBus"
    /// Methods that BlueZ calls on GATT applications (org.bluez.GattCharacteristic(5)).
    private static let requests: Set = [
        "ReadValue", "WriteValue", "AcquireWrite", "AcquireNotify", "StartNotify", "StopNotify", "Confirm",
    ]

    /// Starts to follow BlueZ.
    ///
    /// - Parameters:
    ///   - seesRequests: whether to watch BlueZ's requests to local programs, which requires a monitor on the bus.
    ///   - address: a D-Bus address; nil for the system bus.
    package init(_ loop: EventLoop, seesRequests: Bool, address: String? = nil) {
        self.loop = loop
        self.seesRequests = seesRequests
        service = BusService(loop, Self.name, address: address)
        service.onAppear = { [weak self] in self?.appeared($0) }
        service.onDisappear = { [weak self] in self?.disappeared() }
    }

    // MARK: Coming and going

    private func appeared(_ connection: BusConnection) {
        slots = [
            subscribe(connection, "path='/',interface='\(Self.objects)',member='InterfacesAdded'") {
                [weak self] values in
                guard values.count == 2, let path = values[0].text, let found = values[1].dictionary else { return }
                self?.added(path, found)
            },
            subscribe(connection, "path='/',interface='\(Self.objects)',member='InterfacesRemoved'") {
                [weak self] values in
                guard values.count == 2, let path = values[0].text else { return }
                self?.removed(path, values[1].list?.compactMap(\.text) ?? [])
            },
        ]
        for interface in [Self.device, Self.gattCharacteristic] {
            let rule =
                "path_namespace='/org/bluez',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',"
                + "arg0='\(interface)'"
            let slot = connection.subscribe("type='signal',sender='\(Self.name)',\(rule)") { [weak self] message in
                guard let self, self.service.isSender(of: message), let path = message.object else { return }
                let values = message.values()
                guard values.count == 3, let changes = values[1].dictionary else { return }
                self.changed(path, interface, changes)
            }
            slots.append(slot)
        }
        let slot = connection.call(Self.name, "/", Self.objects, "GetManagedObjects") { [weak self] answer in
            guard let self else { return }
            let all = (try? answer.get())?.values().first?.dictionary ?? [:]
            // Sorted by path, devices come before their services, and services before their characteristics.
            for path in all.keys.sorted() { self.added(path, all[path]?.dictionary ?? [:]) }
            self.isKnown = true
        }
        slots.append(slot)
        if seesRequests { look() }
    }

    private func subscribe(
        _ connection: BusConnection,
        _ rule: String,
        _ handler: @escaping ([BusValue]) -> Void
    ) -> BusSlot? {
        connection.subscribe("type='signal',sender='\(Self.name)',\(rule)") { [weak self] message in
            guard let self, self.service.isSender(of: message) else { return }
            handler(message.values())
        }
    }

    private func disappeared() {
        slots = []
        subscriptions = [:]
        questions = [:]
        processes = [:]
        monitor = nil
        characteristics = [:]
        services = [:]
        let gone = devices
        devices = [:]
        for (path, device) in gone.sorted(by: { $0.key < $1.key }) { onDevice?(path, device, nil, true) }
        isKnown = false
    }

    // MARK: Objects

    private func added(_ path: String, _ interfaces: [String: BusValue]) {
        if let properties = interfaces[Self.device]?.dictionary {
            var device = Device(address: properties["Address"]?.text ?? "")
            device.take(properties)
            set(path, device)
        }
        if let identifier = interfaces[Self.gattService]?.dictionary?["UUID"]?.text {
            services[path] = identifier.lowercased()
        }
        if let properties = interfaces[Self.gattCharacteristic]?.dictionary, let identifier = properties["UUID"]?.text {
            let parent = properties["Service"]?.text ?? ""
            let owner = devices.keys.first { path.hasPrefix($0 + "/") } ?? ""
            characteristics[path] = Characteristic(
                identifier: identifier.lowercased(),
                service: services[parent],
                device: owner
            )
            subscribe(path)
        }
    }

    private func removed(_ path: String, _ interfaces: [String]) {
        if interfaces.contains(Self.device), let device = devices.removeValue(forKey: path) {
            onDevice?(path, device, nil, isKnown)
        }
        services[path] = interfaces.contains(Self.gattService) ? nil : services[path]
        if interfaces.contains(Self.gattCharacteristic) {
            characteristics[path] = nil
            subscriptions[path] = nil
        }
    }

    private func changed(_ path: String, _ interface: String, _ changes: [String: BusValue]) {
        if interface == Self.device, var device = devices[path] {
            device.take(changes)
            set(path, device)
        } else if interface == Self.gattCharacteristic, let value = changes["Value"]?.bytes,
            let characteristic = characteristics[path]
        {
            onValue?(characteristic, devices[characteristic.device], value)
        }
    }

    private func set(_ path: String, _ device: Device) {
        let before = devices[path]
        guard before != device else { return }
        devices[path] = device
        onDevice?(path, before, device, isKnown)
        guard device.isConnected != before?.isConnected ?? false else { return }
        for (place, characteristic) in characteristics where characteristic.device == path {
            if device.isConnected { subscribe(place) } else { subscriptions[place] = nil }
        }
    }

    /// Subscribes to a characteristic, so that its values arrive even if no running app has subscribed to it.
    private func subscribe(_ path: String) {
        guard let characteristic = characteristics[path], let device = devices[characteristic.device],
            device.isConnected, subscriptions[path] == nil, wants?(characteristic, device) ?? false,
            let connection = service.connection
        else { return }
        // Ignore errors: some devices cannot notify, and then values come only while another client reads them.
        subscriptions[path] = connection.call(Self.name, path, Self.gattCharacteristic, "StartNotify") { _ in }
    }

    /// Must be called when the result of ``wants`` changes.
    package func wantsChanged() {
        for (path, characteristic) in characteristics {
            if let device = devices[characteristic.device], wants?(characteristic, device) ?? false {
                subscribe(path)
            } else if subscriptions.removeValue(forKey: path) != nil, let connection = service.connection {
                leaving[path] = connection.call(Self.name, path, Self.gattCharacteristic, "StopNotify") {
                    [weak self] _ in
                    self?.loop.later { self?.leaving[path] = nil }
                }
            }
        }
    }

    // MARK: Requests

    private func look() {
        let rule = "type='method_call',sender='\(Self.name)',interface="
        monitor = BusMonitor(
            loop,
            address: service.address,
            rules: [rule + "'\(Self.gattCharacteristic)'", rule + "'org.bluez.GattDescriptor1'"]
        ) { [weak self] message in self?.saw(message) }
    }

    private func saw(_ message: BusMessage) {
        guard service.isSender(of: message), let method = message.member, Self.requests.contains(method),
            let name = message.destination
        else { return }
        if let process = processes[name] {
            onRequest?(method, process)
            return
        }
        guard questions[name] == nil, let connection = service.connection else { return }
        questions[name] = connection.call(
            Self.bus,
            "/org/freedesktop/DBus",
            Self.bus,
            "GetConnectionUnixProcessID",
            [.text(name)]
        ) { [weak self] answer in
            guard let self else { return }
            // Do not release a handle within its own callback: release it in the next turn of the event loop.
            self.loop.later { [weak self] in self?.questions[name] = nil }
            guard case .integer(let number)? = (try? answer.get())?.values().first, number > 0 else { return }
            if self.processes.count >= 256 { self.processes = [:] }
            self.processes[name] = Int32(truncatingIfNeeded: number)
            self.onRequest?(method, Int32(truncatingIfNeeded: number))
        }
    }

    // MARK: For persons

    /// Whether BlueZ is running.
    package var isThere: Bool { service.owner != nil }

    /// Whether requests to local programs can be seen; nil if they are not wanted.
    package var isSeeingRequests: Bool? { seesRequests ? monitor?.isLooking ?? false : nil }

    /// What is missing, as a clause; nil if nothing is missing.
    package var trouble: String? {
        guard service.owner != nil else {
            return service.connection?.isReady == true
                ? "no BlueZ is on the bus" : "the system's bus \(service.address) does not answer"
        }
        return monitor?.trouble.map { "requests of devices to apps are not seen (\($0)): only their connections are" }
    }
}

extension BlueZ.Device {
    /// Updates from properties of `org.bluez.Device1`.
    mutating func take(_ properties: [String: BusValue]) {
        if let value = properties["Address"]?.text { address = value.uppercased() }
        if let value = properties["Alias"]?.text { name = value }
        if let value = properties["UUIDs"]?.list { services = value.compactMap { $0.text?.lowercased() } }
        if let value = properties["Connected"]?.boolean { isConnected = value }
    }
}
