// SPDX-License-Identifier: Apache-2.0

import EventLoop
import SystemBus

/// Reads the machine's sensors through iio-sensor-proxy on the system bus. iio-sensor-proxy reads a sensor only while
/// a program claims it.
///
/// If the service or the bus ends, the sensors are claimed again when it is back. No call here blocks.
final class SensorProxy {
    enum Sensor: String, CaseIterable {
        case accelerometer = "Accelerometer"
        case proximity = "Proximity"
    }

    /// The sensors that are claimed from iio-sensor-proxy.
    let sensors: Set<Sensor>
    /// Called with the machine's orientation: `normal`, `bottom-up`, `left-up` or `right-up`.
    var onOrientation: (String) -> Void = { _ in }
    /// Called with whether something is near the proximity sensor.
    var onProximity: (Bool) -> Void = { _ in }

    private let service: BusService
    private var slots: [BusSlot?] = []
    private var question: BusSlot?
    /// Whether the sensors changed after the pending request was sent, so that another request must follow.
    private var isUnsure = false

    private static let name = "net.hadess.SensorProxy"
    private static let path = "/net/hadess/SensorProxy"
    private static let sides: Set<String> = ["normal", "bottom-up", "left-up", "right-up"]

    /// - Parameter address: a D-Bus address; nil for the system bus.
    init(_ loop: EventLoop, _ sensors: Set<Sensor>, address: String? = nil) {
        self.sensors = sensors
        service = BusService(loop, Self.name, address: address)
        service.onConnect = { [weak self] in self?.subscribe($0) }
        service.onAppear = { [weak self] in self?.claim($0) }
        service.onDisappear = { [weak self] in self?.forget() }
    }

    private func subscribe(_ connection: BusConnection) {
        let rule =
            "type='signal',sender='\(Self.name)',path='\(Self.path)',interface='org.freedesktop.DBus.Properties',"
            + "member='PropertiesChanged',arg0='\(Self.name)'"
        slots = [
            connection.subscribe(rule) { [weak self] message in
                guard let self, self.service.isSender(of: message) else { return }
                self.ask()
            }
        ]
    }

    private func claim(_ connection: BusConnection) {
        guard let owner = service.owner else { return }
        for sensor in Sensor.allCases where sensors.contains(sensor) {
            slots.append(connection.call(owner, Self.path, Self.name, "Claim\(sensor.rawValue)", []) { _ in })
        }
        ask()
    }

    private func forget() { (question, isUnsure) = (nil, false) }

    private func ask() {
        guard let owner = service.owner, let connection = service.connection else { return }
        guard question == nil else {
            isUnsure = true
            return
        }
        isUnsure = false
        let properties = "org.freedesktop.DBus.Properties"
        question = connection.call(owner, Self.path, properties, "GetAll", [.text(Self.name)]) { [weak self] answer in
            guard let self, self.service.owner == owner else { return }
            self.question = nil
            if self.isUnsure { return self.ask() }
            let values = (try? answer.get())?.values().first?.dictionary ?? [:]
            // While the orientation is undefined, the previous one stays.
            if self.sensors.contains(.accelerometer), let side = values["AccelerometerOrientation"]?.text,
                Self.sides.contains(side)
            {
                self.onOrientation(side)
            }
            if self.sensors.contains(.proximity), let isNear = values["ProximityNear"]?.boolean {
                self.onProximity(isNear)
            }
        }
    }
}
