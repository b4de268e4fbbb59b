// SPDX-License-Identifier: Apache-2.0

/// `location` and `regions`: which positions an app is told, and wakes for.
public struct LocationSpecification: Sendable, Hashable {
    /// Which positions are told beside regions.
    public enum Updates: String, Sendable, Hashable, CaseIterable {
        /// All of them while it runs; as long as they come it stays in the background.
        case continuous
        /// Those that are far from the one before; they wake it.
        case significant
        /// None.
        case none
    }

    /// Which positions are told.
    public var updates: Updates = .continuous
    /// Metres from the last one that was told; `nil` for what is usual for `updates`.
    public var distance: Double?
    /// So long nothing is told after the last one; `nil` for what is usual for `updates`.
    public var interval: Duration?
    /// How positions wake it.
    public var wake: WakeManner = .background
    /// Regions of which entering and leaving are told.
    public var regions: [RegionSpecification] = []

    /// All positions, no regions.
    public init() {}

    /// Metres that are significant where nothing else is said.
    public static let significantDistance = 500.0
    /// As often as that at most, where nothing else is said.
    public static let significantInterval = Duration.seconds(300)
}

/// One of `regions`: a circle on the ground.
public struct RegionSpecification: Sendable, Hashable {
    /// Which crossings of its edge are told.
    public enum Crossing: String, Sendable, Hashable, CaseIterable {
        case both
        case enter
        case leave
    }

    /// What it is called among the app's regions.
    public var name = ""
    /// Degrees north, −90 to 90.
    public var latitude = 0.0
    /// Degrees east, −180 to 180.
    public var longitude = 0.0
    /// Metres, 1 to 1,000,000.
    public var radius = 0.0
    /// Which crossings are told.
    public var crossing: Crossing = .both
    /// So long it has to be certain on which side it is before a crossing is told.
    public var settle: Duration = .seconds(20)
    /// How a crossing wakes the app.
    public var wake: WakeManner = .background

    /// A region without a place.
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

/// Where gpsd is.
public struct GPSAddress: Sendable, Hashable {
    /// Numeric.
    public var address: String
    /// Its port.
    public var port: UInt16

    /// Where it is on this machine where nobody says otherwise.
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

    /// What `location` says, without what is a key of its own.
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

    /// A name would have to be looked up, for which the supervisor has no time.
    private static func isNumeric(_ host: String) -> Bool {
        if host == "localhost" || host.contains(":") { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
    }
}
