// SPDX-License-Identifier: Apache-2.0

import Linux

/// A place on Earth with its accuracy.
public struct Position: Sendable, Hashable {
    /// Degrees north, −90 to 90 (WGS 84).
    public var latitude: Double
    /// Degrees east, −180 to 180.
    public var longitude: Double
    /// The likely error of the position in metres; 0 if unknown.
    public var accuracy: Double
    /// Metres above the ellipsoid or sea level, whichever the receiver reports; nil if unknown.
    public var altitude: Double?
    /// Metres per second; nil if unknown.
    public var speed: Double?
    /// The direction of movement, in degrees from true north; nil if unknown.
    public var course: Double?
    /// The time of the fix from the receiver (ISO 8601).
    public var time: String?

    /// Creates a position.
    public init(latitude: Double, longitude: Double, accuracy: Double = 0) {
        self.latitude = latitude
        self.longitude = longitude
        self.accuracy = accuracy
    }

    /// The distance along the ground in metres. Treats the Earth as a sphere, which causes an error of up to half a
    /// percent.
    public func distance(to other: Position) -> Double {
        let radian = Double.pi / 180
        let north = Mathematics.sine((other.latitude - latitude) * radian / 2)
        let east = Mathematics.sine((other.longitude - longitude) * radian / 2)
        let cosines = Mathematics.cosine(latitude * radian) * Mathematics.cosine(other.latitude * radian)
        let part = north * north + cosines * east * east
        return 2 * Self.radius * Mathematics.arcsine(min(1, part.squareRoot()))
    }

    /// The mean radius of the Earth in metres (IUGG).
    static let radius = 6_371_008.8
}

/// A circle on the ground.
public struct Region: Sendable, Hashable {
    /// The circle's centre.
    public var centre: Position
    /// The circle's radius in metres.
    public var radius: Double
    /// How long positions must be on the other side of the edge before a crossing counts.
    public var settle: Duration

    /// Creates a circle.
    public init(centre: Position, radius: Double, settle: Duration = .seconds(20)) {
        self.centre = centre
        self.radius = radius
        self.settle = settle
    }
}
