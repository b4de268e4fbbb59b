// SPDX-License-Identifier: Apache-2.0

/// An entry of `networks`: a network that identifies a place. The machine counts as being at that place while it has a
/// network that meets all criteria of the entry.
public struct NetworkSpecification: Sendable, Hashable {
    /// The entry's name, which is part of events and of the app's messages.
    public var name = ""
    /// The interface's name, or a glob(7) pattern of such names; nil for any.
    public var interface: String?
    /// The name of the wireless network; nil for any.
    public var ssid: String?
    /// Whether traffic on the network must cost money (`true`) or be free (`false`); nil for any network.
    public var metered: Bool?
    /// Whether the network must be a tunnel (VPN); nil for any network.
    public var vpn: Bool?
    /// Which changes are reported to the app: joining the network, leaving it, or both.
    public var crossing: RegionSpecification.Crossing = .both
    /// How joining or leaving the network wakes the app.
    public var wake: WakeManner = .background

    /// Creates an entry without criteria.
    public init() {}
}

extension NetworkSpecification: Written {
    var written: String? {
        var parts: [String] = []
        if let interface { parts.append("interface \(interface)") }
        if let ssid { parts.append("ssid \(ssid)") }
        if let metered { parts.append("metered \(metered)") }
        if let vpn { parts.append("vpn \(vpn)") }
        if crossing != .both { parts.append("on \(crossing.rawValue)") }
        if wake != .background { parts.append("wake \(wake.rawValue)") }
        return "\(name): " + parts.joined(separator: ", ")
    }
}

/// The reader of `networks`.
enum NetworkReader {
    static let keys: [Key<NetworkSpecification>] = [
        .value("name", \.name, Read.text),
        .optional("interface", \.interface, Read.text),
        .optional("ssid", \.ssid, Read.text),
        .optional("metered", \.metered, Read.boolean),
        .optional("vpn", \.vpn, Read.boolean),
        .value("on", \.crossing) { Read.choice($0, $1) },
        .value("wake", \.wake) { Read.choice($0, $1) },
    ]

    static func networks(_ context: Context, _ node: Node) -> [NetworkSpecification]? {
        guard var networks = Read.elements(context, node, of: "tables", network) else { return nil }
        for index in networks.indices where networks[index].name.isEmpty { networks[index].name = "\(index + 1)" }
        return Read.unique(context, node, networks, by: \.name)
    }

    private static func network(_ context: Context, _ node: Node) -> NetworkSpecification? {
        guard case .table = node.value else {
            return context.expected("a table such as { ssid = \"home\", on = \"enter\" }", node)
        }
        var network = NetworkSpecification()
        let found = Read.table(context, node, keys, into: &network)
        guard ["interface", "ssid", "metered", "vpn"].contains(where: { found[$0] != nil }) else {
            context.error("must select networks by interface, ssid, metered or vpn", at: node.position)
            return nil
        }
        // IEEE 802.11 limits the name of a network to 32 bytes.
        if let ssid = network.ssid, ssid.utf8.count > 32 {
            context.error("ssid has more than 32 bytes, and no network is named so", at: node.position)
            return nil
        }
        return network
    }
}
