// SPDX-License-Identifier: Apache-2.0

import CSystemd
import Linux
import WireText

/// A device in udev's database.
public struct Device: Hashable, Sendable {
    /// The device's folder below `/sys`, unique while the device exists.
    public let path: String
    /// The last part of the device's path, such as `ttyUSB0`.
    public let name: String
    /// The kernel's subsystem, such as `tty`, `block` or `usb`.
    public let subsystem: String
    /// The type within the subsystem, such as `disk`; nil if it has none.
    public let type: String?
    /// The path of the device node below `/dev`; nil if there is none.
    public let node: String?
    /// Symlinks to the device node.
    public let links: [String]
    /// Properties set by udev and its rules.
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

    /// A description for people: vendor and model, if known.
    public var model: String? {
        if let name = properties["NAME"] { return String(name.filter { $0 != "\"" }) }
        let model = properties["ID_MODEL_FROM_DATABASE"] ?? properties["ID_MODEL"]?.spaced
        let vendor = properties["ID_VENDOR_FROM_DATABASE"] ?? properties["ID_VENDOR"]?.spaced
        let words = [vendor, model].compactMap { $0 }
        return words.isEmpty ? nil : words.joined(separator: " ")
    }

    /// All present devices of these subsystems; nil for any. Reads a few files per device: do not call it on the
    /// loop's thread.
    public static func all(of subsystems: Set<String>?) -> [Device] {
        var enumerator: OpaquePointer?
        guard sd_device_enumerator_new(&enumerator) >= 0 else { return [] }
        defer { sd_device_enumerator_unref(enumerator) }
        for subsystem in subsystems ?? [] { sd_device_enumerator_add_match_subsystem(enumerator, subsystem, 1) }
        // Without udev, no device is marked as initialised, and the enumerator would skip all.
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
    /// The text with spaces in place of `_`, because udev replaces spaces by `_`.
    fileprivate var spaced: String { String(map { $0 == "_" ? " " : $0 }) }
}
