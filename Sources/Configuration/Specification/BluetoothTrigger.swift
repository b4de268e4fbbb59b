// SPDX-License-Identifier: Apache-2.0

/// An entry of `bluetooth`: Bluetooth devices whose events notify and wake an app.
public struct BluetoothTrigger: Sendable, Hashable {
    /// An event of the device.
    public enum Change: String, Sendable, Hashable, CaseIterable {
        /// The device connects.
        case connect
        /// The device disconnects.
        case disconnect
        /// The value of a characteristic changes.
        case notify
    }

    /// The trigger's name, which is part of each event.
    public var name = ""
    /// The address of the device, such as `AA:BB:CC:DD:EE:FF`; `nil` for any device.
    public var device: String?
    /// A GATT service that the device must have, as a UUID of 36 characters; `nil` for any service.
    public var service: String?
    /// The GATT characteristic whose values notify the app, as a UUID of 36 characters; `nil` for any.
    public var characteristic: String?
    /// The events that notify the app.
    public var occasions: Set<Change> = []
    /// How the device's events wake the app.
    public var wake: WakeManner = .background

    /// Creates a trigger for any device and no events.
    public init() {}

    /// Whether the trigger matches a device with this address and these services.
    public func fits(address: String, services: [String]) -> Bool {
        if let device, device != address.uppercased() { return false }
        return service.map { wanted in services.contains { $0.lowercased() == wanted } } ?? true
    }
}

extension BluetoothTrigger: Written {
    var written: String? {
        let of = [device, service.map { "service \($0)" }, characteristic.map { "characteristic \($0)" }]
        let what = occasions.map(\.rawValue).sorted().joined(separator: ", ")
        let text = "\(name): \(what) of \(of.compactMap { $0 }.joined(separator: ", "))"
        return wake == .background ? text : text + ", wake \(wake.rawValue)"
    }
}

/// Readers of `bluetooth`.
enum BluetoothReader {
    static let keys: [Key<BluetoothTrigger>] = [
        .value("name", \.name, Read.text),
        .optional("device", \.device, address),
        .optional("service", \.service, identifier),
        .optional("characteristic", \.characteristic, identifier),
        .value("on", \.occasions) { context, node in
            let all: [BluetoothTrigger.Change]? = Read.elements(context, node, of: "strings") { Read.choice($0, $1) }
            return all.map { Set($0) }
        },
        .value("wake", \.wake) { Read.choice($0, $1) },
    ]

    static func triggers(_ context: Context, _ node: Node) -> [BluetoothTrigger]? {
        guard let triggers = Read.elements(context, node, of: "tables", trigger) else { return nil }
        return Read.unique(context, node, triggers, by: \.name)
    }

    private static func trigger(_ context: Context, _ node: Node) -> BluetoothTrigger? {
        guard case .table = node.value else {
            return context.expected("a table such as { device = \"AA:BB:CC:DD:EE:FF\" }", node)
        }
        var trigger = BluetoothTrigger()
        let found = Read.table(context, node, keys, into: &trigger)
        guard let what = trigger.device ?? trigger.service ?? trigger.characteristic else {
            context.error("needs a device, a service or a characteristic", at: node.position)
            return nil
        }
        if found["name"] == nil { trigger.name = what }
        if found["on"] == nil { trigger.occasions = trigger.characteristic == nil ? [.connect] : [.notify] }
        return trigger
    }

    /// Reads the address of a device: six bytes in hexadecimal digits.
    private static func address(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 6, parts.allSatisfy({ $0.utf8.count == 2 && UInt8($0, radix: 16) != nil }) else {
            context.error("\(quoted(text)) is not an address: write \"AA:BB:CC:DD:EE:FF\"", at: node.position)
            return nil
        }
        return text.uppercased()
    }

    /// Reads a UUID. A short form of 16 or 32 bits, assigned by the Bluetooth SIG, is accepted too.
    private static func identifier(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        let digits = text.lowercased()
        let isHexadecimal = digits.utf8.allSatisfy { ($0 >= 0x30 && $0 <= 0x39) || ($0 >= 0x61 && $0 <= 0x66) }
        if isHexadecimal, digits.utf8.count == 4 || digits.utf8.count == 8 {
            return (digits.utf8.count == 4 ? "0000" : "") + digits + "-0000-1000-8000-00805f9b34fb"
        }
        let parts = digits.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == [8, 4, 4, 4, 12], parts.allSatisfy({ UInt64($0, radix: 16) != nil }) else {
            context.error(
                "\(quoted(text)) is not a UUID: write \"180d\" or \"0000180d-0000-1000-8000-00805f9b34fb\"",
                at: node.position
            )
            return nil
        }
        return digits
    }
}
