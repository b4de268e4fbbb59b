// SPDX-License-Identifier: Apache-2.0

/// Where the machine's power comes from, by `/sys/class/power_supply`.
///
/// https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-power
public struct Power: Hashable, Sendable {
    /// A source.
    public enum Source: Sendable {
        /// It cannot be told: most servers and virtual machines show no supplies at all.
        case unknown
        /// The mains, whether or not there is a battery.
        case mains
        /// A battery that is being used up.
        case battery
    }

    /// What the machine runs on.
    public var source: Source
    /// The charge of its batteries together, percent; nil without one.
    public var percent: UInt32?

    /// The machine's now. On some laptops the firmware takes milliseconds to answer.
    ///
    /// - Parameter root: what stands before `/sys`.
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
            // A mouse's or headset's says nothing about the machine.
            if value("scope") == "Device" { continue }
            guard value("type") == "Battery" else {
                // Mains, USB in its kinds, Wireless. UPS has a charge of its own, and is mains to the machine.
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
        // Two batteries of different sizes count by what they hold, where both say it.
        if !charges.isEmpty, charges.count >= percents.count {
            let full = charges.reduce(0) { $0 + $1.full }
            percent = UInt32((charges.reduce(0) { $0 + $1.now } * 100 + full / 2) / full)
        } else if !percents.isEmpty {
            percent = UInt32(percents.reduce(0, +) / UInt64(percents.count))
        }
    }
}
