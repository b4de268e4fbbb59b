// SPDX-License-Identifier: Apache-2.0

import Configuration
import Linux
import SystemBus
import Varlink
import WireText

/// A network that the machine is connected to.
struct Network: Hashable, Sendable {
    var interface: String
    /// The name (SSID) of a wireless network; nil for other networks, or if it is unknown.
    var ssid: String?
    /// Whether traffic costs money; nil if unknown.
    var isMetered: Bool?
    /// Whether the network is a tunnel (VPN).
    var isVPN = false
    /// Whether the network alone leads to no other machine, like the bridge of containers. Such a network fits an entry
    /// of `networks` only if the entry names its interface.
    var isVirtual = false

    /// The network in the form in which apps get it.
    var json: JSON {
        [
            "interface": .string(interface), "ssid": .optional(ssid), "metered": .optional(isMetered),
            "vpn": .bool(isVPN),
        ]
    }

    func fits(_ place: NetworkSpecification) -> Bool {
        if let interface = place.interface {
            guard NamePattern.fits(self.interface, interface) else { return false }
        } else if isVirtual {
            return false
        }
        if let ssid = place.ssid, ssid != self.ssid { return false }
        if let metered = place.metered, metered != isMetered { return false }
        return place.vpn == nil || place.vpn == isVPN
    }
}

/// All networks that the machine is connected to at one moment.
struct Networks: Hashable, Sendable {
    var all: Set<Network> = []
    /// Whether the names of wireless networks and the costs of networks are known. They are not if the networks were
    /// read from the kernel, which knows neither.
    var isComplete = false

    /// A network that fits the entry of `networks`; nil if there is none. `isKnown` is false if the entry's criteria
    /// need facts that are unknown.
    func find(_ place: NetworkSpecification) -> (network: Network?, isKnown: Bool) {
        guard isComplete || place.ssid == nil && place.metered == nil else { return (nil, false) }
        return (all.filter { $0.fits(place) }.min { $0.interface < $1.interface }, true)
    }
}

// MARK: NetworkManager

extension Networks {
    private static let manager = "org.freedesktop.NetworkManager"
    /// The maximum number of NetworkManager's objects that are read; further objects are ignored.
    private static let most = 1024

    /// Reads the networks from NetworkManager's objects, with their interfaces and properties (reply to
    /// GetManagedObjects).
    init(objects: [String: BusValue]) {
        isComplete = true
        func properties(_ path: String?, _ interface: String) -> [String: BusValue]? {
            path.flatMap { objects[$0] }?.dictionary?[Self.manager + "." + interface]?.dictionary
        }
        let metered = objects[Self.path]?.dictionary?[Self.manager]?.dictionary?["Metered"]
        for path in objects.keys.sorted().prefix(Self.most) {
            // In NMActiveConnectionState, 2 means activated.
            guard let active = properties(path, "Connection.Active"), active["State"] == .integer(2) else { continue }
            let type = active["Type"]?.text ?? ""
            for device in (active["Devices"]?.list ?? []).compactMap(\.text) {
                guard let about = properties(device, "Device"), let name = about["Interface"]?.text, !name.isEmpty,
                    type != "loopback"
                else { continue }
                var network = Network(interface: name)
                let wireless = properties(device, "Device.Wireless")?["ActiveAccessPoint"]?.text
                let point =
                    properties(wireless, "AccessPoint") ?? properties(active["SpecificObject"]?.text, "AccessPoint")
                network.ssid = point?["Ssid"]?.bytes.flatMap { $0.isEmpty ? nil : String(wire: $0.prefix(32)) }
                network.isVPN = active["Vpn"] == .boolean(true) || ["vpn", "wireguard", "tun"].contains(type)
                network.isVirtual = ["bridge", "dummy", "veth"].contains(type)
                network.isMetered = Self.isMetered(about["Metered"]) ?? Self.isMetered(metered)
                all.insert(network)
            }
        }
    }

    static let path = "/org/freedesktop/NetworkManager"

    /// Whether a value of NMMetered means that traffic costs money: 1 is yes, 2 no, 3 probably yes, 4 probably no.
    private static func isMetered(_ value: BusValue?) -> Bool? {
        switch value {
        case .integer(1), .integer(3): true
        case .integer(2), .integer(4): false
        default: nil
        }
    }
}

// MARK: The kernel

extension Networks {
    /// Reads the networks from the kernel: the interfaces with a carrier. May block on a device driver.
    ///
    /// - Parameter root: a prefix for the path `/sys`; empty except in tests.
    static func ofKernel(root: String) -> Networks {
        let folder = root + "/sys/class/net"
        var networks = Networks()
        for name in ((try? File.list(folder)) ?? []).sorted() where name != "lo" {
            let place = folder + "/" + name
            guard (try? File.readString(place + "/carrier", limit: 16))?.hasPrefix("1") ?? false else { continue }
            var network = Network(interface: name)
            // The flags in if_tun.h: IFF_TUN (1) is set for a VPN's tunnel, IFF_TAP (2) for the interface of a
            // virtual machine.
            let tunnel = (try? File.readString(place + "/tun_flags", limit: 16)).flatMap { text in
                UInt32(text.filter { $0.isHexDigit || $0 == "x" }.dropFirst(2), radix: 16)
            }
            let kind = (try? File.readString(place + "/uevent", limit: 4096)) ?? ""
            network.isVPN = tunnel.map { $0 & 1 == 1 } ?? kind.contains("DEVTYPE=wireguard")
            network.isVirtual = !network.isVPN && !File.exists(place + "/device")
            networks.all.insert(network)
        }
        return networks
    }
}
