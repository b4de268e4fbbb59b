// SPDX-License-Identifier: Apache-2.0

import WireText

/// `location` and `regions`: the positions that notify and wake an app.
public struct LocationSpecification: Sendable, Hashable {
    /// The values of `location.updates`: which positions the app gets. Crossings of regions are reported separately.
    public enum Updates: String, Sendable, Hashable, CaseIterable {
        /// All positions while the app runs. The app is not suspended as long as positions arrive.
        case continuous
        /// Positions only while the app is active. They do not prevent the app's suspension.
        case foreground
        /// Only positions that are far enough from the last position that the app got. They wake the app.
        case significant
        /// No positions.
        case none
    }

    /// Which positions are sent to the app.
    public var updates: Updates = .continuous
    /// The minimum distance from the last position sent to the app, in metres; `nil` for the default of `updates`.
    public var distance: Double?
    /// The minimum time between two positions; `nil` for the default of `updates`.
    public var interval: Duration?
    /// How a position wakes the app.
    public var wake: WakeManner = .background
    /// The regions whose crossings are reported to the app.
    public var regions: [RegionSpecification] = []
    /// Networks that identify places. The app is notified when the machine joins or leaves one of these networks.
    public var networks: [NetworkSpecification] = []

    /// Creates a specification with all positions and no regions.
    public init() {}

    /// The default of `distance` in metres, if `updates` is `significant`.
    public static let significantDistance = 500.0
    /// The default of `interval` if `updates` is `significant`.
    public static let significantInterval = Duration.seconds(300)
}

/// An entry of `regions`: a circle on the surface of the earth.
public struct RegionSpecification: Sendable, Hashable {
    /// The values of `on`: which crossings of the region's edge are reported to the app.
    public enum Crossing: String, Sendable, Hashable, CaseIterable {
        case both
        case enter
        case leave
    }

    /// The region's name, unique within the app.
    public var name = ""
    /// The latitude of the centre in degrees north, −90 to 90.
    public var latitude = 0.0
    /// The longitude of the centre in degrees east, −180 to 180.
    public var longitude = 0.0
    /// The radius in metres, 1 to 1,000,000.
    public var radius = 0.0
    /// Which crossings of the region's edge are reported to the app.
    public var crossing: Crossing = .both
    /// How long the machine must stay on the other side of the edge before the crossing is reported to the app.
    public var settle: Duration = .seconds(20)
    /// How a crossing wakes the app.
    public var wake: WakeManner = .background

    /// Creates a region without a name and a position.
    public init() {}
}

extension LocationSpecification.Updates: Written {}
extension RegionSpecification.Crossing: Written {}

extension RegionSpecification: Written {
    var written: String? {
        var text = "\(name): \(radius) m around \(latitude), \(longitude)"
        if crossing != .both { text += ", on \(crossing.rawValue)" }
        if settle != .seconds(20) { text += ", settle \(Quantity.text(settle))" }
        return wake == .background ? text : text + ", wake \(wake.rawValue)"
    }
}

/// The address of a gpsd server.
public struct GPSAddress: Sendable, Hashable {
    /// The numeric IP address.
    public var address: String
    /// The TCP port.
    public var port: UInt16

    /// The default address: port 2947 on this machine.
    public static let usual = GPSAddress(address: "127.0.0.1", port: 2947)

    /// Creates an address from an IP address and a port.
    public init(address: String, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// The IP address and the port, as the configuration writes them.
    public var text: String { address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)" }
}

extension GPSAddress: Written {
    var written: String? { text }
}

/// Readers of the keys `location`, `regions` and `gpsd`.
enum LocationReader {
    static let keys: [Key<LocationSpecification>] = [
        .value("updates", \.updates) { Read.choice($0, $1) },
        .optional("distance", \.distance, Read.number(0...1_000_000)),
        .optional("interval", \.interval, Read.duration),
        .value("wake", \.wake) { Read.choice($0, $1) },
    ]

    static let regionKeys: [Key<RegionSpecification>] = [
        .value("name", \.name, Read.text),
        .value("latitude", \.latitude, Read.number(-90...90)),
        .value("longitude", \.longitude, Read.number(-180...180)),
        .value("radius", \.radius, Read.number(1...1_000_000)),
        .value("on", \.crossing) { Read.choice($0, $1) },
        .value("settle", \.settle, Read.duration),
        .value("wake", \.wake) { Read.choice($0, $1) },
    ]

    /// The members of `location` as texts, without `regions`, which is a key of its own.
    @Sendable static func members(_ specification: LocationSpecification) -> [String: String] {
        var members = ["updates": specification.updates.rawValue]
        members["distance"] = specification.distance.map { "\($0)" }
        members["interval"] = specification.interval?.written
        members["wake"] = specification.wake == .background ? nil : specification.wake.rawValue
        return members
    }

    static func regions(_ context: Context, _ node: Node) -> [RegionSpecification]? {
        guard var regions = Read.elements(context, node, of: "tables", region) else { return nil }
        for index in regions.indices where regions[index].name.isEmpty { regions[index].name = "\(index + 1)" }
        return Read.unique(context, node, regions, by: \.name)
    }

    private static func region(_ context: Context, _ node: Node) -> RegionSpecification? {
        guard case .table = node.value else {
            return context.expected("a table such as { latitude = 52.52, longitude = 13.405, radius = 200 }", node)
        }
        var region = RegionSpecification()
        let found = Read.table(context, node, regionKeys, into: &region)
        for key in ["latitude", "longitude", "radius"] where found[key] == nil {
            context.error(
                "\(key) is missing: a region is a circle of latitude, longitude and radius",
                at: node.position
            )
            return nil
        }
        return region
    }

    static func gpsd(_ context: Context, _ node: Node) -> GPSAddress? {
        guard let text = Read.text(context, node) else { return nil }
        guard let (host, port) = ReadyReader.authority(text), isNumeric(host) else {
            context.error("\(quoted(text)) is not a numeric address: write \"127.0.0.1:2947\"", at: node.position)
            return nil
        }
        return GPSAddress(address: host == "localhost" ? "127.0.0.1" : host, port: port ?? GPSAddress.usual.port)
    }

    /// Whether the host is a numeric address or `localhost`. Any other name would need a lookup, which would block
    /// the supervisor.
    private static func isNumeric(_ host: String) -> Bool {
        if host == "localhost" || host.contains(":") { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
    }
}
