// SPDX-License-Identifier: Apache-2.0

/// The machine's power source, from `/sys/class/power_supply`.
///
/// https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-power
public struct Power: Hashable, Sendable {
    /// A power source.
    public enum Source: Sendable {
        /// The source is unknown: most servers and virtual machines have no power supply in sysfs.
        case unknown
        /// The machine runs on mains power, with or without a battery.
        case mains
        /// A discharging battery.
        case battery
    }

    /// The current power source.
    public var source: Source
    /// The total charge of the machine's batteries in percent; nil if it has none.
    public var percent: UInt32?

    /// Reads the current state. On some laptops the firmware takes milliseconds to answer.
    ///
    /// - Parameter root: a prefix for paths below `/sys`; empty except in tests.
    public init(root: String = "") {
        let folder = root + "/sys/class/power_supply"
        var isConnected = false
        var isDischarging = false
        var isFed = false
        var charges: [(now: UInt64, full: UInt64)] = []
        var percents: [UInt64] = []
        for name in (try? File.list(folder)) ?? [] {
            func value(_ file: String) -> String? {
                (try? File.readString(folder + "/" + name + "/" + file))?.split(separator: "\n").first.map(String.init)
            }
            func number(_ file: String) -> UInt64? { value(file).flatMap { UInt64($0) } }
            // Skip the battery of a device such as a mouse or headset, which does not supply the machine.
            if value("scope") == "Device" { continue }
            guard value("type") == "Battery" else {
                // The remaining types are Mains, USB variants, Wireless and UPS. A UPS counts as mains power, although
                // it contains a battery.
                if number("online").map({ $0 > 0 }) ?? false { isConnected = true }
                continue
            }
            if number("present") == 0 { continue }
            switch value("status") {
            case "Discharging": isDischarging = true
            case "Charging", "Full", "Not charging": isFed = true
            default: break
            }
            if let capacity = number("capacity") { percents.append(min(capacity, 100)) }
            if let now = number("energy_now"), let full = number("energy_full"), full > 0, full < 1 << 48 {
                charges.append((min(now, full), full))
            }
        }
        source = isConnected ? .mains : isDischarging ? .battery : isFed ? .mains : .unknown
        // Weight the batteries by capacity if all of them report it.
        if !charges.isEmpty, charges.count >= percents.count {
            let full = charges.reduce(0) { $0 + $1.full }
            percent = UInt32((charges.reduce(0) { $0 + $1.now } * 100 + full / 2) / full)
        } else if !percents.isEmpty {
            percent = UInt32(percents.reduce(0, +) / UInt64(percents.count))
        }
    }
}
