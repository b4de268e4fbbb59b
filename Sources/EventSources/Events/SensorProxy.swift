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
    private let question: BusQuestion

    private static let name = "net.hadess.SensorProxy"
    private static let path = "/net/hadess/SensorProxy"
    private static let sides: Set<String> = ["normal", "bottom-up", "left-up", "right-up"]

    /// - Parameter address: a D-Bus address; nil for the system bus.
    init(_ loop: EventLoop, _ sensors: Set<Sensor>, address: String? = nil) {
        self.sensors = sensors
        let properties = "org.freedesktop.DBus.Properties"
        service = BusService(loop, Self.name, address: address)
        question = BusQuestion(service, Self.path, properties, "GetAll", [.text(Self.name)])
        question.onAnswer = { [weak self] in self?.found($0?.dictionary ?? [:]) }
        service.onConnect = { [weak self] _ in
            guard let self else { return }
            let rule = "path='\(Self.path)',interface='\(properties)',member='PropertiesChanged',arg0='\(Self.name)'"
            self.slots = [self.service.subscribe(rule) { [weak self] _ in self?.question.ask() }]
        }
        service.onAppear = { [weak self] _ in self?.claim() }
        service.onDisappear = { [weak self] in self?.question.forget() }
    }

    private func claim() {
        for sensor in Sensor.allCases where sensors.contains(sensor) {
            slots.append(service.call(Self.path, Self.name, "Claim\(sensor.rawValue)") { _ in })
        }
        question.ask()
    }

    private func found(_ values: [String: BusValue]) {
        // If the orientation is undefined, keep the previous one.
        if sensors.contains(.accelerometer), let side = values["AccelerometerOrientation"]?.text,
            Self.sides.contains(side)
        {
            onOrientation(side)
        }
        if sensors.contains(.proximity), let isNear = values["ProximityNear"]?.boolean { onProximity(isNear) }
    }
}
