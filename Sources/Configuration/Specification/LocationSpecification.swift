// SPDX-License-Identifier: Apache-2.0

/// `location` and `regions`: the positions that notify and wake an app.
public struct LocationSpecification: Sendable, Hashable {
    /// The positions that are sent besides crossings of regions.
    public enum Updates: String, Sendable, Hashable, CaseIterable {
        /// All of them while it runs; while they come, it stays in the background.
        case continuous
        /// Those that are far from the last one; they wake it.
        case significant
        /// None.
        case none
    }

    /// The positions that are sent.
    public var updates: Updates = .continuous
    /// Metres from the last position that was sent; `nil` for the default of `updates`.
    public var distance: Double?
    /// The least time between positions; `nil` for the default of `updates`.
    public var interval: Duration?
    /// How positions wake it.
    public var wake: WakeManner = .background
    /// Regions whose crossings are sent.
    public var regions: [RegionSpecification] = []

    /// All positions, no regions.
    public init() {}

    /// The default distance of `significant`, in metres.
    public static let significantDistance = 500.0
    /// The default least interval of `significant`.
    public static let significantInterval = Duration.seconds(300)
}

/// One of `regions`: a circle on the ground.
public struct RegionSpecification: Sendable, Hashable {
    /// The crossings of its edge that are sent.
    public enum Crossing: String, Sendable, Hashable, CaseIterable {
        case both
        case enter
        case leave
    }

    /// Its name within the app's regions.
    public var name = ""
    /// Degrees north, −90 to 90.
    public var latitude = 0.0
    /// Degrees east, −180 to 180.
    public var longitude = 0.0
    /// Metres, 1 to 1,000,000.
    public var radius = 0.0
    /// The crossings that are sent.
    public var crossing: Crossing = .both
    /// How long the side must be certain before a crossing is sent.
    public var settle: Duration = .seconds(20)
    /// How a crossing wakes the app.
    public var wake: WakeManner = .background

    /// A region without a position.
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

/// The address of gpsd.
public struct GPSAddress: Sendable, Hashable {
    /// A numeric address.
    public var address: String
    /// Its port.
    public var port: UInt16

    /// The default: on this machine.
    public static let usual = GPSAddress(address: "127.0.0.1", port: 2947)

    /// An address with a port.
    public init(address: String, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// As it is written.
    public var text: String { address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)" }
}

extension GPSAddress: Written {
    var written: String? { text }
}

/// Readers of `location`, `regions` and `gpsd`.
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

    /// The members of `location` that are not keys of their own.
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

    /// Resolving a name would block the supervisor.
    private static func isNumeric(_ host: String) -> Bool {
        if host == "localhost" || host.contains(":") { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
    }
}
