// SPDX-License-Identifier: Apache-2.0

/// An entry of `devices`: devices that notify and wake an app when they are plugged in or removed, or when they have
/// data.
public struct DeviceTrigger: Sendable, Hashable {
    /// An event of a device.
    public enum Change: String, Sendable, Hashable, CaseIterable {
        /// The device was plugged in, or existed when the machine started.
        case appear
        /// The device was removed.
        case remove
        /// The device's driver has reported a change.
        case change
        /// The device's node has become readable while the app is suspended.
        case data
    }

    /// The trigger's name, which is part of each event.
    public var name: String
    /// The events that notify the app.
    public var on: [Change] = [.appear]
    /// The device's subsystem in udev, such as `tty`, `block` or `usb`; `nil` for any.
    public var subsystem: String?
    /// The device's type within the subsystem, such as `disk` or `usb_device`; `nil` for any.
    public var type: String?
    /// The absolute path of the device's node or of a symlink to it, or a glob(7) pattern of such paths; `nil` for
    /// any.
    public var node: String?
    /// Names of udev properties that the device must have, each with a pattern that the property's value must match.
    public var properties: [String: String] = [:]
    /// How the device's events wake the app.
    public var wake: WakeManner = .background

    /// Creates a trigger that matches every device until criteria are set.
    public init(name: String) { self.name = name }

    /// Whether the trigger has criteria. Without criteria, it would match every device.
    var isSpecific: Bool { subsystem != nil || node != nil || !properties.isEmpty }
}

extension DeviceTrigger {
    static func read(_ context: Context, _ node: Node, at index: Int) -> DeviceTrigger? {
        guard case .table = node.value else {
            return context.expected("a table such as { subsystem = \"tty\", node = \"/dev/ttyUSB*\" }", node)
        }
        var trigger = DeviceTrigger(name: "")
        Read.table(context, node, keys, into: &trigger)
        guard trigger.isSpecific else {
            context.error("must select devices by subsystem, node or properties", at: node.position)
            return nil
        }
        if trigger.on.isEmpty {
            context.error("on must name at least one of appear, remove, change and data", at: node.position)
            return nil
        }
        if trigger.name.isEmpty { trigger.name = trigger.node ?? trigger.subsystem ?? String(index) }
        return trigger
    }

    static let keys: [Key<DeviceTrigger>] = [
        .value("name", \.name, Read.text),
        .value("on", \.on, Read.choices),
        .optional("subsystem", \.subsystem, Read.text),
        .optional("type", \.type, Read.text),
        .optional("node", \.node, Read.path),
        .value("properties", \.properties) { context, node in
            var properties: [String: String] = [:]
            for member in Read.members(context, node) ?? [] {
                if let value = Read.string(context.at(member.key), member.node) { properties[member.key] = value }
            }
            return properties
        },
        .value("wake", \.wake) { Read.choice($0, $1) },
    ]
}

extension DeviceTrigger: Written {
    var written: String? {
        var parts = [on.map(\.rawValue).joined(separator: "+")]
        if let subsystem { parts.append(subsystem + (type.map { "/" + $0 } ?? "")) }
        if let node { parts.append(node) }
        parts += properties.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        if wake != .background { parts.append("wake \(wake.rawValue)") }
        return "\(name): " + parts.joined(separator: " ")
    }
}
