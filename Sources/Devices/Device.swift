// SPDX-License-Identifier: Apache-2.0

import CSystemd
import Linux
import WireText

/// A device as udev knows it.
public struct Device: Hashable, Sendable {
    /// Its folder below `/sys`, which names it as long as it is there.
    public let path: String
    /// The last part of that: `ttyUSB0`.
    public let name: String
    /// Such as `tty`, `block`, `usb`.
    public let subsystem: String
    /// The type within the subsystem, such as `disk`; nil where it has none.
    public let type: String?
    /// Its node below `/dev`; nil where it has none.
    public let node: String?
    /// Links to the node.
    public let links: [String]
    /// What udev and its rules say of it.
    public let properties: [String: String]

    init?(_ device: OpaquePointer) {
        func text(_ read: (OpaquePointer, UnsafeMutablePointer<UnsafePointer<CChar>?>) -> Int32) -> String? {
            var value: UnsafePointer<CChar>?
            guard read(device, &value) >= 0, let value else { return nil }
            return String(terminatedWire: value)
        }
        guard let path = text(sd_device_get_syspath), let name = text(sd_device_get_sysname) else { return nil }
        self.path = path
        self.name = name
        subsystem = text(sd_device_get_subsystem) ?? ""
        type = text(sd_device_get_devtype)
        node = text(sd_device_get_devname)
        var links: [String] = []
        var link = sd_device_get_devlink_first(device)
        while let found = link {
            links.append(String(terminatedWire: found))
            link = sd_device_get_devlink_next(device)
        }
        self.links = links.sorted()
        var properties: [String: String] = [:]
        var value: UnsafePointer<CChar>?
        var key = sd_device_get_property_first(device, &value)
        while let found = key {
            if let value { properties[String(terminatedWire: found)] = String(terminatedWire: value) }
            value = nil
            key = sd_device_get_property_next(device, &value)
        }
        self.properties = properties
    }

    /// What it is, for people: its maker and model, where they are known.
    public var model: String? {
        if let name = properties["NAME"] { return String(name.filter { $0 != "\"" }) }
        let model = properties["ID_MODEL_FROM_DATABASE"] ?? properties["ID_MODEL"]?.spaced
        let vendor = properties["ID_VENDOR_FROM_DATABASE"] ?? properties["ID_VENDOR"]?.spaced
        let words = [vendor, model].compactMap { $0 }
        return words.isEmpty ? nil : words.joined(separator: " ")
    }

    /// All devices that are there, of these subsystems or, with nil, of any. Reads a few files for each: not for the loop's
    /// thread.
    public static func all(of subsystems: Set<String>?) -> [Device] {
        var enumerator: OpaquePointer?
        guard sd_device_enumerator_new(&enumerator) >= 0 else { return [] }
        defer { sd_device_enumerator_unref(enumerator) }
        for subsystem in subsystems ?? [] { sd_device_enumerator_add_match_subsystem(enumerator, subsystem, 1) }
        // Where no udev runs no device is ever initialised.
        if !File.exists("/run/udev/control") { sd_device_enumerator_allow_uninitialized(enumerator) }
        var devices: [Device] = []
        var next = sd_device_enumerator_get_device_first(enumerator)
        while let device = next {
            if let found = Device(device) { devices.append(found) }
            next = sd_device_enumerator_get_device_next(enumerator)
        }
        return devices
    }
}

extension String {
    /// udev writes blanks as `_`.
    fileprivate var spaced: String { String(map { $0 == "_" ? " " : $0 }) }
}
