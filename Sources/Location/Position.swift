// SPDX-License-Identifier: Apache-2.0

import Linux

/// A place on the Earth, and how well it is known.
public struct Position: Sendable, Hashable {
    /// Degrees north, −90 to 90 (WGS 84).
    public var latitude: Double
    /// Degrees east, −180 to 180.
    public var longitude: Double
    /// It is within so many metres of this, most likely; 0 where nobody says.
    public var accuracy: Double
    /// Metres above the ellipsoid or the sea, as the receiver has it.
    public var altitude: Double?
    /// Metres a second.
    public var speed: Double?
    /// Degrees from true north, to where it moves.
    public var course: Double?
    /// The time of the fix as the receiver says it (ISO 8601).
    public var time: String?

    /// A place known that well.
    public init(latitude: Double, longitude: Double, accuracy: Double = 0) {
        self.latitude = latitude
        self.longitude = longitude
        self.accuracy = accuracy
    }

    /// Metres to another place along the ground: the Earth as a sphere, which is wrong by up to half a percent.
    public func distance(to other: Position) -> Double {
        let radian = Double.pi / 180
        let north = Mathematics.sine((other.latitude - latitude) * radian / 2)
        let east = Mathematics.sine((other.longitude - longitude) * radian / 2)
        let cosines = Mathematics.cosine(latitude * radian) * Mathematics.cosine(other.latitude * radian)
        let part = north * north + cosines * east * east
        return 2 * Self.radius * Mathematics.arcsine(min(1, part.squareRoot()))
    }

    /// The mean radius of the Earth, metres (IUGG).
    static let radius = 6_371_008.8
}

/// A circle on the ground.
public struct Region: Sendable, Hashable {
    /// Its middle.
    public var centre: Position
    /// Metres.
    public var radius: Double
    /// So long it has to be certain on which side of the edge it is, before that counts.
    public var settle: Duration

    /// A circle.
    public init(centre: Position, radius: Double, settle: Duration = .seconds(20)) {
        self.centre = centre
        self.radius = radius
        self.settle = settle
    }
}
